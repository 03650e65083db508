"""Troubles of those who watch: servers that are away for long or move, a triggerer that is cut off or begins again."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.plans import Happening
from tests.simulation.wire import Reply, Request
from tests.simulation.world import World


@dataclass
class Gone:
    """An address at which nothing listens any longer."""

    frozen_until: float = 0.0

    @property
    def down(self) -> bool:
        return True

    @down.setter
    def down(self, down: bool) -> None:
        """Leave it as it is."""

    def answer(self, request: Request) -> Reply:
        raise request.unknown()


def resourcemanagers_away(world: World, happening: Happening) -> None:
    """Take both away for so many seconds; they come back with the applications that they knew."""
    for manager in world.resourcemanagers:
        manager.down = True

    def back() -> None:
        for manager in world.resourcemanagers:
            manager.down = False
        world.checks.tell("YARN", "answers again")

    world.scheduler.after(happening.seconds, back)


def namenodes_away(world: World, happening: Happening) -> None:
    for namenode in world.namenodes:
        namenode.down = True

    def back() -> None:
        for namenode in world.namenodes:
            namenode.down = False
        world.checks.tell("HDFS", "answers again")

    world.scheduler.after(happening.seconds, back)


def resourcemanagers_move(world: World, happening: Happening) -> None:
    """Let them answer at other addresses; somebody edits the connection so many seconds later."""
    for manager in world.resourcemanagers:
        world.wire.servers[manager.address] = Gone()
        host, _, port = manager.address.rpartition(":")
        manager.address = f"{host}:{int(port) + 1}"
        world.wire.servers[manager.address] = manager

    def edited() -> None:
        world.connections.edit()
        world.checks.tell("a person", "edits the connection")

    world.scheduler.after(happening.seconds, edited)


def triggerer_cut_off(world: World, happening: Happening) -> None:
    world.cut_off_until[happening.who] = world.now + happening.seconds


def triggerer_without_conf(world: World, happening: Happening) -> None:
    world.without_conf_until[happening.who] = world.now + happening.seconds


def triggerer_restarts(world: World, happening: Happening) -> None:
    for keeper in world.keepers:
        if keeper.name == happening.who:
            keeper.restart_triggerer()
