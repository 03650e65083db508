"""Streams without a keytab that live as one application, past five lives of their tokens."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stream import ProxyUserCredentials, StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import RefreshPolicy
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.orders.desired import set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.brief_clusters import brief_cluster
from tests.live.faults.rows import rows_of
from tests.live.streams import UNAWARE, at_pace, await_commits, look, rate_stream, reconciler
from tests.tables import Row

pytestmark = [pytest.mark.lives, pytest.mark.timeout(3600)]

# On a busy machine a stream commits a minute after its claim, and a driver takes tokens within half a minute.
INTERVAL, LIFE = timedelta(seconds=100), timedelta(minutes=5)
LIVES = 5
# Seconds between two batches.
PACE = 4
REFRESH = RefreshPolicy(confirm_within=timedelta(seconds=30))
TICKET, PROXY_USER = TicketCredentials(refresh=True), ProxyUserCredentials(getuser(), refresh=True)
STREAMS = (
    (at_pace(rate_stream("ticket", TICKET, application=UNAWARE, refresh=REFRESH), PACE), "streamer"),
    (at_pace(rate_stream("proxy-user", PROXY_USER, refresh=REFRESH), PACE), "gateway"),
)


@dataclass
class Pushed:
    """A stream that is kept alive, and how often tokens were pushed to it."""

    supervisor: Reconciler
    application: str = ""
    pushes: int = 0

    @property
    def spec(self) -> StreamSpec:
        return self.supervisor.spec

    def age(self) -> timedelta:
        app = self.supervisor.session.yarn.application(self.application)
        assert app.alive, f"{self.spec.name} ended: {app.diagnostics}"
        assert app.started
        return self.supervisor.session.hdfs.now() - app.started

    def keep(self) -> None:
        report = self.supervisor.run(Mode.WATCH)
        assert (report.generation, report.job.application) == (1, self.application), report
        self.pushes += sum("executors use them" in done.what for done in report.done)


def test_jobs_without_a_keytab_live_as_one_application(tmp_path: Path, row: Callable[[str], Row]) -> None:
    """Each life of their tokens has its failover, after which every connection needs a token that still lives."""
    with brief_cluster(tmp_path / "pushed", INTERVAL, LIFE, frozenset({Feature.HA})) as up:
        _live(up, tmp_path, row)


def _live(minicluster: Minicluster, tmp_path: Path, row: Callable[[str], Row]) -> None:
    with ExitStack() as stack:
        pushed = [Pushed(stack.enter_context(reconciler(minicluster, spec, who))) for spec, who in STREAMS]
        for each in pushed:
            each.application = str(each.supervisor.run().job.application)
            await_commits(each.supervisor.session, each.spec)
            # From here its driver is known to take tokens, or it would be restarted when its restart is due.
            each.keep()
        failovers = 0
        while min(each.age() for each in pushed) < LIVES * LIFE:
            for each in pushed:
                each.keep()
            if min(each.age() for each in pushed) > (failovers + 1.1) * LIFE:
                minicluster.failover()
                failovers += 1
        for each in pushed:
            _tell(minicluster, each, failovers, tmp_path, row)


def _tell(minicluster: Minicluster, pushed: Pushed, failovers: int, tmp_path: Path, row: Callable[[str], Row]) -> None:
    lives, session = pushed.age() / LIFE, pushed.supervisor.session
    set_desired(pushed.supervisor.subject, DesiredState.STOPPED, "it has lived for long enough")
    pushed.supervisor.run()
    folder = pushed.spec.arguments[0]
    rows = rows_of(minicluster, session.hdfs, folder, tmp_path / pushed.spec.name)
    row("lives")(pushed.spec.name, f"{lives:.1f}", pushed.pushes, failovers, rows.produced, rows.lost, rows.doubled)
    assert (rows.lost, rows.doubled) == (0, 0)
    assert pushed.pushes > LIVES
    assert look(session, pushed.spec).generation == 1
