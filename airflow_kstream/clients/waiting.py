"""The one way to wait for something that has to be polled."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from airflow_kstream.model.errors import Unavailable

T = TypeVar("T")


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
