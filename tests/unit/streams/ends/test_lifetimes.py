"""The lives of generations: when each began and ended, and why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.policy.streams.ends.death import lives
from tests.simulated.life import SPEC

START, DAY = datetime(2026, 3, 1, tzinfo=UTC), timedelta(days=1)


def claim(number: int) -> Claim:
    at = START + (number - 1) * 5 * DAY
    return Claim(number, f"n{number}", at, "airflow@worker", "f", SPEC, {}, f"generation {number - 1} is over")


CLAIMS = (claim(1), claim(2), claim(3))


def test_a_replaced_generation_ended_when_its_successor_was_claimed() -> None:
    first, second, third = lives(CLAIMS, (), {1: "its tokens end"})
    assert (first.ended, first.end, first.planned) == (second.began, "its tokens end", True)
    assert (second.ended, second.end) == (third.began, "generation 2 is over")
    assert (third.ended, third.end) == (None, "")


def test_an_unplanned_end_keeps_the_words_of_its_record() -> None:
    at = START + 6 * DAY
    end = PastEnd(2, EndKind.MEMORY, "", at, START + 5 * DAY, DAY, worked=True)
    _, second, _ = lives(CLAIMS, (end,), {})
    assert (second.ended, second.end, second.planned) == (at, "memory", False)
    killed = replace(end, kind=EndKind.KILLED, killed_by="eve")
    assert lives(CLAIMS, (killed,), {})[1].end == "killed; killed by eve"


def test_a_generation_that_lives_tells_why_it_was_asked_to_stop() -> None:
    assert lives(CLAIMS, (), {3: "maria requested a restart"})[2].end == "maria requested a restart"


def test_a_stream_that_was_never_submitted_has_none() -> None:
    assert lives((), (), {}) == ()
