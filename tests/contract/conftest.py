"""One stream that runs and one job that failed, for all contract tests that look at a real Spark application."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.streams import (
    PUSHABLE_BY_HAND,
    at_pace,
    await_commits,
    await_that,
    cluster,
    rate_stream,
    reconciler,
    submit_by_hand,
)


@pytest.fixture(scope="package")
def session(minicluster: Minicluster) -> Iterator[ClusterSession]:
    """The cluster's clients, as streamer."""
    with cluster(minicluster) as opened, open_session(opened, opened.watcher) as session:
        yield session


@dataclass(frozen=True)
class Living:
    """A stream whose first generation runs; no test ends it."""

    supervisor: Reconciler
    application: str


APP_NAME = "Living.Stream v2"


@pytest.fixture(scope="package")
def living(minicluster: Minicluster) -> Iterator[Living]:
    """A stream without a keytab, past its first commit, that takes tokens, also by hand. Its batches are rare.

    People call it otherwise, with what no tag, folder or DAG id could have.
    """
    stream = rate_stream("living_v2", TicketCredentials(refresh=True), conf=PUSHABLE_BY_HAND, app_name=APP_NAME)
    spec = at_pace(stream, 10)
    with reconciler(minicluster, spec) as supervisor:
        session = supervisor.session
        app = supervisor.run().job.application or ""
        try:
            await_commits(session, spec)
            yield Living(supervisor, app)
        finally:
            session.yarn.kill(app, "the tests are over", timedelta(seconds=60))
            session.hdfs.delete(supervisor.stream.folder, recursive=True)


JOB = """
from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate()
raise ValueError("this job fails")
"""


@pytest.fixture(scope="package")
def failed(minicluster: Minicluster, session: ClusterSession, tmp_path_factory: pytest.TempPathFactory) -> Application:
    """A job of plain spark-submit that raised an error in its driver, after its end."""
    job = tmp_path_factory.mktemp("job") / "failing.py"
    job.write_text(JOB)
    spec = rate_stream("failed", TicketCredentials(), application=str(job))
    submit_by_hand(minicluster, spec, "contract-failed", **{"spark.yarn.maxAppAttempts": "1"})
    (app,) = session.yarn.applications("contract-failed")
    await_that(lambda: not session.yarn.application(app.id).alive, "it fails")
    return session.yarn.application(app.id)
