"""Running a history, judging it, and making a failing one shorter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from airflow_kstream.model.streams.generation import DesiredState, StreamId
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.registry import registered
from tests.simulation.checks import STUCK, WORD_LOST, Violation
from tests.simulation.happenings import HAPPENINGS
from tests.simulation.people import Keeper, read_by_a_program
from tests.simulation.plans import Happening, Plan
from tests.simulation.polled import PolledKeeper, airflow
from tests.simulation.words import decide_in_the_end
from tests.simulation.world import STREAM, World


@dataclass(frozen=True)
class History:
    """The outcome of a plan."""

    plan: Plan
    violations: tuple[Violation, ...]
    story: str
    requests: int
    submissions: int

    def __str__(self) -> str:
        broken = "\n".join(map(str, self.violations))
        return f"{broken}\n\nplan: {self.plan}\n\n{self.story}"

    @property
    def promises(self) -> frozenset[str]:
        return frozenset(violation.promise for violation in self.violations)


def run(plan: Plan) -> History:
    """Run the plan's history: the disturbances, then calm until what a person wants is so, or patience ends."""
    world = World(plan)
    with world.entered(), airflow(world), _ended(world):
        for keeper, (delay, _) in zip(_keepers(world), plan.keepers, strict=True):
            keeper.start(delay)
        for happening in plan.happenings:
            if happening.kind in HAPPENINGS:
                world.scheduler.at(happening.at, _happens(world, happening))
        world.scheduler.run(plan.ends, lambda: bool(world.checks.violations))
        if plan.concludes and not world.checks.violations:
            _calm_down(world)
            _conclude(world)
    checks = world.checks
    return History(plan, tuple(checks.violations), checks.story(), world.wire.count, len(checks.claims))


def shortened(plan: Plan, promise: str) -> Plan:
    """Return the plan without the happenings that breaking this promise doesn't need."""
    kept = plan
    for happening in plan.happenings:
        without = replace(kept, happenings=tuple(one for one in kept.happenings if one is not happening))
        if promise in run(without).promises:
            kept = without
    return kept


@contextmanager
def _ended(world: World) -> Iterator[None]:
    """End all programs afterwards: outside of their world they would ask real servers."""
    try:
        yield
    finally:
        for program in world.programs.values():
            program.kill()


def _keepers(world: World) -> list[Keeper]:
    keepers = []
    for number, (_, state_dir) in enumerate(world.plan.keepers, start=1):
        name = f"keeper{number}"
        kind = PolledKeeper if name in world.plan.polled else Keeper
        keepers.append(kind(world, name, world.cluster(state_dir)))
    world.keepers = [keeper for keeper in keepers if isinstance(keeper, PolledKeeper)]
    world.wakings.begin()
    return keepers


def _happens(world: World, happening: Happening) -> Callable[[], None]:
    def happens() -> None:
        world.checks.tell("EVENT", str(happening).partition(": ")[2])
        HAPPENINGS[happening.kind](world, happening)

    return happens


def _calm_down(world: World) -> None:
    """End all disturbances: servers and nodes are well again, and nobody freezes any longer."""
    world.calm = True
    world.kdc_down_until = 0.0
    world.cut_off_until.clear()
    world.without_conf_until.clear()
    world.checks.tell("EVENT", "calm")
    for server in world.wire.servers.values():
        server.down, server.frozen_until = False, 0.0
    for manager in world.resourcemanagers:
        manager.remembered, manager.recovered = None, world.now
    world.yarn.active = world.yarn.active or world.resourcemanagers[0]
    world.namespace.active = world.namespace.active or world.namenodes[0]
    for program in world.programs.values():
        program.frozen_until = min(program.frozen_until, world.now + 60)


def _conclude(world: World) -> None:
    """Wait until each stream is as a person wants it; if it never is, there was no way out."""
    if world.checks.damaged_at is not None:
        decide_in_the_end(world)
    until = world.now + world.plan.patience
    folders = sorted({StreamId(STREAM, state_dir).folder for _, state_dir in world.plan.keepers})
    world.scheduler.run(until, lambda: bool(world.checks.violations) or all(_as_wanted(world, one) for one in folders))
    if world.checks.violations:
        return
    for folder in folders:
        if not _as_wanted(world, folder):
            states = ", ".join(sorted(world.checks.wanted(folder)))
            running = ", ".join(map(str, world.standing())) or "nothing"
            world.checks.broken(STUCK, f"{world.plan.patience:.0f} s of calm: wanted {states}, and {running} runs")
    _ask_for_the_last_word(world)


def _as_wanted(world: World, folder: str) -> bool:
    return any(_is(world, folder, state) for state in world.checks.wanted(folder))


def _is(world: World, folder: str, state: DesiredState) -> bool:
    ours = [driver for driver in world.drivers if driver.folder == folder and driver.alive]
    if any(word.ended is None for word in world.checks.words):
        return False
    if state is DesiredState.HELD:
        return True
    if state is DesiredState.STOPPED:
        return not ours
    if world.plan.httpfs:
        # It grants a claim to two, so none may be made behind it: the product refuses it, and says why.
        return not ours
    # Of two that want one checkpoint, the other is right to refuse.
    running = [driver for driver in world.drivers if driver.alive and driver.begun and driver.batches > 1]
    old = world.checks.to_be_replaced(folder)
    return any(driver.folder != folder or driver.generation > old for driver in running)


def _ask_for_the_last_word(world: World) -> None:
    """Read the desired state with the product's own code, whatever files it keeps it in."""
    for state_dir in sorted({state_dir for _, state_dir in world.plan.keepers}):
        stream = StreamId(STREAM, state_dir)
        allowed = world.checks.wanted(stream.folder)
        if not any(word.folder == stream.folder and word.said for word in world.checks.words):
            continue

        def read(session: ClusterSession, stream: StreamId = stream) -> DesiredState:
            return registered(session, stream).desired().state

        state = read_by_a_program(world, world.cluster(state_dir), read)
        if state not in allowed:
            world.checks.broken(WORD_LOST, f"the last word was {', '.join(sorted(allowed))}, and {state} counts")
