"""A whole reconcile after the end of a job whose error stands in its driver's log alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.policy.streams.ends.after_end import how_it_ended
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.formats import read_ends, written_ends
from airflow_kstream.supervise.streams.folder.memory import past_ends
from airflow_kstream.supervise.streams.look import nodemanager_reports
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from tests.simulated.driver_logs import CAPTURED, EXITED, KAFKA, RAISED, STATUS
from tests.simulated.engine import FakeEngine
from tests.simulated.life import Life
from tests.simulated.strange_servers import Answer
from tests.simulated.yarn import START, past_end
from tests.simulated.yarn_logs import ID, Logs, logs, page

OUT, ERR = (f"/ws/v1/node/containers/{ID}/logs/{name}" for name in ("stdout", "stderr"))


class SparkLogs(FakeEngine):
    """An engine whose jobs log as Spark's do."""

    words = SparkEngine.words

    def last_error(self, logs: Mapping[str, str]) -> str:
        return SparkEngine().last_error(logs)


@pytest.fixture
def yarn(life: Life) -> Iterator[Logs]:
    life.use(life.hdfs, SparkLogs(life.hdfs, life.yarn))
    with logs() as running:
        yield running


def said(yarn: Logs, stdout: str, stderr: str = EXITED) -> None:
    yarn.nodemanager.script |= {OUT: page("stdout", stdout.encode()), ERR: page("stderr", stderr.encode())}


def die(life: Life, yarn: Logs, diagnostics: str = STATUS) -> None:
    """End the newest application, whose driver's container is on this NodeManager."""
    number = list(life.yarn.apps)[-1]
    link = f"{yarn.nodemanager.address}/node/containerlogs/{ID}/bob"
    life.yarn.apps[number] = replace(life.yarn.apps[number], logs_url=link)
    life.clock.ahead += timedelta(minutes=1)
    life.yarn.end(number, ApplicationState.FAILED, diagnostics)


def recorded(life: Life) -> PastEnd:
    return past_ends(life.run.folder, life.run.folder.names())[-1]


def test_the_record_of_an_end_keeps_the_words_of_the_log(life: Life, yarn: Logs) -> None:
    said(yarn, RAISED)
    life.begin()
    die(life, yarn)
    report = life.reconcile(Mode.WATCH)
    end, words = recorded(life), "ValueError: batch 7 has too few rows: 12"
    assert (end.kind, end.fingerprint, end.clues.log_error) == (
        EndKind.CODE,
        "ValueError: batch # has too few rows: #",
        words,
    )
    assert report.phase is Phase.ENDED
    assert f"{STATUS}; its driver's log ends with: {words}" in " ".join(done.why for done in report.done)


def test_a_cause_in_the_log_alone_is_the_environments(life: Life, yarn: Logs) -> None:
    said(yarn, CAPTURED, KAFKA + EXITED)
    life.begin()
    die(life, yarn)
    report = life.reconcile(Mode.WATCH)
    end = recorded(life)
    assert (end.kind, end.clues.silent) == (EndKind.INFRASTRUCTURE, "Kafka")
    assert (report.phase, report.generation) == (Phase.RUNNING, 2), "no person is needed"


def test_a_later_look_says_the_same_without_reading_the_log_again(life: Life, yarn: Logs) -> None:
    said(yarn, RAISED)
    life.begin()
    die(life, yarn)
    life.reconcile(Mode.WATCH)
    asked = list(yarn.nodemanager.requests)
    assert len(asked) == 2
    how = how_it_ended(observe(life.run))
    assert how.endswith(
        f"(code): FAILED/FAILED, {STATUS}; its driver's log ends with: ValueError: batch 7 has too few rows: 12"
    )
    assert yarn.nodemanager.requests == asked


def told_at_the_end(life: Life) -> list[str]:
    told: list[str] = []
    Reconciler(life.run, tell=told.append).run(Mode.WATCH)
    return [line for line in told if "can't be read" in line]


FAILURES: dict[str, Callable[[], Answer]] = {
    "gone": lambda: Answer(404, b"Unknown container", "text/plain"),
    "HTML": lambda: Answer(200, b"<html>", "text/html"),
    "a byte a second": lambda: replace(page("stdout", b"words"), drip=1.0),
}


@pytest.mark.parametrize("answer", FAILURES.values(), ids=FAILURES)
def test_a_log_that_can_not_be_read_is_named_and_delays_nothing(
    life: Life, yarn: Logs, answer: Callable[[], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The usual limit would make this a wait of ten seconds.
    monkeypatch.setattr(nodemanager_reports, "_SECONDS", 1.0)
    yarn.nodemanager.script[""] = answer()
    life.begin()
    die(life, yarn)
    began = time.monotonic()
    told = told_at_the_end(life)
    assert time.monotonic() - began < 9, "it was given up before the usual limit"
    assert len(told) == 1
    assert ID in told[0]
    assert (recorded(life).kind, recorded(life).clues.log_error) == (EndKind.CODE, "")


def test_the_driver_log_is_never_read_where_yarn_names_the_error(life: Life, yarn: Logs) -> None:
    life.begin()
    die(life, yarn, "User class threw exception: java.lang.IllegalStateException: 3")
    life.reconcile(Mode.WATCH)
    assert yarn.nodemanager.requests == []
    assert recorded(life).clues.log_error == ""


def test_a_record_of_an_earlier_version_has_no_words_of_a_log() -> None:
    text = written_ends([past_end(1, START)], "us", "1")
    assert '"log_error"' in text
    assert read_ends(text.replace('"log_error": ""', '"later": 1')) == (past_end(1, START),)
