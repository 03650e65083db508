"""A story whose tests are steps: each begins where the one before it ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Steps:
    """The base of what the tests of a story share."""

    steps_done = 0

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        """Fail at once, and not after minutes of waiting, if an earlier step failed or was left out."""
        assert self.steps_done == number - 1, "an earlier step failed, or was left out"
        yield
        self.steps_done = number
