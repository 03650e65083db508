"""Random histories of the whole supervisor: whatever happens to servers, programs, jobs and replies, its promises hold.

The real supervisor, folder and clients run; the servers are simulated, because no real ones can be frozen, deposed and
cut off at each single request, hundreds of times a minute. How real servers answer is the business of tests/contract.
A failure prints the history; `plan(family, number)` brings the same one again.
"""

from __future__ import annotations

import pytest

from tests.examples import examples
from tests.simulation.families import FAMILIES, plan
from tests.simulation.history import run

# Of the usual family, in this many tests: each prints the first history that it finds.
_PARTS = 20
# Of the faults at any request.
_PARTS_OF_REQUESTS = 3
_DEEP = examples(1) > 1
# Of each of the others: the smallest part of a deep run that can be repeated alone.
_PARTS_OF_A_DOOR = 4 if _DEEP else 1
# Together two hundred, and ten thousand in the slow tier.
USUAL, AT_REQUESTS, OF_A_DOOR = (3000, 1400, 400) if _DEEP else (60, 21, 8)


@pytest.mark.parametrize("part", range(_PARTS))
def test_the_usual_disturbances_break_no_promise(part: int) -> None:
    for number in range(1 + part, USUAL + 1, _PARTS):
        history = run(plan("usual", number))
        assert not history.violations, str(history)


@pytest.mark.parametrize("part", range(_PARTS_OF_REQUESTS))
def test_a_fault_at_any_request_breaks_no_promise(part: int) -> None:
    for number in range(1 + part, AT_REQUESTS + 1, _PARTS_OF_REQUESTS):
        history = run(plan("any request", number))
        assert not history.violations, str(history)


@pytest.mark.parametrize("part", range(_PARTS_OF_A_DOOR))
@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in {"usual", "any request"}])
def test_no_promise_is_broken_behind(family: str, part: int) -> None:
    for number in range(1 + part, OF_A_DOOR + 1, _PARTS_OF_A_DOOR):
        history = run(plan(family, number))
        assert not history.violations, str(history)
