"""A whole life of a stream: the fake engine, simulated servers, and the reports about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Report
from airflow_kstream.model.streams.stream_policies import RestartPolicy, WatchPolicy
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.orders.desired import request_restart, set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.engine import FakeEngine
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.yarn import TICKET_SPEC

SPEC = replace(
    TICKET_SPEC,
    application="/jobs/orders.jar",
    restart=RestartPolicy(jitter_ratio=0),
    # Five times as long as usual: the looks of a wait that changes nothing are all alike.
    watch=WatchPolicy(look_every=timedelta(seconds=10)),
)


@dataclass
class SimKdc:
    """A KDC that grants every ticket for ten hours; `at_request` happens before, and can raise."""

    at_request: Callable[[], object] = lambda: None

    def acquire(self, identity: Identity, cache: Path) -> timedelta:
        self.at_request()
        return timedelta(hours=10)


class Life:
    """A stream of the fake engine."""

    def __init__(self) -> None:
        self.clock, self.kdc = SimClock(), SimKdc()
        self.hdfs, self.yarn = SimHdfs(self.clock), SimYarn(self.clock)
        self.use(self.hdfs)

    def use(self, hdfs: SimHdfs, engine: FakeEngine | None = None, yarn: SimYarn | None = None) -> None:
        """Speak to these servers from now on, and run with this engine."""
        self.hdfs, self.yarn = hdfs, yarn or self.yarn
        self.engine = engine or FakeEngine(hdfs, self.yarn)
        self.run = StreamRun(session_of(hdfs, self.yarn), SPEC, self.engine)
        self._watch = Watch(self.run.session, lambda spec: self.engine, again=True)

    def reconcile(self, mode: Mode = Mode.WATCH) -> Report:
        return Reconciler(self.run, tell=lambda line: None).run(mode)

    def begin(self) -> Report:
        return self.reconcile(Mode.ENSURE)

    def watch(self) -> Verdict:
        return self._watch.round([SPEC.name])[SPEC.name]

    def set_desired(self, state: DesiredState) -> None:
        set_desired(self.run, state, "the test says so")

    def request_restart(self) -> None:
        request_restart(self.run, "a new jar")
