"""Secrets that a running stream refers to reach its driver, and nothing that anybody else may read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.demo.airflow_api import Connection
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.live.airflow import LiveAirflow
from tests.live.planted import PLANTED
from tests.live.streams import await_commits, await_that, cluster, look, rate_stream, reconciler, stopped
from tests.secrets.search import where_any_is
from tests.secrets.watch import Watch

# Their names give nothing away, not even to Spark's own redaction.
CONF, FROM_VAR, FROM_ENV = "spark.planted.conn", "PLANTED_VAR", "PLANTED_ENV"
# Airflow's own list of variables shows their values, but for those with a name such as this one.
VARIABLE = "planted_secret"
# The containers' private folders: a user that may read those may read the process, too.
_AT_HOME = ("data", "keytabs", "kdc")


def test_planted_secrets_reach_the_driver_and_nothing_that_is_kept_or_shown(
    minicluster: Minicluster, airflow: LiveAirflow, watch: Watch, tmp_path: Path
) -> None:
    watch.secrets |= {value.encode() for value in PLANTED.values()}
    airflow.api.put_connection(Connection("planted", "generic", password=PLANTED["conn"]))
    airflow.api.create_variable(VARIABLE, PLANTED["var"])
    spec = secretive(rate_stream("secretive", TicketCredentials()))
    task = airflow.declare(spec)
    with reconciler(minicluster, spec) as supervisor:
        airflow.await_state(task, "deferred")
        await_commits(supervisor.session, spec)
        assert_that_they_arrived(minicluster)
        # Notes of what was told are for their supervisor's eyes, and the superuser's.
        with cluster(minicluster, "hdfs") as found, open_session(found, found.watcher) as superuser:
            kept = "\n".join(texts_below(superuser.hdfs, found.state_dir))
        set_desired(supervisor.subject, DesiredState.STOPPED, "the test is over")
        await_that(lambda: stopped(look(supervisor.session, spec)), "it stops")
        airflow.detach(task)
    rows = "\n".join(whole_database(airflow.home.root / "airflow.db"))
    log = airflow.api.task_log(task, airflow.api.task_instance(task).try_number)
    shown = "\n".join([*watch.command_lines, log])
    # The search looks where the references are, so it would find a secret in their place.
    assert "conn:planted" in kept
    assert "conn:planted" in rows
    for value in PLANTED.values():
        assert value not in kept
        assert value not in rows
        assert value not in shown
    secrets = {value.encode() for value in PLANTED.values()}
    assert where_any_is(secrets, [airflow.home.root, minicluster.root], tmp_path, not_below=_AT_HOME) == []


def secretive(spec: StreamSpec) -> StreamSpec:
    environment = {FROM_VAR: SecretRef(f"var:{VARIABLE}"), FROM_ENV: SecretRef("env:KSTREAM_PLANTED")}
    return replace(spec, conf={CONF: SecretRef("conn:planted")}, deploy=Deploy(environment=environment))


def assert_that_they_arrived(minicluster: Minicluster) -> None:
    environments = [environment for process in psutil.process_iter() if (environment := environment_of(process))]
    assert any(environment.get(FROM_VAR) == PLANTED["var"] for environment in environments)
    assert any(environment.get(FROM_ENV) == PLANTED["env"] for environment in environments)
    localized = minicluster.root.glob("data/**/__spark_conf__.properties")
    assert any(f"{CONF}={PLANTED['conn']}" in file.read_text() for file in localized)


def environment_of(process: psutil.Process) -> dict[str, str]:
    """Return a container's environment; Airflow's own processes have KSTREAM_PLANTED under another name."""
    try:
        return process.environ()
    except psutil.Error:
        return {}


def texts_below(hdfs: Hdfs, folder: str) -> Iterator[str]:
    for child in hdfs.list(folder):
        path = f"{folder}/{child.name}"
        if child.is_folder:
            yield from texts_below(hdfs, path)
        else:
            yield hdfs.read(path)


def whole_database(path: Path) -> Iterator[str]:
    """Return every value of every table, including serialized DAGs, rendered fields, XComs and triggers."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        assert "serialized_dag" in tables
        for table in tables:
            for row in database.execute(f'select * from "{table}"'):
                yield from (value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in row)
