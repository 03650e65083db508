"""The one way to wait for something that has to be asked for again and again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from airflow_kstream.model.errors import Unavailable

T = TypeVar("T")


def until(ask: Callable[[], T | None], every: timedelta, within: timedelta) -> T | None:
    """Ask until the answer is not None, and return it; None when it stays None for as long as `within`.

    Asks at least once, so that `within` zero is a single look. A server that is away is asked again.

    Raises Unavailable: when the server is still away at the end. Any other error ends the wait at once.
    """
    asking = Retrying(
        retry=retry_if_exception_type(Unavailable) | retry_if_result(lambda answer: answer is None),
        wait=wait_fixed(every),
        stop=stop_after_delay(within),
        retry_error_callback=_last_answer,
    )
    answer: T | None = asking(ask)
    return answer


def _last_answer(state: RetryCallState) -> Any:
    """The answer, or the error, that the last question got."""
    return state.outcome.result() if state.outcome else None
