"""Rounds over the streams that triggers wait for: one request to the ResourceManager for all that are due."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from airflow_kstream import metrics
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.stall import LATE as LATE_PULSES
from airflow_kstream.model.streams.stall import Stall
from airflow_kstream.policy.streams.horizon.start_pacing import Turns
from airflow_kstream.policy.streams.pulse.blindness import ClusterSight, Sight, reason_to_wake
from airflow_kstream.policy.streams.pulse.heartbeat import CONFIRMS
from airflow_kstream.policy.streams.pulse.stalls import Together
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.look.verdict import Verdict
from airflow_kstream.supervise.streams.look.watch import Subject, Watch
from airflow_kstream.triggers.lanes import Lanes, VerdictSource
from airflow_kstream.triggers.notifying import ClusterTeller
from airflow_kstream.triggers.shared import Opener
from airflow_kstream.triggers.stream_metrics import Environment

log = logging.getLogger(__name__)

# Seconds. A verdict that is overdue for this long is not a conclusion, whatever keeps it.
LATE = 120.0
# Seconds between two heartbeats, whatever the pace of the streams.
BEAT = 30.0
# Of each connection, by the loop's clock. It outlives the pollers: a cluster whose only task was just woken has none.
_clusters: dict[str, ClusterSight] = {}
_environments: dict[str, Environment] = {}
_turns: dict[str, Turns] = {}
_together: dict[str, Together] = {}
_tellers: dict[str, ClusterTeller] = {}


@contextmanager
def _watch(cluster: Cluster) -> Iterator[VerdictSource]:
    with open_session(cluster, cluster.watcher) as session:
        yield Watch(session, again=True)


@dataclass(frozen=True)
class PolledVerdict:
    """A verdict, what its trigger knows after it, and the reason to wake the task of a stream that nobody sees.

    `blind` is whether nobody sees it for a cause of its own, which somebody has to know of.
    """

    verdict: Verdict
    sight: Sight
    wake: str = ""
    blind: bool = False


@dataclass(frozen=True)
class _Waiter:
    """A trigger that wants its stream's verdict every `every` seconds; it arrived at `since`, by the loop's clock."""

    subject: Subject
    every: float
    sight: Sight
    since: float
    seen: asyncio.Future[PolledVerdict] = field(compare=False)

    @property
    def due(self) -> float:
        return self.since + self.every

    @property
    def late(self) -> float:
        return self.due + LATE

    def may_come_along(self, now: float) -> bool:
        """Return whether at least half of `every` has passed.

        That puts triggers of the same pace into one round, and spares slow ones the pace of fast ones.
        """
        return now >= self.since + self.every / 2


class ClusterPoller:
    """A poller that hands each waiting trigger its stream's verdict, at that trigger's pace or up to twice as often.

    Everything that blocks (SPNEGO, HTTP) runs in the lanes' threads. So the triggerer's loop never waits for a server,
    and neither a cluster nor a stream whose servers do not respond delays any other. What nobody can conclude anything
    about is an event of the cluster, or the reason to wake a stream's task: `policy.streams.blindness` decides.
    """

    def __init__(self, conn_id: str, opener: Opener[VerdictSource] = _watch) -> None:
        self._conn_id = conn_id
        self._waiting: list[_Waiter] = []
        self._changed = asyncio.Event()
        self._lanes = Lanes(conn_id, opener, self._deliver, self._changed.set)
        self._task: asyncio.Task[None] | None = None
        self._next_beat = 0.0

    async def next_verdict(self, subject: Subject, every: float, sight: Sight) -> PolledVerdict:
        """Return the stream's verdict from a look that begins after now, or none if that look is late."""
        loop = asyncio.get_running_loop()
        waiter = _Waiter(subject, every, sight, loop.time(), loop.create_future())
        self._waiting.append(waiter)
        self._changed.set()
        if self._task is None or self._task.done():
            # A context of its own: its lines must not land in the log of the task that happened to be first.
            self._task = asyncio.create_task(self._rounds(), context=Context())
        return await waiter.seen

    def turn(self, stream: str, verdict: Verdict, *, due: bool, within: float) -> float | None:
        """Return the seconds until the stream's task may be woken; None if its turn is not within so many.

        Only a start waits for a turn. One that is not `due` keeps its place, which is known before a freeze ends.
        """
        now, turns = asyncio.get_running_loop().time(), _turns.get(self._conn_id, Turns())
        wait: float | None = 0.0
        if verdict.past.start_may_wait is None:
            turns = turns.without(stream)
        else:
            turns = turns.waits(stream, verdict.past.start_may_wait, now)
            if due:
                turns, wait = turns.take(stream, now, within)
        _turns[self._conn_id] = turns
        return wait if due else None

    def why_held_back(self, stall: Stall) -> str:
        """Return why a stall is not a reason for a restart while the cluster is as it is; empty if it may be one."""
        now, together = asyncio.get_running_loop().time(), _together.get(self._conn_id, Together())
        return together.why_held_back(now, self._cluster(), (stall.limit * CONFIRMS).total_seconds())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._lanes.close()

    async def _rounds(self) -> None:
        while True:
            self._changed.clear()
            try:
                left = self._begin_what_is_due()
                left = min(self._beat(), BEAT if left is None else left)
            except Exception:
                # A defect of ours must not leave every task of this cluster waiting forever.
                log.exception("The rounds over %s failed", self._conn_id)
                left = 1.0
            # Not wait_for: on Python 3.11 it swallows a cancellation that comes just after the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()

    def _begin_what_is_due(self) -> float | None:
        """Begin a round if one is due, and return the seconds until the next look at the clock; None if none is."""
        now = asyncio.get_running_loop().time()
        # A trigger that has ended has cancelled its future.
        self._waiting = [waiter for waiter in self._waiting if not waiter.seen.done()]
        for waiter in [waiter for waiter in self._waiting if now >= waiter.late]:
            why = f"no look at {waiter.subject.name} has ended for {_words(now - waiter.since)}"
            self._resolve(waiter, Verdict(None, why, shared=True), now)
        busy = self._lanes.looking_at
        idle = [waiter for waiter in self._waiting if waiter.subject.name not in busy]
        if any(now >= waiter.due for waiter in idle) and self._lanes.ready():
            subjects = {waiter.subject.name: waiter.subject for waiter in idle if waiter.may_come_along(now)}
            self._lanes.begin(subjects.values(), now)
        return self._left(now)

    def _beat(self) -> float:
        """Send the time of this round and what is known of the cluster, if a beat is due; return the seconds until one.

        The time is the host's, in seconds since 1970: exporters go on showing the last value of a triggerer that died.
        It shows that rounds are begun, whatever the servers answer.
        """
        now = asyncio.get_running_loop().time()
        if now >= self._next_beat:
            self._next_beat = now + BEAT
            metrics.cluster_gauge("heartbeat", datetime.now(UTC).timestamp(), self._conn_id)
            self._publish()
        return self._next_beat - now

    def _left(self, now: float) -> float | None:
        waits = [waiter.due if waiter.due > now else waiter.late for waiter in self._waiting]
        lefts = [moment - now for moment in waits]
        if (slow := self._lanes.help(now)) is not None:
            lefts.append(slow)
        return max(min(lefts), 0.0) if lefts else None

    def _deliver(self, name: str, verdict: Verdict, began: float) -> None:
        now = asyncio.get_running_loop().time()
        late = verdict.lives and verdict.progress.pulse in LATE_PULSES
        together = _together.get(self._conn_id, Together())
        _together[self._conn_id] = together.saw(name, now, gets_on=verdict.step is not None and not late)
        if verdict.step is not None:
            self._notice(self._cluster().saw(now), verdict, now)
            environment = _environments.setdefault(self._conn_id, Environment(self._conn_id))
            environment.saw(name, verdict.past.environment, now)
            self._tell(verdict)
        for waiter in [waiter for waiter in self._waiting if waiter.subject.name == name and waiter.since <= began]:
            self._resolve(waiter, verdict, now)
        self._changed.set()

    def _resolve(self, waiter: _Waiter, verdict: Verdict, now: float) -> None:
        self._waiting.remove(waiter)
        if not waiter.seen.done():
            waiter.seen.set_result(self._seen(waiter.sight, verdict, now))

    def _seen(self, sight: Sight, verdict: Verdict, now: float) -> PolledVerdict:
        if verdict.step is not None:
            plan_in = verdict.credentials.plan_in
            return PolledVerdict(verdict, sight.saw(None if plan_in is None else now + plan_in.total_seconds()))
        sight = sight.failed(now, shared=verdict.shared)
        self._notice(self._cluster().failed(now, sight), verdict, now)
        self._tell(verdict)
        wake = reason_to_wake(sight, self._cluster(), now)
        if wake:
            self._notice(self._cluster().woke(now, sight), verdict, now)
            sight = replace(sight, wakings=sight.wakings + 1)
        return PolledVerdict(verdict, sight, wake, sight.blind_alone(self._cluster(), now))

    def _cluster(self) -> ClusterSight:
        return _clusters.setdefault(self._conn_id, ClusterSight())

    def _notice(self, after: ClusterSight, verdict: Verdict, now: float) -> None:
        """Keep the cluster's sight, and tell the begin and the end of its event, once each."""
        before = self._cluster().unreachable_since
        _clusters[self._conn_id] = after
        if before is None and after.unreachable_since is not None:
            log.error("Cluster %s is unreachable, so none of its streams is seen: %s", self._conn_id, verdict.why)
            self._publish()
        if before is not None and after.unreachable_since is None:
            log.warning("Cluster %s is reachable again, after %s", self._conn_id, _words(now - before))
            self._publish()

    def _tell(self, verdict: Verdict) -> None:
        """Hold what is known of the cluster now against what was told."""
        teller = _tellers.setdefault(self._conn_id, ClusterTeller(self._conn_id))
        environment = _environments.get(self._conn_id)
        sight = _clusters.get(self._conn_id)
        unreachable = verdict.why if sight is not None and sight.unreachable_since is not None else ""
        causes = environment.causes if environment else set()
        teller.looked(unreachable, causes, concluded=verdict.step is not None)

    def _publish(self) -> None:
        sight = _clusters.get(self._conn_id)
        unreachable = sight is not None and sight.unreachable_since is not None
        metrics.cluster_gauge("unreachable", float(unreachable), self._conn_id)


def _words(seconds: float) -> str:
    return format_duration(timedelta(seconds=seconds))
