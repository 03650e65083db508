"""The doctor's word on lost logs, held against the cluster: with proxy-user privileges they are kept, without not."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from getpass import getuser
from pathlib import Path
from unittest import mock

import pytest

from airflow_kstream.clients.nodemanagers import NodeManager
from airflow_kstream.minicluster import Feature, Minicluster, MiniclusterConfig
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.streams.stream import KeytabCredentials
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.examination import examine_cluster
from tests.live.bring_up import bring_up
from tests.live.streams import await_commits, await_that, look, rate_stream, reconciler

pytestmark = pytest.mark.lives
INTERVAL, LIFE = timedelta(minutes=1), timedelta(minutes=3)
# Seconds after the latest end of its launch's tokens.
MARGIN = 10.0


def aggregated(session: ClusterSession, application: str) -> bool:
    """Return whether any node has written the application's logs to HDFS (LogAggregationFileController)."""
    bucket = int(application.rpartition("_")[2]) % 10_000
    return bool(session.hdfs.names(f"/tmp/logs/{getuser()}/bucket-logs-tfile/{bucket:04d}/{application}"))


@pytest.mark.parametrize("privileged", [False, True])
def test_logs_of_a_job_that_outlived_its_launch_s_tokens(tmp_path: Path, privileged: bool) -> None:
    """The job has a keytab and new tokens of its own; its NodeManager has those of its first container."""
    features = {Feature.HA, *([Feature.PROXY_USER_PRIVILEGES] if privileged else [])}
    plan = MiniclusterConfig(
        tmp_path, frozenset(features), renew_interval=INTERVAL, max_lifetime=LIFE, realm="LOGS.TEST"
    )
    minicluster = bring_up(plan)
    try:
        with mock.patch.dict(os.environ, KRB5_CONFIG=str(minicluster.krb5_conf)):
            foretold, kept = _life(minicluster)
        assert (foretold, kept) == (not privileged, privileged)
    finally:
        minicluster.down()


def _life(minicluster: Minicluster) -> tuple[bool, bool]:
    """Let a job outlive its launch's tokens, and end; return whether the loss was foretold, and the logs kept."""
    spec = rate_stream("outliving", KeytabCredentials(minicluster.principal("streamer")))
    with reconciler(minicluster, spec) as supervisor:
        session = supervisor.session
        supervisor.run()
        await_commits(session, spec)
        app = look(session, spec).current
        container = LoggedContainer.of_link(app.logs_url) if app else None
        assert app
        assert container
        report = examine_cluster(replace(session.cluster, watcher=session.identity))
        lost = [concern for finding, concern in report.of(spec.name) if finding.id == "rm-privileges"]
        assert app.started
        # Foretold is a lower bound: its client got the tokens some time between the claim and the application's start.
        latest = app.started + LIFE
        assert all(concern.since and concern.since <= latest for concern in lost)
        time.sleep(max((latest - datetime.now(UTC)).total_seconds(), 0) + MARGIN)
        session.yarn.kill(app.id, "its logs are to be aggregated", timedelta(seconds=60))
        node = NodeManager(container.web, session.identity, session.cluster.tls)
        await_that(lambda: node.application(app.id) is None, "its logs are aggregated, or given up")
        node.close()
        return bool(lost), aggregated(session, app.id)
