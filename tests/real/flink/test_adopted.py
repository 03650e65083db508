"""A person adopts a job that somebody else submitted, watches it, and can't do anything to it: `kstream streams`.

The job's own processes are the same at the end, and its checkpoints went on.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.flink import JOB_MANAGER, TASK_MANAGER
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.model.streams.stream import FlinkStreamSpec, KeytabCredentials
from airflow_kstream.supervise.clusters.session import ClusterSession
from tests.live.cli import Ran, cluster_file, ran
from tests.live.flink import FlinkRunning, await_checkpoints, pages_of, running
from tests.live.streams import await_that
from tests.real.flink.conftest import NewRun


def declaration(living: FlinkRunning) -> dict[str, Any]:
    run = living.run
    keytab = KeytabCredentials(run.minicluster.principal("streamer"), str(run.minicluster.keytab("streamer")))
    conf = {"execution.checkpointing.interval": "2s"}
    spec = FlinkStreamSpec(run.name, keytab, str(run.jar), (f"{run.home}/checkpoints",), conf=conf)
    return spec.checked().to_mapping()


def processes(living: FlinkRunning) -> set[int]:
    return {process.pid for role in (JOB_MANAGER, TASK_MANAGER) for process in living.processes(role)}


def test_an_adopted_job_is_healthy_and_nothing_that_a_person_says_touches_it(
    new_run: NewRun, session: ClusterSession, flinks: Minicluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    cluster = str(cluster_file(flinks, "streamer", tmp_path))
    with running(session, new_run("adopted")) as living:
        name, application = living.run.name, living.application
        (file := tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(declaration(living)))
        before = processes(living)
        assert ran("streams", "validate", str(tmp_path / file.name)).code == 0

        def say(*words: str) -> Ran:
            return ran("streams", *words, "--cluster", cluster)

        (other := tmp_path / "other.yaml").write_text(yaml.safe_dump(as_spark(declaration(living))))
        refused = say("adopt", str(other), "--application-id", application)
        assert (refused.code != 0, "of type Apache Flink, and" in refused.err) == (True, True)

        examined = ran("doctor", "--application-id", application, "--cluster", cluster, "--json").data
        decided = {*examined["passed"], *(finding["id"] for finding in examined["findings"])}
        assert {"flink-checkpoints", "flink-logs", "flink-port", "flink-renewer"} <= decided

        adopted = say("adopt", str(file), "--application-id", application)
        assert adopted.code == 0, adopted.err
        assert f"job {living.run.job} writes {living.run.checkpoints}/chk-" in adopted.out

        def look() -> Any:
            return say("status", name, "--json").data[name]

        await_that(lambda: look()["pulse"] == Pulse.HEALTHY, "it is watched, and well")
        seen = look()
        assert (seen["generation"], seen["application"]) == (1, application)

        assert say("reconcile", str(file)).code == 0

        with closing(pages_of(session, living)) as pages:
            assert pages.conf()["yarn.application.name"] == name

        await_checkpoints(living, 2)
        assert look()["pulse"] == Pulse.HEALTHY
        assert processes(living) == before
        assert session.yarn.application(application).state is ApplicationState.RUNNING


def as_spark(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a declaration of Spark's with the same name, credentials and checkpoints."""
    kept = {field: fields[field] for field in ("name", "credentials", "checkpoints")}
    return {**kept, "application": "/jobs/orders.py"}
