"""The main job on the real cluster: its own daemons' logs through Kafka into a table, each record once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet  # type: ignore[import-untyped]
import pytest

from airflow_kstream.demo.jobs import cluster_events
from airflow_kstream.demo.shipper import ShipperSettings
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.jars import kafka_connector_jars
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamSpec
from airflow_kstream.supervise.streams.orders.desired import set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.shipping import settings_of, shipping, stable_ends
from tests.live.streams import BRISK_RESTART, BRISK_STOP, BRISK_WATCH, await_commits, await_that, look, reconciler

JOBS = Path(cluster_events.__file__).parent


@pytest.fixture
def settings(minicluster: Minicluster) -> ShipperSettings:
    return settings_of(minicluster, "cluster-events", minicluster.event_logs())


@pytest.fixture
def spec(minicluster: Minicluster, settings: ShipperSettings, tmp_path: Path) -> StreamSpec:
    folder = f"/user/{getuser()}/cluster-events"
    # Spark refuses to ship one keytab both for itself and as a file for Kafka.
    keytab = Path(shutil.copy(minicluster.keytab("streamer"), tmp_path / "streamer-kafka.keytab"))
    arguments = {
        "--bootstrap-servers": settings.bootstrap_servers,
        "--topic": settings.topic,
        "--table": f"{minicluster.default_fs}{folder}/table",
        "--checkpoint": f"{minicluster.default_fs}{folder}/checkpoint",
        "--kafka-principal": settings.principal,
        "--kafka-keytab": f"./{keytab.name}",
        "--trigger-seconds": "2",
    }
    return StreamSpec(
        name="cluster-events",
        credentials=KeytabCredentials(settings.principal, str(settings.keytab)),
        application=str(JOBS / "cluster_events.py"),
        arguments=tuple(word for pair in arguments.items() for word in pair),
        checkpoints=(f"{folder}/checkpoint",),
        conf={"spark.security.credentials.kafka.enabled": "false"},
        deploy=Deploy(jars=tuple(map(str, kafka_connector_jars())), files=(str(keytab),)),
        restart=BRISK_RESTART,
        stop=BRISK_STOP,
        watch=BRISK_WATCH,
    )


@contextmanager
def running(minicluster: Minicluster, spec: StreamSpec) -> Iterator[Reconciler]:
    """Run the stream past its first commit; stop it by its marker at the end."""
    with reconciler(minicluster, spec) as supervisor:
        supervisor.run()
        try:
            await_commits(supervisor.session, spec)
            yield supervisor
        finally:
            set_desired(supervisor.subject, DesiredState.STOPPED, "the test is over")
            report = supervisor.run()
    assert report.job.succeeded


def await_everything_so_far(supervisor: Reconciler, spec: StreamSpec, settings: ShipperSettings) -> None:
    """Wait until the stream's last commit covers the topic's present end; the logs keep growing meanwhile."""
    ends = stable_ends(settings.login, settings.topic)
    checkpoint, hdfs = spec.checkpoints[0], supervisor.session.hdfs

    def reached() -> bool:
        batch = hdfs.checkpoint(checkpoint).position.commit
        last = json.loads(hdfs.read(f"{checkpoint}/offsets/{batch}").splitlines()[-1])[settings.topic]
        return all(last[str(number)] >= end for number, end in ends.items())

    await_that(reached, f"{spec.name} has read up to {ends}")


def audited(minicluster: Minicluster, spec: StreamSpec, settings: ShipperSettings, ends: Path) -> dict[str, Any]:
    """Return the checker's output as a user sees it."""
    table = spec.arguments[spec.arguments.index("--table") + 1]
    files = [word for name, path in settings.files.items() for word in ("--file", f"{name}={path}")]
    done = subprocess.run(
        [sys.executable, str(JOBS / "verify_events.py"), "--table", table, "--ends", str(ends), *files],
        env=minicluster.client_env("streamer"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    findings: dict[str, Any] = json.loads(done.stdout)
    return findings


def rows_of(minicluster: Minicluster, spec: StreamSpec, folder: Path, **where: str) -> list[dict[str, Any]]:
    table = spec.arguments[spec.arguments.index("--table") + 1]
    minicluster.hdfs("dfs", "-get", table, str(folder / "table"), as_="streamer")
    rows = parquet.read_table(
        sorted(folder.glob("table/*.parquet")), filters=[(name, "=", value) for name, value in where.items()]
    )
    return list(rows.to_pylist())


def test_each_line_of_the_clusters_own_logs_becomes_one_row(
    minicluster: Minicluster, spec: StreamSpec, settings: ShipperSettings, tmp_path: Path
) -> None:
    """The shipper is killed twice, and sends all lines again; the stream reads meanwhile, and the checker tells these
    rows from any that the stream wrote twice. The table then knows the stream's own token."""
    with shipping(settings, tmp_path) as first, running(minicluster, spec) as supervisor:
        first.kill()
        with shipping(settings, tmp_path):
            await_everything_so_far(supervisor, spec, settings)
        with shipping(settings, tmp_path) as last:
            ends = tmp_path / "ends.json"
            ends.write_text(json.dumps(last.stop()))
        await_everything_so_far(supervisor, spec, settings)
        application = look(supervisor.session, spec).current
    findings = audited(minicluster, spec, settings, ends)
    assert findings["expected"] == findings["found"] - findings["repeated"] > 1000
    assert findings["repeated"] > 0
    assert application is not None
    rows = rows_of(minicluster, spec, tmp_path, kind="TOKEN_SUBMITTED", application=application.id)
    (token,) = {(row["file"], row["byte_offset"]): row for row in rows}.values()
    assert token["owner"] == minicluster.principal("streamer")
    assert token["max_time"] - token["issue_time"] == minicluster.plan.max_lifetime
