"""Triage from Airflow: an operator, and a callback that attaches the verdict to the task that failed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, cast

import pytest
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.log import logging_processors

from airflow_kstream.model.logs.diagnosis import DiagnosisOutcome
from airflow_kstream.notifications.triage import TriageNotifier, application_in
from airflow_kstream.operators.triage import LogTriageOperator
from tests.simulated.logs import DRIVER, diagnosed, died, driver, failing

FULL = driver(failing("10:00:00", "failed", "java.io.IOException: No space left on device"), died("10:00:01"))
STRANGE = driver(failing("10:00:00", "failed", "LedgerException: entry 4711"), died("10:00:01"))


class Pushed(dict[str, Any]):
    """A task instance that keeps what is pushed: Airflow's own needs a supervisor."""

    def xcom_push(self, key: str, value: Any) -> None:
        self[key] = value


def context(**more: Any) -> Any:
    return cast("Any", {"ti": Pushed(), **more})


def task(**fields: Any) -> LogTriageOperator:
    return LogTriageOperator(task_id="why", **fields)


def test_the_result_of_a_task_is_the_verdict(tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text(FULL)
    verdict = task(path=str(tmp_path)).execute(context())
    assert (verdict["cause"], verdict["confidence"]) == ("disk-full", "high")


def test_an_unknown_cause_fails_the_task_where_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text(STRANGE)
    assert task(path=str(tmp_path)).execute(context())["outcome"] == "unknown"
    given = context()
    with pytest.raises(AirflowFailException, match="no signature explains it"):
        task(path=str(tmp_path), fail_if_unknown=True).execute(given)
    assert given["ti"]["return_value"]["outcome"] == "unknown"


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "give an application with its cluster_conn_id, or a path"),
        ({"path": "/logs", "application": "application_17_0042"}, "give an application"),
        ({"application": "application_17_0042"}, "no cluster_conn_id says of which cluster"),
        ({"path": "/logs", "time_zone": "Mars/Olympus"}, "allowed is a name such as Europe/Berlin"),
        ({"path": "/no/such/folder"}, "No such file"),
    ],
)
def test_wrong_fields_fail_without_retries(fields: dict[str, str], complaint: str) -> None:
    with pytest.raises(AirflowFailException, match=complaint):
        task(**fields).execute(context())


def test_the_application_is_the_last_that_the_error_names() -> None:
    error = RuntimeError("application_17_0041 gave way to application_17_0042: exit code 1")
    assert application_in(error) == "application_17_0042"
    assert application_in(None) is None


@pytest.mark.parametrize("exception", [None, RuntimeError("no application at all")])
def test_without_an_application_nothing_is_attached(
    exception: BaseException | None, caplog: pytest.LogCaptureFixture
) -> None:
    given = context(exception=exception)
    with caplog.at_level(logging.WARNING):
        TriageNotifier(cluster_conn_id="prod").notify(given)
    assert given["ti"] == {}
    assert "names no application" in caplog.text


def test_a_cluster_that_is_away_keeps_the_failure_as_it_was(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The callback never fails: a connection that Airflow doesn't have is a warning."""
    monkeypatch.setenv("AIRFLOW_CONN_AWAY", '{"conn_type": "kstream", "extra": {"principal": "no principal"}}')
    given = context(exception=RuntimeError("application_17_0042 failed"))
    with caplog.at_level(logging.WARNING):
        TriageNotifier(cluster_conn_id="away").notify(given)
    assert given["ti"] == {}
    assert "No triage of application_17_0042" in caplog.text


# Of tasks, of components on a terminal and in a file, and with the format that Airflow 2 had.
FORMS: dict[str, dict[str, Any]] = {
    "task": {"json_output": True},
    "terminal": {"json_output": False, "colors": True},
    "file": {"json_output": False, "colors": False},
    "format": {
        "json_output": False,
        "colors": False,
        "log_format": "[%(asctime)s] {%(filename)s:%(lineno)d} %(levelname)s - %(message)s",
    },
}


class LedgerError(Exception):
    """An error that no signature knows."""


def written(form: str, level: str, event: str, error: Exception | None = None) -> str:
    """What Airflow's own processors make of an event."""
    fields: Any = {"event": event, "logger": "task", **({"exc_info": error} if error else {})}
    for process in logging_processors(**FORMS[form]):
        fields = process(None, level, fields)
    return f"{fields if isinstance(fields, str) else fields.decode()}\n"


@pytest.mark.parametrize("form", FORMS)
def test_a_driver_whose_lines_airflow_logs_is_judged_as_without_it(form: str) -> None:
    logged = "".join(written(form, "info", each.strip()) for each in FULL.splitlines())
    plain = diagnosed({DRIVER: FULL})
    verdict = diagnosed({"attempt=1.log": logged})
    assert (verdict.cause, verdict.confidence) == (plain.cause, plain.confidence) == ("disk-full", "high")
    assert verdict.evidence is not None
    assert plain.evidence is not None
    assert verdict.evidence.when == plain.evidence.when


@pytest.mark.parametrize("form", FORMS)
def test_an_error_of_a_task_is_shown_with_its_words(form: str) -> None:
    polled = written(form, "info", "Polling the billing service")
    verdict = diagnosed(
        {"attempt=1.log": polled + written(form, "error", "Task failed", LedgerError("month 2026-02 is closed"))}
    )
    assert verdict.outcome is DiagnosisOutcome.UNKNOWN
    assert "month 2026-02 is closed" in verdict.templates[0].first.text
    assert verdict.templates[0].first.when
    warned = polled + written(form, "warning", "billing is slow")
    assert diagnosed({"attempt=1.log": warned}).outcome is DiagnosisOutcome.FINE
