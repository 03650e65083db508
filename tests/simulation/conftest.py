"""Simulations wait for nothing, so what they may take is processor time: a busy machine lengthens everything else."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from tests.simulated.fixtures import life

__all__ = ["life"]

# Seconds of the processor; in the profile "deep" the longest test takes a quarter.
_AT_MOST = 3600


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave the clock on the wall out: a test of 500 s, starved by others, ended by it in the middle of a history."""
    item.add_marker(pytest.mark.timeout(0))


@pytest.fixture(autouse=True)
def processor_time() -> Iterator[None]:
    """End a test that computes for ever."""

    def fail(number: int, frame: FrameType | None) -> None:
        pytest.fail(f"it computes for more than {_AT_MOST} s", pytrace=True)

    before = signal.signal(signal.SIGPROF, fail)
    signal.setitimer(signal.ITIMER_PROF, _AT_MOST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
