"""Keepers that watch by the poller: who is woken when servers, triggerers and addresses fail; and the loops themselves.

Each of these histories is one of "watched by the poller", shortened to what it tries.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from airflow_kstream.policy.streams.horizon.start_pacing import Turns
from airflow_kstream.triggers import poller
from tests.simulation.families import plan
from tests.simulation.history import History, run
from tests.simulation.loops import Loop
from tests.simulation.plans import Happening, Plan
from tests.simulation.virtual import Program, SimulationError
from tests.simulation.world import World

POLLED = ("keeper1",)
FIRES = "its trigger fires"


def lived(*happenings: Happening, ends: float, max_lifetime: float = 7 * 86400.0) -> History:
    """Return a history of one keeper that nothing broke."""
    history = run(Plan("polled", happenings, ends=ends, polled=POLLED, max_lifetime=max_lifetime))
    assert not history.violations, str(history)
    return history


def test_a_quiet_stream_wakes_nobody() -> None:
    history = lived(ends=7200.0)
    assert FIRES not in history.story
    assert history.submissions == 1


def test_tokens_that_end_wake_the_task_in_time() -> None:
    history = lived(ends=7200.0, max_lifetime=2400.0)
    assert 4 <= history.submissions <= 6
    assert "can't be found in cache" not in history.story


def test_a_cluster_that_is_away_for_twenty_minutes_wakes_few_tasks() -> None:
    history = lived(Happening("ResourceManagers away", at=600.0, seconds=1200.0), ends=2400.0)
    assert 1 <= history.story.count("nothing could be concluded for") // 2 <= 3, str(history)
    assert history.story.count("is unreachable, so none of its streams is seen") == 1
    assert history.story.count("is reachable again") == 1


def test_a_triggerer_that_sees_nothing_costs_no_stream_its_restart() -> None:
    """The worker sees what the triggerer can't: at the time that the last look, or the task, knew."""
    cut_off = Happening("triggerer cut off", at=300.0, who="keeper1", seconds=6000.0)
    history = lived(cut_off, ends=6000.0, max_lifetime=2400.0)
    assert history.submissions >= 3
    assert "can't be found in cache" not in history.story


def test_a_triggerer_that_begins_again_knows_when_the_restart_is_due() -> None:
    happenings = (
        Happening("triggerer cut off", at=1300.0, who="keeper1", seconds=2000.0),
        Happening("triggerer restarts", at=1310.0, who="keeper1"),
    )
    history = lived(*happenings, ends=3000.0, max_lifetime=2400.0)
    assert "its restart is due, and nothing can be concluded" in history.story
    assert "can't be found in cache" not in history.story


def test_a_restarted_triggerer_keeps_the_pause_between_two_wakings() -> None:
    happenings = (
        Happening("triggerer cut off", at=250.0, who="keeper1", seconds=2300.0),
        Happening("triggerer restarts", at=1800.0, who="keeper1"),
    )
    lived(*happenings, ends=2700.0)


def test_an_edited_connection_reaches_a_task_that_waits() -> None:
    history = lived(Happening("ResourceManagers move", at=600.0, seconds=200.0), ends=1800.0)
    assert FIRES not in history.story


def test_a_conf_folder_that_is_back_opens_the_sessions_again() -> None:
    history = lived(Happening("triggerer without conf", at=600.0, who="keeper1", seconds=200.0), ends=1800.0)
    assert "/etc/hadoop/gone" in history.story
    assert FIRES not in history.story


def test_namenodes_that_are_away_for_long_wake_the_task_in_time() -> None:
    lived(Happening("NameNodes away", at=600.0, seconds=1200.0), ends=3000.0)


def test_a_polled_plan_brings_the_same_history_again() -> None:
    first, second = run(plan("watched by the poller", 3)), run(plan("watched by the poller", 3))
    assert first == second


class InLoops:
    """Two processes with a loop each, in a world of their own."""

    def __init__(self) -> None:
        self.world = World(Plan("itself"))
        self.told: list[object] = []
        self.processes = [Program(self.world.scheduler, name, self._lives, "itself") for name in ("one", "other")]

    def run(self, *stories: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Let each process live its story in its loop."""
        with self.world.entered():
            for process, story in zip(self.processes, stories, strict=False):
                process.start()
                loop = Loop(process, self.told.append)
                loop.start()
                loop.call_soon(_begin, loop, story)
            self.world.scheduler.run(600.0)
            for process in self.processes:
                process.kill()

    def _lives(self) -> None:
        time.sleep(3600.0)


def _begin(loop: Loop, story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop.create_task(story())


def test_what_waits_in_a_thread_does_not_keep_the_loop() -> None:
    loops = InLoops()

    async def story() -> None:
        slow = asyncio.create_task(asyncio.to_thread(time.sleep, 60.0))
        began = time.monotonic()
        await asyncio.sleep(5.0)
        loops.told.append(time.monotonic() - began)
        await slow
        loops.told.append(time.monotonic() - began)

    loops.run(story)
    assert loops.told == [5.0, 60.0]


def test_what_waits_in_the_loop_itself_is_an_error_of_the_process() -> None:
    loops = InLoops()

    def waits() -> None:
        time.sleep(1.0)

    async def story() -> None:
        waits()

    loops.run(story)
    assert isinstance(loops.processes[0].error, SimulationError)
    assert loops.processes[0].over


def test_a_loop_that_never_waits_ends_its_process() -> None:
    loops = InLoops()

    async def story() -> None:
        def again() -> None:
            asyncio.get_running_loop().call_soon(again)

        again()

    loops.run(story)
    assert "at one moment" in str(loops.told)
    assert loops.processes[0].over


def test_an_error_that_nobody_catches_in_a_loop_is_a_defect() -> None:
    loops = InLoops()

    async def story() -> None:
        def fails() -> None:
            raise ZeroDivisionError

        asyncio.get_running_loop().call_soon(fails)

    loops.run(story)
    assert "ZeroDivisionError" in str(loops.told)


def test_processes_share_nothing_that_their_modules_keep() -> None:
    loops = InLoops()

    async def keeps() -> None:
        poller._turns["a cluster"] = Turns()
        await asyncio.sleep(10.0)
        loops.told.append(len(poller._turns))

    async def looks() -> None:
        await asyncio.sleep(5.0)
        loops.told.append(len(poller._turns))

    loops.run(keeps, looks)
    assert loops.told == [0, 1]
    assert not poller._turns
