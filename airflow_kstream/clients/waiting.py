"""The one way to wait for something that has to be polled."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from airflow_kstream.model.errors import Unavailable

T = TypeVar("T")


def until(ask: Callable[[], T | None], every: timedelta, within: timedelta) -> T | None:
    """Call `ask` until the answer is not None, and return it; return None if it stays None for as long as `within`.

    It calls at least once, so that `within` zero is a single check. It retries when a server is away.

    Raises Unavailable: when the server is still away at the end. Any other error ends the wait at once.
    """
    ends = time.monotonic() + within.total_seconds()
    while True:
        try:
            answer = ask()
        except Unavailable:
            if time.monotonic() >= ends:
                raise
        else:
            if answer is not None or time.monotonic() >= ends:
                return answer
        time.sleep(every.total_seconds())
