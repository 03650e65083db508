"""Failures made for real on the minicluster, and whether their logs lead to the one cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.tokens import cancel_by_identifier
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.logs.diagnosis import Confidence, DiagnosisOutcome
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.triage.look import triage_application
from airflow_kstream.supervise.triage.scan import own_catalogue, triage_path
from airflow_kstream.supervise.triage.spark import SparkRun, application_logs, triage_with_spark
from tests.live.cli import cluster_file, ran
from tests.live.streams import UNAWARE, await_that, cluster, kept_logs, rate_stream, submit_by_hand
from tests.live.token_pushes import launch_identifiers
from tests.simulated.logs import died, driver, failing


def unaware(name: str) -> StreamSpec:
    """A job that knows nothing of streams, and has no keytab."""
    return rate_stream(name, TicketCredentials(), application=UNAWARE)


@contextmanager
def session_of(minicluster: Minicluster) -> Iterator[ClusterSession]:
    with cluster(minicluster) as opened, open_session(opened, opened.watcher) as session:
        yield session


def submitted(
    minicluster: Minicluster, session: ClusterSession, spec: StreamSpec, folder: Path
) -> tuple[Application, Path]:
    """Submit the job, wait until its query writes its checkpoint or it ends; return it, and links to its logs."""
    tag = f"triage-{len(list(folder.iterdir()))}"
    submit_by_hand(minicluster, spec, tag, **{"spark.yarn.maxAppAttempts": "1"})
    (app,) = session.yarn.applications(tag)

    def writes_or_ended() -> bool:
        logs = kept_logs(minicluster, app.id, folder)
        drivers = logs.glob("container_*_000001/stderr")
        writes = any("Writing atomically to" in driver.read_text(errors="replace") for driver in drivers)
        return writes or ended(session, app)

    await_that(writes_or_ended, f"{spec.name} writes its checkpoint")
    return app, kept_logs(minicluster, app.id, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, minicluster: Minicluster) -> Path:
    """A folder on the file system of the cluster's logs."""
    return tmp_path_factory.mktemp("kept")


def test_a_job_whose_token_died_is_triaged_while_it_lives_and_after_its_end(
    minicluster: Minicluster, folder: Path, tmp_path: Path
) -> None:
    """The seed: the token is gone, a NameNode fails over, and the logs of the end are not even aggregated."""
    file = str(cluster_file(minicluster, "streamer", tmp_path))
    with session_of(minicluster) as session:
        app, logs = submitted(minicluster, session, unaware("doomed"), folder)
        alive = ran("triage", app.id, "--cluster", file, "--json").data
        assert (alive["outcome"], alive["cause"]) == ("fine", None)
        assert alive["scanned"]["logs"] >= 4
        conf = HadoopConf(str(session.cluster.hadoop_conf_dir))
        for _, identifier in launch_identifiers(minicluster, app.id):
            cancel_by_identifier(conf, session.cluster.default_fs, session.identity, identifier)
        minicluster.failover()
        await_that(lambda: not session.yarn.application(app.id).alive, "it dies")
        verdict = triage_path(logs, own_catalogue())
        print(*ran("triage", str(logs)).out.splitlines(), sep="\n")
        assert (verdict.cause, verdict.confidence) == ("hdfs-token-not-in-cache", Confidence.HIGH)
        assert verdict.evidence is not None
        assert "can't be found in cache" in verdict.evidence.text
        await_that(lambda: refused(minicluster, app.id), "its logs are not aggregated")
        daemon = triage_path(minicluster.log("nodemanager"), own_catalogue())
        assert "log-aggregation-refused" in {step.signature for step in (*daemon.timeline, *daemon.others)}
        # Nothing is left but what YARN says of it; that is not a cause.
        left = triage_application(session, app.id, own_catalogue())
        assert left.cause in {"", "hdfs-token-not-in-cache"}
        assert left.outcome is not DiagnosisOutcome.FINE


def refused(minicluster: Minicluster, application: str) -> bool:
    said = minicluster.log("nodemanager").read_text(errors="replace")
    return any(application in line and "Skip log upload" in line for line in said.splitlines())


def test_two_writers_of_one_checkpoint_are_the_cause_of_the_end_of_one(minicluster: Minicluster, folder: Path) -> None:
    """The logs of both tell; what ends by hand afterwards is not a failure of it."""
    spec = unaware("shared")
    with session_of(minicluster) as session:
        first, logs_of_first = submitted(minicluster, session, spec, folder)
        second, logs_of_second = submitted(minicluster, session, spec, folder)
        both = {first: logs_of_first, second: logs_of_second}
        await_that(lambda: any(ended(session, app) for app in both), "one of them dies")
        victim, survivor = sorted(both, key=lambda app: not ended(session, app))
        session.yarn.kill(survivor.id, "the test is over", timedelta(seconds=30))
        verdict = triage_path(both[victim], own_catalogue())
        print(*ran("triage", str(both[victim])).out.splitlines(), sep="\n")
    assert (verdict.cause, verdict.confidence) == ("checkpoint-used-twice", Confidence.HIGH)


def ended(session: ClusterSession, app: Application) -> bool:
    return not session.yarn.application(app.id).alive


def test_the_aggregated_logs_of_a_job_that_failed_are_read_from_hdfs(minicluster: Minicluster) -> None:
    job = rate_stream("typo", TicketCredentials(), application=UNAWARE, arguments=("no-such-scheme:typo",))
    with session_of(minicluster) as session:
        submit_by_hand(minicluster, job, "triage-typo")
        (app,) = session.yarn.applications("triage-typo")
        await_that(lambda: ended(session, app), "it fails")
        logs = ContainerLogs(session.cluster, session.identity)
        await_that(lambda: any(logs.aggregated_nodes(session.hdfs, app.id, getuser())), "its logs are aggregated")
        verdict = triage_application(session, app.id, own_catalogue())
        # The executors on YARN read HDFS with a token of the driver's.
        conf = {**minicluster.spark_conf(), "spark.executor.instances": "1"}
        run = SparkRun("yarn", conf, driver_scans=False)
        by_spark = triage_with_spark(application_logs(session, app.id), own_catalogue(), run, session)
    assert verdict.outcome is DiagnosisOutcome.UNKNOWN
    assert any("no-such-scheme" in template.text for template in verdict.templates)
    assert any("#container_" in template.first.source.file for template in verdict.templates)
    assert by_spark.scanned.unread == ()
    assert {template.text for template in by_spark.templates} <= {template.text for template in verdict.templates}
    assert by_spark.scanned.lines > 100


def disk_full(folder: Path) -> str:
    """Leave the log of a driver that died of it, and return where."""
    refused = failing("09:59:59", "failed", "java.io.IOException: No space left on device")
    (folder / "stderr").write_text(driver(refused, died("10:00:01")))
    return folder.as_uri()


def test_a_resourcemanager_that_is_away_delays_no_verdict(minicluster: Minicluster, tmp_path: Path) -> None:
    """Java's clients would wait for it for a quarter of an hour, after all was scanned."""
    away = {**minicluster.spark_conf(), "spark.hadoop.yarn.resourcemanager.address": "localhost:1"}
    run = SparkRun("yarn", away, timeout=timedelta(minutes=5))
    with session_of(minicluster) as session:
        verdict = triage_with_spark([disk_full(tmp_path)], own_catalogue(), run, session)
    assert verdict.outcome is DiagnosisOutcome.CAUSE


def test_a_full_queue_delays_no_verdict_and_keeps_no_application(minicluster: Minicluster, tmp_path: Path) -> None:
    """The driver scans while it waits; once it has the verdict, it kills what still waits for a place."""
    conf = {**minicluster.spark_conf(), "spark.yarn.tags": "triage-waits"}
    with session_of(minicluster) as session:
        minicluster.pause("nodemanager")
        try:
            verdict = triage_with_spark([disk_full(tmp_path)], own_catalogue(), SparkRun("yarn", conf), session)
            (waited,) = session.yarn.applications("triage-waits")
        finally:
            minicluster.resume("nodemanager")
    assert verdict.outcome is DiagnosisOutcome.CAUSE
    assert waited.state is ApplicationState.KILLED
