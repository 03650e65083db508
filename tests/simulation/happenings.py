"""What can happen in a history, by its name in a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airflow_kstream.model.streams.generation import DesiredState, StreamId
from tests.simulation.jobs import BROKEN
from tests.simulation.lost_drivers import cut_off
from tests.simulation.people import Adopter, Person
from tests.simulation.plans import Happening
from tests.simulation.troubles import (
    namenodes_away,
    resourcemanagers_away,
    resourcemanagers_move,
    triggerer_cut_off,
    triggerer_restarts,
    triggerer_without_conf,
)
from tests.simulation.words import accepts, checkpoint_lost, checkpoint_restored, freezes, takes_over, unfreezes
from tests.simulation.world import STREAM, World
from tests.simulation.yarn import ResourceManager


def _namenode_failover(world: World, happening: Happening) -> None:
    """Leave no NameNode active for a while, then make the other one active."""
    before = world.namespace.active
    if before is None:
        return
    world.namespace.active = None
    other = next(server for server in world.namenodes if server is not before)

    def takes_over() -> None:
        world.namespace.active = other
        world.checks.tell("HDFS", f"{other.address} is active")

    world.scheduler.after(happening.seconds, takes_over)


def _namenode_freezes(world: World, happening: Happening) -> None:
    """Freeze the active one; the other takes over once the failover controller has noticed."""
    frozen = world.namespace.active
    if frozen is None:
        return
    frozen.frozen_until = world.now + happening.seconds
    other = next(server for server in world.namenodes if server is not frozen)

    def takes_over() -> None:
        if world.namespace.active is frozen and frozen.frozen_until > world.now:
            world.namespace.active = other
            world.checks.tell("HDFS", f"{other.address} is active")

    world.scheduler.after(20.0, takes_over)


def _other(world: World, server: ResourceManager) -> ResourceManager:
    return next(other for other in world.resourcemanagers if other is not server)


def _activate(world: World, server: ResourceManager) -> None:
    world.yarn.active = server
    server.remembered, server.started = None, world.now
    world.checks.tell("YARN", f"{server.address} is active")


def _resourcemanager_failover(world: World, happening: Happening) -> None:
    before = world.yarn.active
    if before is None:
        return
    world.yarn.active = None
    world.scheduler.after(happening.seconds, lambda: _activate(world, _other(world, before)))


def _resourcemanager_restarts(world: World, happening: Happening) -> None:
    """Restart the active one, with no other to take over; it answers before it has recovered its applications."""
    server = world.yarn.active
    if server is None:
        return
    server.down = True

    def up() -> None:
        server.down, server.started, server.recovered = False, world.now, world.now + happening.seconds
        world.checks.tell("YARN", f"{server.address} answers, and knows its applications in {happening.seconds:.0f} s")

    world.scheduler.after(15.0, up)


def _resourcemanager_wakes_late(world: World, happening: Happening) -> None:
    """Freeze the active one; the other takes over; awake, the first one says ACTIVE until it learns better."""
    server = world.yarn.active
    if server is None:
        return
    server.frozen_until = world.now + happening.seconds
    server.remember()
    world.scheduler.after(15.0, lambda: _activate(world, _other(world, server)))
    believes = happening.number

    def learns() -> None:
        server.remembered = None
        world.checks.tell("YARN", f"{server.address} learns that it is standby")

    def wakes() -> None:
        world.checks.tell("YARN", f"{server.address} wakes and says ACTIVE for {believes} s")

    world.scheduler.after(happening.seconds, wakes)
    world.scheduler.after(happening.seconds + believes, learns)


def _kdc_away(world: World, happening: Happening) -> None:
    world.kdc_down_until = world.now + happening.seconds


def _node_cut_off(world: World, happening: Happening) -> None:
    running = world.standing()
    if running:
        cut_off(world, running[-1].app.node, happening.seconds, happening.number)


def _driver_dies(world: World, happening: Happening) -> None:
    for driver in world.standing()[-1:]:
        driver.end("FAILED", "FAILED", "java.lang.OutOfMemoryError: Java heap space")


def _attempt_expires(world: World, happening: Happening) -> None:
    """Let YARN give an attempt up that it has not heard of; the NodeManager kills its container a moment later."""
    for driver in world.standing()[-1:]:
        world.yarn.end(driver.app, "FAILED", "FAILED", "ApplicationMaster for attempt timed out")
        world.scheduler.after(happening.seconds, driver.killed)


def _keeper_crashes(world: World, happening: Happening) -> None:
    for program in list(world.programs.values()):
        if program.keeper == happening.who and not program.over:
            program.kill()


def _keeper_freezes(world: World, happening: Happening) -> None:
    for program in world.programs.values():
        if program.keeper == happening.who and not program.over:
            program.freeze(happening.seconds)


def _person(said: DesiredState | None) -> Callable[[World, Happening], None]:
    def speaks(world: World, happening: Happening) -> None:
        number = sum(1 for name in world.programs if name.startswith("person"))
        Person(world, f"person{number + 1}", world.cluster("/kstream"), said).start()

    return speaks


def _broken_declaration(world: World, happening: Happening) -> None:
    """Let somebody declare a job that dies at each start; it runs once a restart submits it."""
    world.arguments = (BROKEN,)


def _foreign_job(world: World, happening: Happening) -> None:
    world.start_foreign_job()


def _adopted(world: World, happening: Happening) -> None:
    """Let a person take the job over that somebody submitted by hand."""
    foreign = next((driver for driver in world.drivers if not driver.folder), None)
    if foreign:
        Adopter(world, "person adopts", world.cluster("/kstream"), foreign.app.id).start()


def _strangers_tags(world: World, happening: Happening) -> None:
    """Let another user's application carry our tags: of generation `number`, or of the newest one with 0."""
    stream = StreamId(STREAM, "/kstream")
    number = happening.number or max((generation for _, generation in world.checks.claims), default=1)
    app = world.yarn.submit("stranger", "a copy", stream.tags(number), world.nodes[0])
    app.state, app.started = "RUNNING", world.now
    world.checks.tell("a stranger", f"runs {app.id} with the tags of generation {number}")
    world.scheduler.after(happening.seconds, lambda: world.yarn.end(app, "FINISHED", "SUCCEEDED", ""))


HAPPENINGS: Mapping[str, Callable[[World, Happening], None]] = {
    "NameNode failover": _namenode_failover,
    "NameNode freezes": _namenode_freezes,
    "ResourceManager failover": _resourcemanager_failover,
    "ResourceManager restarts": _resourcemanager_restarts,
    "ResourceManager wakes late": _resourcemanager_wakes_late,
    "KDC away": _kdc_away,
    "node cut off": _node_cut_off,
    "driver dies": _driver_dies,
    "attempt expires": _attempt_expires,
    "crash of": _keeper_crashes,
    "freeze of": _keeper_freezes,
    "stop": _person(DesiredState.STOPPED),
    "start": _person(DesiredState.RUNNING),
    "hold": _person(DesiredState.HELD),
    "restart": _person(None),
    "broken declaration": _broken_declaration,
    "ResourceManagers away": resourcemanagers_away,
    "NameNodes away": namenodes_away,
    "ResourceManagers move": resourcemanagers_move,
    "triggerer cut off": triggerer_cut_off,
    "triggerer without conf": triggerer_without_conf,
    "triggerer restarts": triggerer_restarts,
    "job by hand": _foreign_job,
    "adopt": _adopted,
    "stranger's tags": _strangers_tags,
    "freeze": freezes,
    "unfreeze": unfreezes,
    "accept": accepts,
    "take-over": takes_over,
    "checkpoint lost": checkpoint_lost,
    "checkpoint restored": checkpoint_restored,
}
