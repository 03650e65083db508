"""The simulation itself: it repeats a history exactly, answers nothing that it doesn't know, and leaves well alone."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import requests

from tests.simulation.families import plan
from tests.simulation.history import run
from tests.simulation.plans import Happening, Plan
from tests.simulation.virtual import Program, SimulationError
from tests.simulation.world import World


@pytest.mark.parametrize("family", ["usual", "strangers", "persons"])
def test_a_plan_brings_the_same_history_again(family: str) -> None:
    first, second = run(plan(family, 7)), run(plan(family, 7))
    assert first == second


def test_a_quiet_history_has_one_generation() -> None:
    history = run(Plan("quiet", ends=7200.0))
    assert not history.violations, str(history)
    assert history.submissions == 1


def test_a_stream_with_short_tokens_is_replaced_before_they_end() -> None:
    history = run(Plan("short tokens", max_lifetime=2400.0, ends=7200.0))
    assert not history.violations, str(history)
    assert 4 <= history.submissions <= 6
    assert "can't be found in cache" not in history.story


def test_a_request_to_restart_brings_one_more_generation() -> None:
    history = run(Plan("restart", (Happening("restart", at=900.0),)))
    assert not history.violations, str(history)
    assert history.submissions == 2


def outcome_of(main: Callable[[], object]) -> BaseException | None:
    """Return how a program ends that sends requests in a new world."""
    world = World(Plan("itself"))
    with world.entered():
        program = Program(world.scheduler, "a program", main, "itself").start()
        world.scheduler.run(60.0)
    assert program.over
    return program.error


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("GET", "http://nn1:9870/webhdfs/v1/tmp?op=GETQUOTAUSAGE"),
        ("GET", "http://nn1:9870/webhdfs/v1/tmp?op=LISTSTATUS_BATCH&startafter=x"),
        ("POST", "http://nn1:9870/webhdfs/v1/tmp?op=LISTSTATUS_BATCH"),
        ("GET", "http://rm1:8088/ws/v1/cluster/statistics"),
        ("DELETE", "http://rm1:8088/ws/v1/cluster/apps"),
        ("GET", "http://rm3:8088/ws/v1/cluster/info"),
    ],
)
def test_an_unknown_request_is_an_error_that_nothing_catches(method: str, address: str) -> None:
    def main() -> None:
        try:
            requests.Session().request(method, address)
        except Exception:  # as a careless caller would
            return

    assert isinstance(outcome_of(main), SimulationError)


def test_a_sleep_takes_virtual_time_alone() -> None:
    began = time.monotonic()
    clocks: list[float] = []

    def main() -> None:
        clocks.append(time.time())
        time.sleep(50.0)
        clocks.append(time.time())

    assert outcome_of(main) is None
    assert clocks[1] - clocks[0] == 50.0
    assert time.monotonic() - began < 50.0


@pytest.mark.parametrize("stop", [pytest.fail.Exception, KeyboardInterrupt])
def test_the_end_of_a_test_in_the_middle_of_a_program_is_no_defect_of_the_program(stop: type[BaseException]) -> None:
    def main() -> None:
        time.sleep(1.0)
        raise stop("from outside")

    with pytest.raises(stop, match="from outside"):
        outcome_of(main)
