"""The one way to wait for something that has to be polled, and how long any answer is waited for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from airflow_kstream.model.errors import Unavailable

T = TypeVar("T")


class TimeLimits(NamedTuple):
    """The seconds that connecting, the wait for the next bytes, and a whole answer may take."""

    connect: float
    read: float
    whole: float


# Every answer that the supervisor asks for is small: a page of JSON, a claim, a folder's listing.
USUAL = TimeLimits(5.0, 30.0, 60.0)
CONNECT_AND_READ_SECONDS = (USUAL.connect, USUAL.read)


def until(ask: Callable[[], T], every: timedelta, within: timedelta) -> T:
    """Call `ask` until the answer is not None, and return it; return None if it stays None for as long as `within`.

    It calls at least once, so that `within` zero is a single check. It retries when a server is away.

    Raises Unavailable: when the server is still away at the end. Any other error ends the wait at once.
    """
    asking = Retrying(
        retry=retry_if_exception_type(Unavailable) | retry_if_result(lambda answer: answer is None),
        wait=wait_fixed(every),
        stop=stop_after_delay(within),
        retry_error_callback=_last_answer,
    )
    answer: T = asking(ask)
    return answer


def _last_answer(state: RetryCallState) -> Any:
    """Return the answer of the last call, or raise its error."""
    return state.outcome.result() if state.outcome else None
