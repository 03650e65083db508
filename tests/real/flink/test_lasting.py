"""Streams that outlive the tokens of their launch: on those that their supervisor pushes, or on their keytab's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from airflow_kstream.demo.flink_job import build_job
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.flink import TASK_MANAGER
from airflow_kstream.model.streams.contract import pushes
from airflow_kstream.model.streams.flink_contract import kept_file, read_kept
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamCredentials, TicketCredentials
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.orders.desired import start_from
from tests.live.flink import rows_of
from tests.live.flink_streams import BriskEngine, Stream, declared
from tests.live.streams import BRISK_RESTART, await_that

# Each checkpoint finds the connections to the NameNode closed, so it shows a token again.
FORGETFUL = {"flink.hadoop.ipc.client.connection.maxidletime": "500"}


@contextmanager
def submitted(
    flinks: Minicluster,
    session: ClusterSession,
    feature: Feature,
    tmp_path_factory: pytest.TempPathFactory,
    credentials: StreamCredentials,
    name: str,
) -> Iterator[Stream]:
    jar = build_job(feature, tmp_path_factory.mktemp("jar") / "rows.jar")
    stream = replace(declared(flinks, session, feature, jar, credentials, name), engine=BriskEngine())
    # Pushes are due where a restart would be planned: 36 seconds after its claim.
    restart = replace(BRISK_RESTART, plan_ratio=0.01)
    stream.spec = replace(stream.spec, conf={**stream.spec.conf, **FORGETFUL}, restart=restart)
    try:
        start_from(stream.run, "a test", fresh=True)
        stream.reconcile()
        stream.await_checkpoints(2)
        yield stream
    finally:
        stream.end()


def test_a_ticket_stream_lives_on_the_tokens_that_its_supervisor_pushes(
    flinks: Minicluster, session: ClusterSession, feature: Feature, tmp_path_factory: pytest.TempPathFactory
) -> None:
    credentials = TicketCredentials(refresh=True)
    with submitted(flinks, session, feature, tmp_path_factory, credentials, "fed") as stream:
        application, launched = stream.application.id, stream.horizon
        assert launched.reason is HorizonReason.TOKEN_MAX_LIFETIME

        def applied() -> int:
            stream.reconcile()
            known = pushes(stream.files(), 1)
            return sum(push.until is not None for push in known.pushed if push.id in known.applied)

        await_that(lambda: applied() >= 1, "its JobManager uses pushed tokens")
        ends = stream.horizon
        assert ends.reason is HorizonReason.NOT_PUSHED
        stream.cancel_launch_token()
        before = {process.pid for process in stream.processes(TASK_MANAGER)}
        first = ends.hard
        assert first is not None
        await_that(lambda: applied() >= 0 and moved(stream, first), "its horizon moves")
        await_that(lambda: applied() >= 0 and datetime.now(UTC) > first, "the first pushed token has ended")
        stream.await_checkpoints(2)
        assert {process.pid for process in stream.processes(TASK_MANAGER)} == before
        stream.lose_its_taskmanager(stream.reconcile)
        assert stream.application.id == application
        rows = rows_of(session, stream.rows)
        assert sorted(rows) == list(range(len(rows)))


def moved(stream: Stream, first: datetime) -> bool:
    ends = stream.horizon.hard
    return ends is not None and ends > first


def test_a_keytab_stream_replaces_a_taskmanager_after_the_end_of_its_launch_token(
    flinks: Minicluster, session: ClusterSession, feature: Feature, tmp_path_factory: pytest.TempPathFactory
) -> None:
    credentials = KeytabCredentials(flinks.principal("streamer"), keytab=str(flinks.keytab("streamer")))
    with submitted(flinks, session, feature, tmp_path_factory, credentials, "keeping") as stream:
        application = stream.application.id

        def rewritten() -> datetime | None:
            names = stream.files()
            text = stream.run.folder.text(kept_file(1)) if kept_file(1) in names else ""
            return read_kept(text, 1).rewritten if text else None

        await_that(lambda: rewritten() is not None, "its keeper confirms tokens of its own")
        await_that(lambda: covered(stream), "nothing ends a replacement")
        launched = stream.cancel_launch_token()
        dead = launched.issued + flinks.plan.renew_interval
        await_that(lambda: (rewritten() or launched.issued) > dead, "its keeper goes on after one renew interval")
        stream.lose_its_taskmanager()
        # What was read of its word serves for a minute, half of a token's life here.
        await_that(lambda: covered(stream), "nothing ends a replacement after it")
        stream.reconcile()
        assert stream.application.id == application
        rows = rows_of(session, stream.rows)
        assert sorted(rows) == list(range(len(rows)))


def covered(stream: Stream) -> bool:
    """Return whether the supervisor foretells no end of the time in which a TaskManager can be replaced."""
    replacement = stream.horizon.replacement
    return replacement is not None and replacement.known and replacement.until is None and not replacement.silent
