"""Drivers as processes: they localise their fence, write checkpoints as Spark does, and outlive YARN's word."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_kstream.model.streams.contract import newest_claim, started_marker, stop_marker, stopped_marker
from tests.simulation.yarn import App

if TYPE_CHECKING:
    from tests.simulation.world import World

# spark.sql.streaming.minBatchesToRetain, which is 100 by default; shorter listings keep histories fast.
_RETAINED = 12
_DEAD_TOKEN = "token (HDFS_DELEGATION_TOKEN token 7 for streamer) can't be found in cache"
_CONCURRENT = "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log"

# An argument with which no job works.
BROKEN = "--broken"


@dataclass(frozen=True)
class Pace:
    """How a job works, in seconds. With `idle` the source brings nothing for so long after every `busy` batches."""

    trigger: float = 20.0
    batch: float = 4.0
    idle: float = 0.0
    busy: int = 5


@dataclass(frozen=True)
class Order:
    """What spark-submit was told."""

    name: str
    tags: tuple[str, ...]
    folder: str
    generation: int
    fence: str
    broken: bool = False


class Driver:
    """One driver. `folder` and `fence` are empty for a job that no supervisor of ours submitted."""

    def __init__(self, world: World, app: App, order: Order, checkpoint: str, issued: float) -> None:
        self.world, self.app, self.checkpoint = world, app, checkpoint
        self.folder, self.generation, self.fence = order.folder, order.generation, order.fence
        self.rng = random.Random(f"{world.plan.seed}/driver {app.id}")
        self.pace = world.plan.pace
        self.helper = world.plan.helper and bool(order.folder)
        self.alive, self.localised, self.begun, self.began_at = True, False, False, 0.0
        self.batches = 0
        self.name, self.writes, self.since_write = f"driver {order.generation}", 0, 0
        self.frozen_until, self.slept_at, self.woke_at = 0.0, -1.0, -1.0
        self._batch: int | None = None
        self._broken = order.broken
        self._dies_of = f"java.lang.IllegalArgumentException: {BROKEN}" if order.broken else world.plan.dies_of
        self._in_batch = False
        self._stopping = False
        self.token_ends = issued + world.life
        world.scheduler.after(self._chance(2, 10), self._localise)

    def __str__(self) -> str:
        number = self.app.id.rpartition("_")[2]
        return (
            f"generation {self.generation} of {self.folder} ({number})" if self.folder else f"a job by hand ({number})"
        )

    def noticed(self, name: str) -> None:
        """React to a file that appeared in the stream's folder, as the helper does within a second or so."""
        if self.helper and self.begun and self.alive:
            self.world.scheduler.after(self._chance(0.2, 1.6), self._look)

    @property
    def slept_through_its_end(self) -> bool:
        """Tell whether YARN gave it up while it was frozen: until it learns that, it works on where it was."""
        return self.slept_at >= 0 and not self.app.alive and self.app.finished >= self.slept_at

    def freeze(self, seconds: float) -> None:
        self.slept_at, self.frozen_until = self.world.now, self.world.now + seconds
        self.world.checks.tell(str(self), f"is frozen for {seconds:.0f} s")

    def end(self, state: str, final: str, diagnostics: str) -> None:
        """End the process; the ResourceManager learns it a moment later, unless the node is cut off."""
        if not self.alive:
            return
        self.alive = False
        self.world.checks.tell(str(self), f"ends: {state}, {diagnostics}")
        self.world.checks.ended(self)
        self.world.scheduler.after(self._chance(0.3, 3), lambda: self._report(state, final, diagnostics))

    def killed(self) -> None:
        """End by a SIGKILL of the NodeManager, whose ResourceManager knows already."""
        if self.alive:
            self.alive = False
            self.world.checks.tell(str(self), "its container is killed")
            self.world.checks.ended(self)

    def signalled(self) -> None:
        if self._asleep(self.signalled):
            return
        if self.alive and not self.app.node.cut_off and not self.world.plan.deaf:
            self.end("FAILED", "FAILED", "exitCode: 143")

    def _report(self, state: str, final: str, diagnostics: str) -> None:
        if self.app.node.cut_off or not self.world.yarn.served:
            self.world.scheduler.after(5, lambda: self._report(state, final, diagnostics))
        else:
            self.world.yarn.end(self.app, state, final, diagnostics)

    def _localise(self) -> None:
        if not self.alive or not self.app.alive:
            self.alive = False
        elif not self.world.namespace.served:
            self.world.scheduler.after(5, self._localise)
        elif self.fence and not self.world.files.exists(self.fence):
            self.end("FAILED", "FAILED", f"File does not exist: {self.fence}")
        else:
            self.localised = True
            self.world.scheduler.after(self._chance(3, 12), self._begin)

    def _asleep(self, then: Callable[[], None]) -> bool:
        """Do the next step only when it is awake; each step is a request of it, at which it can be frozen."""
        if self.alive:
            self.world.asks(self)
        if not self.alive or self.frozen_until <= self.world.now:
            return False
        self._sleep(then)
        return True

    def _sleep(self, then: Callable[[], None]) -> None:
        if self.frozen_until > self.world.now:
            self.world.scheduler.at(self.frozen_until, lambda: self._sleep(then))
        else:
            self.woke_at = self.frozen_until
            self.world.scheduler.after(self._chance(0.0, 1.0), then)

    def _begin(self) -> None:
        if not self.alive or self._asleep(self._begin):
            return
        if self.slept_through_its_end:
            self.end("FAILED", "FAILED", "ApplicationAttemptNotFoundException")
            return
        if not self.world.namespace.served or (self.app.alive and not self.world.yarn.served):
            self.world.scheduler.after(3, self._begin)
            return
        if self.app.alive:
            self.app.state, self.app.started = "RUNNING", self.world.now
        names = self.world.files.names(self.folder) if self.folder else ()
        if self.helper and newest_claim(names) > self.generation:
            self.end("FAILED", "FAILED", "Superseded")
            return
        if self.helper:
            self._put(started_marker(self.generation))
        self.begun, self.began_at = True, self.world.now
        self.world.checks.tell(str(self), "runs")
        self.world.checks.began(self)
        self.world.scheduler.after(self._chance(1, 4), self._plan)
        if self.folder and self._dies_of:
            # A broken one dies before its first commit.
            self.world.scheduler.after(0.5 if self._broken else 5, lambda: self.end("FAILED", "FAILED", self._dies_of))
        self._look()

    def _look(self) -> None:
        if not self.helper or not self.alive or self._asleep(self._look):
            return
        if not self.world.namespace.served:
            self.world.scheduler.after(2, self._look)
            return
        names = self.world.files.names(self.folder)
        if newest_claim(names) > self.generation:
            self.end("FAILED", "FAILED", "Superseded")
        elif stop_marker(self.generation) in names and not self._stopping:
            self._stopping = True
            self._stop_when_quiescent()

    def _stop_when_quiescent(self) -> None:
        if not self.alive or self._in_batch or not self.world.namespace.served:
            return
        self._put(stopped_marker(self.generation))
        self.end("FINISHED", "SUCCEEDED", "")

    def _plan(self) -> None:
        if not self._works(self._plan):
            return
        if again := self._batch is None:
            self.world.checks.starts_at(self, max(self._batches("commits"), default=-1) + 1)
        batch = max(self._batches("commits"), default=-1) + 1 if self._batch is None else self._batch
        self._write_plan(batch, again=again)

    def _write_plan(self, batch: int, *, again: bool) -> None:
        """Write the offsets of its next batch. Only its first may stand there: its predecessor's, which it repeats."""
        if not self._works(lambda: self._write_plan(batch, again=again)):
            return
        self.world.checks.plans(self, batch)
        planned = batch in self._batches("offsets")
        if planned and (not again or self.slept_through_its_end):
            self.end("FAILED", "FAILED", _CONCURRENT)
            return
        if not planned:
            self._log("offsets", batch)
        self._in_batch, self._batch = True, batch + 1
        self.world.scheduler.after(self.pace.batch * self._chance(0.8, 1.3), lambda: self._commit(batch))

    def _commit(self, batch: int) -> None:
        if not self._works(lambda: self._commit(batch)):
            return
        if batch in self._batches("commits"):
            self.world.checks.committed_already(self, batch)
            self.end("FAILED", "FAILED", _CONCURRENT)
            return
        self._log("commits", batch)
        self.world.checks.committed(batch)
        self._in_batch = False
        self.batches += 1
        if self._stopping:
            self._stop_when_quiescent()
            return
        idle = self.pace.idle if self.batches % self.pace.busy == 0 else 0.0
        self.world.scheduler.after(max(0.1, self.pace.trigger - self.pace.batch) + idle, self._plan)

    def _works(self, again: Callable[[], None]) -> bool:
        """Tell whether it can go on now; if HDFS is away it tries again, and with dead tokens it ends."""
        if not self.alive or self._asleep(again):
            return False
        if self.world.now > self.token_ends:
            self.world.wakings.expired(self)
            self.end("FAILED", "FAILED", _DEAD_TOKEN)
            return False
        if self._stopping and not self._in_batch:
            self._stop_when_quiescent()
            return False
        if not self.world.namespace.served:
            self.world.scheduler.after(2, again)
            return False
        return True

    def _batches(self, log: str) -> set[int]:
        return {int(name) for name in self.world.files.names(f"{self.checkpoint}/{log}")}

    def _log(self, log: str, batch: int) -> None:
        files, stamp = self.world.files, self.world.namespace.stamp()
        if not files.exists(f"{self.checkpoint}/metadata"):
            files.write(f"{self.checkpoint}/metadata", b'{"id": "query-1"}', stamp, overwrite=False)
        files.write(f"{self.checkpoint}/{log}/{batch}", b"v1", stamp, overwrite=False)
        if batch >= _RETAINED:
            files.delete(f"{self.checkpoint}/{log}/{batch - _RETAINED}", stamp)

    def _put(self, name: str) -> None:
        self.world.files.write(f"{self.folder}/{name}", b"{}", self.world.namespace.stamp(), overwrite=True)

    def _chance(self, low: float, high: float) -> float:
        return self.rng.uniform(low, high)
