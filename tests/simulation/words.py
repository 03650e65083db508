"""Rarer words of persons: the brake of a cluster, and decisions about a checkpoint that was lost or restored."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.checkpoint.adopt import accept_checkpoints
from airflow_kstream.supervise.streams.checkpoint.take_over import take_over
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.run import StreamRun
from tests.simulation.checks import Frozen
from tests.simulation.plans import Happening
from tests.simulation.virtual import Program
from tests.simulation.world import CHECKPOINT, World

STATE_DIR = "/kstream"
# The pause before a person tries again what the servers were too busy for.
_AGAIN = 10.0


@dataclass
class Speaker:
    """A person with one command, who repeats it until it is carried out or refused."""

    world: World
    what: str
    command: Callable[[StreamRun], object]
    heard: Callable[[], object] = lambda: None

    def start(self) -> None:
        number = sum(1 for name in self.world.programs if name.startswith("person"))
        self.name = f"person{number + 1}"
        plan = self.world.plan
        program = Program(self.world.scheduler, self.name, self.repeat, plan.seed, plan.host_skew)
        self.world.programs[self.name] = program.start()

    def repeat(self) -> bool:
        """Return whether it was carried out."""
        self.world.checks.tell(self.name, f"says {self.what}")
        while True:
            try:
                said(self.world, self.world.cluster(STATE_DIR), self.command)
            except Unavailable:
                time.sleep(_AGAIN)
            except KstreamError as error:
                self.world.checks.tell(self.name, f"hears no: {error}")
                return False
            else:
                self.world.checks.tell(self.name, "hears yes")
                self.heard()
                return True


def said(world: World, cluster: Cluster, command: Callable[[StreamRun], object]) -> None:
    spec = world.spec()
    with open_session(cluster, cluster.watcher) as session:
        command(StreamRun(session, spec, engine_of(spec)))


def freezes(world: World, happening: Happening) -> None:
    """Let a person freeze the cluster for so many seconds; the word replaces an earlier one."""

    def heard() -> None:
        world.checks.brakes.append(Frozen(STATE_DIR, world.now, began + happening.seconds))

    began = world.now
    lasts = timedelta(seconds=happening.seconds)
    _brake(world, "freeze", lambda brake: brake.freeze(lasts, "a drill"), heard)


def unfreezes(world: World, happening: Happening) -> None:
    _brake(world, "unfreeze", lambda brake: brake.lift("it is over"), lambda: None)


def _brake(world: World, what: str, say: Callable[[FreezeStore], object], heard: Callable[[], object]) -> None:
    # From the first moment on an earlier word may be replaced.
    world.checks.brakes.clear()
    Speaker(world, what, lambda run: say(FreezeStore(run.session)), heard).start()


def accepts(world: World, happening: Happening) -> None:
    world.checks.accepted_at.append(world.now)
    Speaker(world, "accept", lambda run: accept_checkpoints(run, "a drill")).start()


def takes_over(world: World, happening: Happening) -> None:
    world.checks.accepted_at.append(world.now)
    Speaker(world, "take-over", lambda run: take_over(run, "a drill", tell=lambda line: None)).start()


def checkpoint_lost(world: World, happening: Happening) -> None:
    """Delete the checkpoint, whoever writes it."""
    world.checks.damaged_at = world.now
    world.files.delete(CHECKPOINT, world.namespace.stamp())


def checkpoint_restored(world: World, happening: Happening) -> None:
    """Put an older copy in place, which lacks the newest `number` batches."""
    world.checks.damaged_at = world.now
    for log in ("offsets", "commits"):
        batches = sorted(int(name) for name in world.files.names(f"{CHECKPOINT}/{log}"))
        for batch in batches[-happening.number :]:
            world.files.delete(f"{CHECKPOINT}/{log}/{batch}", world.namespace.stamp())


def decide_in_the_end(world: World) -> None:
    """Let a person who finds the stream refused accept its checkpoint, or take it over, until it runs."""
    speaker = Speaker(world, "accept", lambda run: accept_checkpoints(run, "the last word"))

    def main() -> None:
        while not world.standing():
            world.checks.accepted_at.append(world.now)
            if not speaker.repeat():
                Speaker.repeat(over)
            time.sleep(300.0)

    over = Speaker(world, "take-over", lambda run: take_over(run, "the last word", tell=lambda line: None))
    speaker.name = over.name = "person in the end"
    world.programs[speaker.name] = Program(world.scheduler, speaker.name, main, world.plan.seed).start(300.0)
