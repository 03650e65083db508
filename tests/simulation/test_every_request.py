"""A supervisor that is disturbed at each single request of a restart, one history for each: no step is left out."""

from __future__ import annotations

import pytest

from tests.examples import examples
from tests.simulation.history import History, run
from tests.simulation.lost_drivers import DRIVER_FREEZES, HOST_FREEZES
from tests.simulation.plans import Happening, Plan

_ASKED = 200.0
# From a person's word to the last request before the claim of the new generation.
_REQUESTS = range(1, 91)
_DEEP = examples(1) > 1
_LENGTHS = {"freeze before": 700.0, "freeze after": 700.0}
_OTHERS = ("request lost", "reply lost", "freeze before", "freeze after", "failover before")


def disturbed(kind: str, request: int, *, helper: bool) -> History:
    fault = Happening(kind, at=_ASKED, who="keeper1", request=request, seconds=_LENGTHS.get(kind, 0.0))
    happenings = (Happening("restart", at=_ASKED), fault)
    return run(Plan("each request", happenings, ends=400.0, helper=helper))


@pytest.mark.parametrize("part", range(4))
def test_a_supervisor_may_die_between_any_two_requests_of_a_restart(part: int) -> None:
    for request in _REQUESTS[part::4]:
        history = disturbed("crash after", request, helper=request % 3 == 0)
        assert not history.violations, str(history)
        assert "keeper1: crash after" in history.story
        assert history.submissions == 2, str(history)


@pytest.mark.parametrize("kind", _OTHERS)
def test_any_request_of_a_restart_may_be_lost_or_slow(kind: str) -> None:
    for request in _REQUESTS if _DEEP else _REQUESTS[_OTHERS.index(kind) :: 18]:
        history = disturbed(kind, request, helper=request % 2 == 0)
        assert not history.violations, str(history)
        assert f"keeper1: {kind}" in history.story
        assert history.submissions == 2, str(history)


@pytest.mark.parametrize("request_", [1, 3, 4, 6, 12])
@pytest.mark.parametrize("kind", [DRIVER_FREEZES, HOST_FREEZES])
def test_a_driver_may_sleep_through_its_end_at_any_request(kind: str, request_: int) -> None:
    """Its process is killed when YARN gives it up; a host that was paused wakes beside its successor."""
    frozen = Happening(kind, who="driver 1", request=request_, seconds=2700.0)
    history = run(Plan("asleep", (frozen,), ends=3000.0, helper=request_ % 2 == 0))
    assert not history.violations, str(history)
    assert "gives application" in history.story
    assert history.submissions == 2, str(history)
