"""Drivers that YARN loses while their processes are there: on nodes that are cut off, and frozen ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.jobs import Driver
from tests.simulation.plans import Happening
from tests.simulation.yarn import Node

if TYPE_CHECKING:
    from tests.simulation.world import World

# yarn.resourcemanager.connect.max-wait.ms: an ApplicationMaster that has lost its ResourceManager ends after this.
_AM_LIVES_ON = 900.0
# yarn.nm.liveness-monitor.expiry-interval-ms and its like for ApplicationMasters.
_EXPIRY = 600.0
DRIVER_FREEZES, HOST_FREEZES = "driver freezes", "host of driver freezes"


def freeze_driver(world: World, driver: Driver, happening: Happening) -> None:
    """Freeze its process, as SIGSTOP or a long collection does, or its whole host, as a paused virtual machine."""
    if happening.kind == HOST_FREEZES:
        for other in [other for other in world.drivers if other.app.node is driver.app.node and other.alive]:
            other.freeze(happening.seconds)
        cut_off(world, driver.app.node, happening.seconds, happening.number)
        return
    driver.freeze(happening.seconds)

    def given_up() -> None:
        if driver.alive and driver.app.alive and driver.frozen_until > world.now:
            world.checks.tell("YARN", f"gives {driver.app.id} up: it has not heard of it")
            world.yarn.end(driver.app, "FAILED", "FAILED", "ApplicationMaster for attempt timed out")
            # SIGKILL reaches a frozen process.
            world.scheduler.after(world.rng.uniform(0.3, 1.0) * world.plan.lingers, driver.killed)

    world.scheduler.after(_EXPIRY, given_up)


def cut_off(world: World, node: Node, seconds: float, later: float) -> None:
    """Cut a node off from the ResourceManager, not from HDFS: its containers live on, as long as they may.

    The ResourceManager expires ApplicationMasters and nodes by two monitors, each of which looks every third of the
    expiry: the node is LOST so much `later`.
    """
    node.cut_off, node.cut_at = True, world.now
    world.checks.tell(node.name, f"is cut off from the ResourceManager for {seconds:.0f} s")
    since = world.now

    def given_up() -> None:
        if node.cut_off and world.now - since >= _EXPIRY - 1:
            for app in [app for app in world.yarn.apps.values() if app.node is node and app.alive]:
                world.checks.tell("YARN", f"gives {app.id} up: it has not heard of it")
                world.yarn.end(app, "FAILED", "FAILED", "ApplicationMaster for attempt timed out")

    def lost() -> None:
        if node.cut_off and world.now - since >= _EXPIRY - 1:
            node.state = "LOST"
            world.checks.tell("YARN", f"{node.name} is LOST")

    def am_gives_up() -> None:
        for driver in [driver for driver in world.drivers if driver.app.node is node and driver.alive]:
            if node.cut_off and driver.frozen_until <= world.now:
                driver.killed()

    def back() -> None:
        node.cut_off, node.state = False, "RUNNING"
        for driver in [driver for driver in world.drivers if driver.app.node is node and not driver.app.alive]:
            # What the NodeManager was told meanwhile it does at its first heartbeats.
            world.scheduler.after(world.rng.uniform(0.3, 3.0), driver.killed)

    world.scheduler.after(_EXPIRY, given_up)
    world.scheduler.after(_EXPIRY + later, lost)
    world.scheduler.after(_EXPIRY + _AM_LIVES_ON, am_gives_up)
    world.scheduler.after(seconds, back)
