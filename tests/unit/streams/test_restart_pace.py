"""The pace of restarts after ends that nobody planned."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.generation_end import EndKind, PastEnd
from airflow_kstream.model.stream_policies import FailurePolicy
from airflow_kstream.policy.streams.restart_pace import Attempt, next_attempt

POLICY = FailurePolicy()
START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR, WEEK = timedelta(minutes=1), timedelta(hours=1), timedelta(days=7)


def end(number: int, at: timedelta, **more: object) -> PastEnd:
    usual = {"kind": EndKind.CODE, "fingerprint": f"Error {number}", "lasted": MINUTE, "committed": False} | more
    return PastEnd(number, at=START + at, **usual)  # type: ignore[arg-type]


def after(ends: Sequence[PastEnd], cleared: datetime | None = None) -> Attempt:
    attempt = next_attempt(POLICY, ends, "orders", cleared)
    assert attempt is not None
    return attempt


def crash_loop(fingerprint: str = "", per_end: timedelta = MINUTE, over: timedelta = WEEK) -> list[PastEnd]:
    """Return the ends of a job that dies `per_end` after each start, for as long as `over`."""
    ends: list[PastEnd] = []
    now = START
    while now < START + over:
        now += per_end
        number = len(ends) + 1
        ends.append(end(number, now - START, fingerprint=fingerprint or f"Error {number}", lasted=per_end))
        now = after(ends).at
    return ends


def test_a_job_that_worked_for_long_is_followed_within_half_a_minute() -> None:
    attempt = after([end(1, timedelta()), end(2, WEEK, committed=True, lasted=WEEK)])
    assert START + WEEK <= attempt.at <= START + WEEK + timedelta(seconds=30)


def test_a_job_that_dies_at_every_start_is_at_last_tried_every_two_hours() -> None:
    ends = crash_loop("ValueError: no such column")
    pauses = [later.at - earlier.at for earlier, later in pairwise(ends)]
    assert pauses[0] <= timedelta(seconds=90)
    assert pauses[-1] == POLICY.probe_every + MINUTE
    assert len(ends) < 7 * 12 + 20
    assert "ended of the same error" in after(ends).breaker


def test_a_job_that_dies_of_many_errors_stays_within_the_budget_of_a_day() -> None:
    ends = crash_loop()
    days = {day: sum((each.at - START).days == day for each in ends) for day in range(1, 7)}
    assert max(days.values()) <= POLICY.per_day + 12
    assert "24 are allowed" in after(ends).breaker


def test_one_error_for_some_minutes_opens_no_breaker() -> None:
    """A server that is away for minutes looks like this."""
    ends = [end(number, number * MINUTE, fingerprint="ConnectException: nn") for number in range(1, 8)]
    assert after(ends).breaker == ""


def test_an_error_between_commits_opens_no_breaker() -> None:
    ends = [end(number, number * HOUR, fingerprint="same", committed=number == 3) for number in range(1, 5)]
    assert after(ends).breaker == ""


def test_a_persons_word_closes_the_breaker_and_starts_the_count_again() -> None:
    ends = crash_loop("same")
    assert next_attempt(POLICY, ends, "orders", cleared=ends[-1].at) is None
    again = end(len(ends) + 1, ends[-1].at - START + MINUTE, fingerprint="same")
    attempt = after([*ends, again], cleared=ends[-1].at)
    assert (attempt.breaker, attempt.at <= again.at + POLICY.backoff) == ("", True)


def test_preemption_costs_nothing_of_the_budget() -> None:
    ends = [end(number, number * MINUTE, kind=EndKind.PREEMPTED, fingerprint="") for number in range(1, 200)]
    assert after(ends).breaker == ""


def test_a_fleet_that_died_together_does_not_restart_together() -> None:
    moments = {next_attempt(POLICY, [end(1, HOUR)], f"stream-{number}", None) for number in range(1000)}
    assert len(moments) > 990


some_ends = st.lists(
    st.builds(
        PastEnd,
        generation=st.integers(1, 99),
        kind=st.sampled_from(EndKind),
        fingerprint=st.sampled_from(["", "a", "b"]),
        at=st.integers(0, 10**6).map(lambda seconds: START + timedelta(seconds=seconds)),
        lasted=st.integers(0, 10**5).map(lambda seconds: timedelta(seconds=seconds)),
        committed=st.booleans(),
    ),
    min_size=1,
).map(lambda ends: sorted(ends, key=lambda each: each.at))


@given(some_ends)
def test_an_attempt_comes_after_the_end_and_never_later_than_a_probe(ends: list[PastEnd]) -> None:
    attempt = after(ends)
    assert ends[-1].at <= attempt.at <= ends[-1].at + POLICY.probe_every
    assert attempt == after(ends)
