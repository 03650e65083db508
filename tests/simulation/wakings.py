"""What a poller owes to those who wait: it looks while it can, and wakes somebody when it can't or when it is due.

Every few seconds each keeper that watches by the poller is held against the truth about servers, processes and tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_kstream.model.streams.generation import DesiredState, StreamId
from tests.simulation.checks import BLIND, UNWOKEN

if TYPE_CHECKING:
    from tests.simulation.jobs import Driver
    from tests.simulation.polled import PolledKeeper
    from tests.simulation.world import World

_SAMPLED_EVERY = 15.0
# The share of a token's life by which its restart is due; RestartPolicy's plan_ratio.
_DUE = 0.75
# A watcher that could look for so long has looked within the latter: the pace, a late look, a request's patience.
_COULD_LOOK, _LOOKS_WITHIN = 420.0, 300.0
# The words of a waking for that cause, and how long after all troubles a watcher may still see nothing: its own pace,
# and a look that began before. One whose restart is due wakes somebody at the first look that fails: it is due anyway.
_BLIND, _SEES_WITHIN = "could be concluded for", 240.0
# Seconds from the moment at which a restart is due to the waking, while the watcher sees.
_WAKES_WITHIN = 300.0
# The same while it sees nothing: WatchPolicy's blind_after, a look and its patience; and after earlier wakings, whose
# pauses grow up to 15 minutes: also those of its cluster's event, which a task that ended and began again left behind.
_WAKES_BLIND_WITHIN, _WAKES_AGAIN_WITHIN = 600.0, 1200.0
# Between a waking and the end of a restart, both without trouble.
_RESTARTS_WITHIN = 500.0


@dataclass
class Watched:
    """A polled keeper, and since when all was well with it, its host and the servers, or since when it can't see.

    None where that is not so now. `woken` is whether its blindness has woken a task since it last saw for long.
    """

    keeper: PolledKeeper
    stream: StreamId
    well_since: float | None = None
    sees_since: float | None = None
    blind_since: float | None = None
    woken: bool = False

    @property
    def folder(self) -> str:
        return self.stream.folder


class Wakings:
    """The watchers of one history."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._watched: list[Watched] = []

    def begin(self) -> None:
        keepers = self._world.keepers
        self._watched = [Watched(one, StreamId(one.spec.name, one.cluster.state_dir)) for one in keepers]
        if keepers:
            self._sample()

    def woke(self, keeper: PolledKeeper, why: str) -> None:
        """Check that nobody is woken because a watcher sees nothing which could see for long."""
        if _BLIND not in why.partition(":")[0]:
            return
        for one in [one for one in self._watched if one.keeper is keeper]:
            one.woken = True
            if one.sees_since is not None:
                could = self._world.now - one.sees_since
                if could > _SEES_WITHIN:
                    self._world.checks.broken(BLIND, f"{keeper.name} saw nothing, and could for {could:.0f} s: {why}")

    def expired(self, driver: Driver) -> None:
        """Check that no generation dies of its tokens' age beside a keeper that lived and was answered all the time."""
        if not self._is_the_newest(driver) or not driver.app.alive or not self._should_run(driver.folder):
            return
        for one in self._watched:
            if one.folder == driver.folder and one.well_since is not None:
                late = self._world.now - max(one.well_since, self._due(driver))
                if late > _RESTARTS_WITHIN:
                    what = f"{driver} dies of its tokens, {late:.0f} s after {one.keeper.name} could have replaced it"
                    self._world.checks.broken(UNWOKEN, what)

    def _sample(self) -> None:
        for one in self._watched:
            self._see(one)
            self._judge(one)
        self._world.scheduler.after(_SAMPLED_EVERY, self._sample)

    def _see(self, one: Watched) -> None:
        world, process = self._world, one.keeper.process
        works = process is not None and not process.over and process.frozen_until <= world.now
        answered = world.yarn.served and world.namespace.served and world.connections.are_right
        name = one.keeper.name
        sees = answered and not world.is_cut_off(name) and world.now >= world.without_conf_until.get(name, 0.0)
        waits = works and one.keeper.waiting is not None
        one.well_since = self._since(one.well_since, works and answered and world.now >= world.kdc_down_until)
        one.sees_since = self._since(one.sees_since, waits and sees)
        one.blind_since = self._since(one.blind_since, waits and not sees)
        one.woken = one.woken and (one.sees_since is None or world.now - one.sees_since < _SEES_WITHIN)

    def _since(self, since: float | None, holds: bool) -> float | None:
        if not holds:
            return None
        return self._world.now if since is None else since

    def _judge(self, one: Watched) -> None:
        now, name, waiting = self._world.now, one.keeper.name, one.keeper.waiting
        if waiting is None or one.keeper.process is None:
            return
        if one.sees_since is not None:
            looked = self._world.checks.watched.get((one.keeper.process.name, one.folder), 0.0)
            if now - max(waiting.since, one.sees_since) > _COULD_LOOK and now - looked > _LOOKS_WITHIN:
                self._world.checks.broken(BLIND, f"{name} has not looked for {now - looked:.0f} s, and could")
            due = self._due_since(one.folder)
            late = 0.0 if due is None or waiting.memory.blocked else now - max(waiting.since, one.sees_since, due)
            if late > _WAKES_WITHIN:
                self._world.checks.broken(UNWOKEN, f"{name} sleeps {late:.0f} s after a restart was due, and could see")
        if one.blind_since is not None:
            patience = _WAKES_AGAIN_WITHIN if one.woken or waiting.memory.blindness.wakings else _WAKES_BLIND_WITHIN
            late = now - max(waiting.since, one.blind_since)
            if late > patience:
                self._world.checks.broken(UNWOKEN, f"{name} has seen nothing for {late:.0f} s, and nobody was woken")

    def _due_since(self, folder: str) -> float | None:
        """Return when the restart of what runs was due, None if none is."""
        for driver in self._world.standing():
            if driver.folder == folder and driver.app.alive and self._is_the_newest(driver):
                return self._due(driver) if self._should_run(folder) else None
        return None

    def _due(self, driver: Driver) -> float:
        return driver.token_ends - (1.0 - _DUE) * self._world.life

    def _is_the_newest(self, driver: Driver) -> bool:
        return driver.generation == self._world.checks.newest(driver.folder)

    def _should_run(self, folder: str) -> bool:
        """Return whether nothing but a restart is right: no other word of a person, and no brake."""
        held_by_freeze = any(happening.kind == "freeze" for happening in self._world.plan.happenings)
        return not held_by_freeze and self._world.checks.wanted(folder) == {DesiredState.RUNNING}
