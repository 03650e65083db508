"""Polling until there is an answer or time is up; a server that is away proves nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import timedelta

import pytest

from airflow_kstream.clients.waiting import until
from airflow_kstream.model.errors import Denied, Unavailable

OFTEN, NOT_LONG, LONG = timedelta(milliseconds=1), timedelta(milliseconds=50), timedelta(minutes=1)


def saying(answers: Iterable[str | Exception | None]) -> Callable[[], str | None]:
    """Return a question that gives one answer after the other, and raises those that are errors."""
    rest = iter(answers)

    def ask() -> str | None:
        answer = next(rest)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ask


def forever(answer: str | Exception | None) -> Iterable[str | Exception | None]:
    while True:
        yield answer


def test_the_first_answer_ends_the_wait() -> None:
    assert until(saying([None, None, "there", "too late"]), OFTEN, LONG) == "there"


def test_no_answer_in_time_is_none() -> None:
    began = time.monotonic()
    assert until(saying(forever(None)), OFTEN, NOT_LONG) is None
    assert time.monotonic() - began >= NOT_LONG.total_seconds()


def test_a_wait_of_nothing_still_asks_once() -> None:
    assert until(saying(["there"]), LONG, timedelta()) == "there"
    assert until(saying([None]), LONG, timedelta()) is None


def test_a_server_that_is_away_is_asked_again() -> None:
    assert until(saying([Unavailable("away"), None, Unavailable("away"), "there"]), OFTEN, LONG) == "there"


def test_a_server_that_stays_away_is_no_answer() -> None:
    with pytest.raises(Unavailable, match="away"):
        until(saying(forever(Unavailable("away"))), OFTEN, NOT_LONG)


def test_a_refusal_ends_the_wait_at_once() -> None:
    with pytest.raises(Denied):
        until(saying([Denied("no"), "there"]), OFTEN, LONG)
