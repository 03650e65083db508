"""Drivers that show what they run with, and one that hangs: it costs nobody else their answer, nor much time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from airflow_kstream.model.clusters.cluster_facts import DriverFacts
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor import stream_facts as module
from airflow_kstream.supervise.doctor.stream_facts import driver_facts
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.strange_servers import Answer, StrangeServer, said, serving

GOOD, OTHER = "application_1_0001", "application_1_0002"
PAGE = said(
    {
        "sparkProperties": [["spark.speculation", "true"]],
        "hadoopProperties": [["ipc.client.connection.maxidletime", "10000"]],
        "classpathEntries": [["/jars/hadoop-client-api-3.3.4.jar", "System Classpath"]],
    }
)


@contextmanager
def drivers(**answers: Answer) -> Iterator[tuple[ClusterSession, StrangeServer]]:
    """A ResourceManager's proxy that has these answers of drivers."""
    paths = {f"/api/v1/applications/{name}/environment": answer for name, answer in answers.items()}
    with serving(paths) as server:

        class Yarn(SimYarn):
            def active(self) -> str:
                return server.address

        hdfs = SimHdfs(SimClock())
        yield session_of(hdfs, Yarn(hdfs.clock)), server


def test_a_driver_shows_its_version_its_confs_and_their_origin() -> None:
    with drivers(**{GOOD: PAGE}) as (session, _):
        facts = driver_facts(session, [GOOD])[GOOD]
    assert isinstance(facts, DriverFacts)
    assert (str(facts.hadoop), facts.properties) == ("3.3.4", {"spark.speculation": "true"})
    assert not isinstance(facts.conf, NotChecked)
    expected = f"the driver of {GOOD}: ipc.client.connection.maxidletime=10000 (the environment of {GOOD})"
    assert facts.conf.said("ipc.client.connection.maxidletime") == expected


def test_a_driver_that_refuses_says_which_right_is_missing() -> None:
    with drivers(**{GOOD: Answer(403, b"no", "text/html")}) as (session, _):
        facts = driver_facts(session, [GOOD])[GOOD]
    assert isinstance(facts, NotChecked)
    assert facts.right == "the right to view the application (spark.ui.view.acls)"


def test_a_driver_that_hangs_hides_no_other_and_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    # The usual limit would make this a wait of ten seconds.
    monkeypatch.setattr(module, "_ALL_DRIVERS", 1.0)
    slow = Answer(200, PAGE.body, drip=0.2)
    began = time.monotonic()
    with drivers(**{GOOD: PAGE, OTHER: slow}) as (session, _):
        facts = driver_facts(session, [GOOD, OTHER])
        took = time.monotonic() - began
    assert isinstance(facts[GOOD], DriverFacts)
    assert facts[OTHER] == NotChecked("the environment of its driver", "drivers did not answer within 1s")
    assert took < 9, "it was given up before the usual limit"


def test_no_request_is_made_where_nothing_runs() -> None:
    with drivers() as (session, server):
        assert driver_facts(session, []) == {}
    assert server.requests == []
