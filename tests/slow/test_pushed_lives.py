"""Streams that live as one application, past several lives of their tokens: on pushed ones, or on a keytab's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.demo.flink_job import build_job
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import FLINKS, Feature
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stream import (
    FlinkStreamSpec,
    KeytabCredentials,
    ProxyUserCredentials,
    StreamCredentials,
    StreamSpec,
    TicketCredentials,
)
from airflow_kstream.model.streams.stream_policies import RefreshPolicy
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.orders.desired import set_desired, start_from
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.brief_clusters import brief_cluster
from tests.live.faults.rows import Rows, counted_rows, rows_of
from tests.live.flink_streams import BriskEngine, Stream, flink_stream, rows_folder
from tests.live.streams import UNAWARE, at_pace, await_commits, look, rate_stream, reconciler
from tests.tables import Row

pytestmark = [pytest.mark.lives, pytest.mark.timeout(3600)]

# On a busy machine a stream commits a minute after its claim, and a driver takes tokens within half a minute.
INTERVAL, LIFE = timedelta(seconds=100), timedelta(minutes=5)
FLINKS_LIFE = timedelta(minutes=4)
# Seconds between two batches.
PACE = 4
REFRESH = RefreshPolicy(confirm_within=timedelta(seconds=30))
TICKET, PROXY_USER = TicketCredentials(refresh=True), ProxyUserCredentials(getuser(), refresh=True)
STREAMS = (
    (at_pace(rate_stream("ticket", TICKET, application=UNAWARE, refresh=REFRESH), PACE), "streamer"),
    (at_pace(rate_stream("proxy-user", PROXY_USER, refresh=REFRESH), PACE), "gateway"),
)


@dataclass
class Lasting:
    """A stream that is kept alive; how often tokens were pushed to it, and how many of its workers were killed."""

    minicluster: Minicluster
    supervisor: Reconciler
    folder: Path
    application: str = ""
    pushes: int = 0
    killed: int = 0

    @property
    def spec(self) -> StreamSpec:
        return self.supervisor.spec

    def begin(self) -> None:
        self.application = str(self.supervisor.run().job.application)
        await_commits(self.supervisor.session, self.spec)
        # From here its driver is known to take tokens, or it would be restarted when its restart is due.
        self.keep()

    def age(self) -> timedelta:
        app = self.supervisor.session.yarn.application(self.application)
        assert app.alive, f"{self.spec.name} ended: {app.diagnostics}"
        assert app.started
        return self.supervisor.session.hdfs.now() - app.started

    def keep(self) -> None:
        report = self.supervisor.run(Mode.WATCH)
        for done in report.done:
            print(f"{self.age()} {self.spec.name}: {done.what}: {done.why}")
        assert (report.generation, report.job.application) == (1, self.application), report
        self.pushes += sum("s use them" in done.what for done in report.done)

    def lose_a_worker(self, while_waiting: Callable[[], object]) -> None:
        """Lose what a new one can replace only with tokens that live. Executors share those of their driver."""

    def rows(self) -> Rows:
        return rows_of(self.minicluster, self.supervisor.session.hdfs, self.spec.arguments[0], self.folder)


class LastingFlink(Lasting):
    """The same of Flink's. Its TaskManagers are replaced by such as have nothing of it in their node's cache."""

    def begin(self) -> None:
        start_from(self.supervisor.subject, "a test", fresh=True)
        super().begin()

    def lose_a_worker(self, while_waiting: Callable[[], object]) -> None:
        session, spec = self.supervisor.session, self.spec
        assert isinstance(spec, FlinkStreamSpec)
        Stream(self.minicluster, session, spec, rows_folder(spec), []).lose_its_taskmanager(while_waiting)
        self.killed += 1

    def rows(self) -> Rows:
        assert isinstance(self.spec, FlinkStreamSpec)
        return counted_rows(self.minicluster, self.supervisor.session.hdfs, rows_folder(self.spec), self.folder)


def test_jobs_without_a_keytab_live_as_one_application(tmp_path: Path, row: Callable[[str], Row]) -> None:
    """Each life of their tokens has its failover, after which every connection needs a token that still lives."""
    with brief_cluster(tmp_path / "pushed", INTERVAL, LIFE, frozenset({Feature.HA})) as up, ExitStack() as stack:
        streams = [
            Lasting(up, stack.enter_context(reconciler(up, spec, who)), tmp_path / spec.name) for spec, who in STREAMS
        ]
        _live(up, streams, 5, row)


def test_flink_jobs_replace_their_taskmanagers_past_each_life_of_their_tokens(
    tmp_path: Path, row: Callable[[str], Row]
) -> None:
    """A keytab's job on tokens of its own, the others on pushed ones, and all of them in one application each."""
    features = frozenset({Feature.HA, *FLINKS})
    with brief_cluster(tmp_path / "up", INTERVAL, FLINKS_LIFE, features) as up, ExitStack() as stack:
        keytab = KeytabCredentials(up.principal("streamer"), str(up.keytab("streamer")))
        jars = {feature: build_job(feature, tmp_path / f"{feature}.jar") for feature in FLINKS}

        def lasting(name: str, feature: Feature, credentials: StreamCredentials, who: str) -> Lasting:
            spec = flink_stream(up, feature, str(jars[feature]), credentials, name)
            supervisor = reconciler(up, replace(spec, refresh=REFRESH), who, BriskEngine())
            return LastingFlink(up, stack.enter_context(supervisor), tmp_path / name)

        streams = [
            lasting("keytab", Feature.FLINK_2, keytab, "streamer"),
            lasting("ticket", Feature.FLINK, TICKET, "streamer"),
            lasting("proxy-user", Feature.FLINK_2, PROXY_USER, "gateway"),
        ]
        _live(up, streams, 3, row)


def _live(minicluster: Minicluster, streams: Iterable[Lasting], lives: float, row: Callable[[str], Row]) -> None:
    life = minicluster.plan.max_lifetime

    def keep() -> None:
        for each in streams:
            each.keep()

    for each in streams:
        each.begin()
    failovers = 0
    while min(each.age() for each in streams) < lives * life:
        keep()
        if min(each.age() for each in streams) > (failovers + 1.1) * life:
            minicluster.failover()
            failovers += 1
            for each in streams:
                each.lose_a_worker(keep)
    for each in streams:
        _tell(each, lives, failovers, row)


def _tell(lasting: Lasting, lives: float, failovers: int, row: Callable[[str], Row]) -> None:
    lived, session = lasting.age() / lasting.minicluster.plan.max_lifetime, lasting.supervisor.session
    set_desired(lasting.supervisor.subject, DesiredState.STOPPED, "it has lived for long enough")
    lasting.supervisor.run()
    rows, pushes = lasting.rows(), lasting.pushes
    cells = (f"{lived:.1f}", pushes, failovers, lasting.killed, rows.produced, rows.lost, rows.doubled)
    row("lives")(f"{lasting.spec.engine}: {lasting.spec.credentials.mode}", *cells)
    assert (rows.lost, rows.doubled) == (0, 0)
    assert pushes > lives or not lasting.spec.credentials.refresh
    assert look(session, lasting.spec).generation == 1
