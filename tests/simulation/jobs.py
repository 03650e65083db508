"""Drivers as processes: they localise their fence, write checkpoints as Spark does, and outlive YARN's word."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_kstream.model.contract import newest_claim, started_marker, stop_marker, stopped_marker
from tests.simulation.yarn import App, Node

if TYPE_CHECKING:
    from tests.simulation.world import World

# spark.sql.streaming.minBatchesToRetain, which is 100 by default; shorter listings keep histories fast.
_RETAINED = 12
_DEAD_TOKEN = "token (HDFS_DELEGATION_TOKEN token 7 for streamer) can't be found in cache"
# yarn.resourcemanager.connect.max-wait.ms: an ApplicationMaster that has lost its ResourceManager ends after this.
_AM_LIVES_ON = 900.0
# yarn.nm.liveness-monitor.expiry-interval-ms and its like for ApplicationMasters.
_EXPIRY = 600.0


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
        self._in_batch = False
        self._stopping = False
        self._token_ends = issued + world.life
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

    def _begin(self) -> None:
        if not self.alive:
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
        if self.folder and self.world.plan.dies_of:
            self.world.scheduler.after(5, lambda: self.end("FAILED", "FAILED", self.world.plan.dies_of))
        self._look()

    def _look(self) -> None:
        if not self.helper or not self.alive:
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
        offsets, commits = self._batches("offsets"), self._batches("commits")
        batch = max(commits, default=-1) + 1
        self.world.checks.plans(self, batch)
        if batch not in offsets:
            self._log("offsets", batch)
        self._in_batch = True
        self.world.scheduler.after(self.pace.batch * self._chance(0.8, 1.3), lambda: self._commit(batch))

    def _commit(self, batch: int) -> None:
        if not self._works(lambda: self._commit(batch)):
            return
        if batch in self._batches("commits"):
            self.world.checks.broken("progress went backwards", f"{self} commits batch {batch} once more")
            self.end("FAILED", "FAILED", "CONCURRENT_STREAM_LOG_UPDATE")
            return
        self._log("commits", batch)
        self._in_batch = False
        self.batches += 1
        if self._stopping:
            self._stop_when_quiescent()
            return
        idle = self.pace.idle if self.batches % self.pace.busy == 0 else 0.0
        self.world.scheduler.after(max(0.1, self.pace.trigger - self.pace.batch) + idle, self._plan)

    def _works(self, again: Callable[[], None]) -> bool:
        """Tell whether it can go on now; if HDFS is away it tries again, and with dead tokens it ends."""
        if not self.alive:
            return False
        if self.world.now > self._token_ends:
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


def cut_off(world: World, node: Node, seconds: float) -> None:
    """Cut a node off from the ResourceManager, not from HDFS: its containers live on, as long as they may."""
    node.cut_off = True
    world.checks.tell(node.name, f"is cut off from the ResourceManager for {seconds:.0f} s")
    since = world.now

    def given_up() -> None:
        if node.cut_off and world.now - since >= _EXPIRY - 1:
            node.state = "LOST"
            for app in [app for app in world.yarn.apps.values() if app.node is node and app.alive]:
                world.checks.tell("YARN", f"gives {app.id} up: {node.name} is LOST")
                world.yarn.end(app, "FAILED", "FAILED", f"Container released on a *lost* node {node.name}")

    def am_gives_up() -> None:
        for driver in [driver for driver in world.drivers if driver.app.node is node and driver.alive]:
            if node.cut_off:
                driver.killed()

    def back() -> None:
        node.cut_off, node.state = False, "RUNNING"
        for driver in [driver for driver in world.drivers if driver.app.node is node and not driver.app.alive]:
            driver.killed()

    world.scheduler.after(_EXPIRY, given_up)
    world.scheduler.after(_EXPIRY + _AM_LIVES_ON, am_gives_up)
    world.scheduler.after(seconds, back)
