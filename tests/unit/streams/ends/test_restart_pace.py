"""The pace of restarts after ends that nobody planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.stream_policies import FailurePolicy
from airflow_kstream.policy.streams.ends.restart_pace import next_attempt
from tests.simulated.restarts import DAY, HOUR, MINUTE, POLICY, WEEK, after, end, outage
from tests.simulated.yarn import START, past_end


def crash_loop(
    fingerprint: str = "", per_end: timedelta = MINUTE, over: timedelta = WEEK, policy: FailurePolicy = POLICY
) -> list[PastEnd]:
    """Return the ends of a job that dies `per_end` after each start, for as long as `over`."""
    ends: list[PastEnd] = []
    now = START
    while now < START + over:
        now += per_end
        number = len(ends) + 1
        ends.append(end(number, now - START, per_end, fingerprint=fingerprint or f"Error {number}"))
        now = after(ends, policy=policy).at
    return ends


def most_in_a_day(ends: Sequence[PastEnd]) -> int:
    """Return the most restarts within any 24 hours: each is the claim of a generation but the first."""
    claims = [each.claimed for each in ends[1:]]
    return max(sum(claim < other < claim + DAY for other in claims) + 1 for claim in claims)


def test_a_job_that_worked_for_long_is_followed_within_half_a_minute() -> None:
    attempt = after([end(1, timedelta()), end(2, WEEK, WEEK, worked=True)])
    assert START + WEEK <= attempt.at <= START + WEEK + timedelta(seconds=30)


def test_a_stream_that_works_for_long_is_back_to_zero() -> None:
    ends = crash_loop("same", over=timedelta(hours=12))
    assert after(ends).breaker
    last = ends[-1].at - START
    attempt = after([*ends, end(99, last + 2 * DAY, DAY, worked=True, fingerprint="same")])
    assert (attempt.breaker, attempt.at <= START + last + 2 * DAY + POLICY.backoff) == ("", True)


def test_a_source_that_brings_nothing_for_days_makes_no_crash_loop() -> None:
    """An idle stream commits nothing, and a server's failure ends it once a week."""
    ends = [end(number, number * WEEK, WEEK, fingerprint="ConnectException: nn") for number in range(1, 9)]
    attempt = after(ends)
    assert (attempt.breaker, attempt.at <= ends[-1].at + POLICY.backoff) == ("", True)


def test_a_job_that_dies_at_every_start_is_at_last_tried_every_two_hours() -> None:
    ends = crash_loop("ValueError: no such column")
    pauses = [later.at - earlier.at for earlier, later in pairwise(ends)]
    assert pauses[0] <= timedelta(seconds=90)
    assert pauses[-1] == POLICY.probe_every + MINUTE
    assert len(ends) < 7 * 12 + 20
    assert "ended of the same error" in after(ends).breaker


def test_ends_without_an_error_are_no_error_that_repeats_and_yet_within_the_budget() -> None:
    """Of a Python job YARN tells an exit status: three different faults would count as one."""
    ends: list[PastEnd] = []
    now = START
    while now < START + 2 * DAY:
        now += MINUTE
        ends.append(end(len(ends) + 1, now - START, fingerprint=""))
        attempt = after(ends)
        assert "of the same error" not in attempt.breaker
        now = attempt.at
    assert most_in_a_day(ends) <= POLICY.per_day
    assert after(ends).at - ends[-1].at >= POLICY.probe_every


def test_a_breaker_opens_within_two_hours_of_the_first_end() -> None:
    ends = crash_loop("ValueError: no such column", over=timedelta(hours=2))
    assert after(ends).breaker


def test_a_commit_closes_the_breaker() -> None:
    ends = crash_loop("same", over=timedelta(hours=3))
    assert after(ends).breaker
    worked = end(99, ends[-1].at - START + 3 * HOUR, worked=True, fingerprint="same")
    assert after([*ends, worked]).breaker == ""


@pytest.mark.parametrize("per_day", [1, 2, 3, 8, 24, 100])
@pytest.mark.parametrize("per_end", [timedelta(), MINUTE, 20 * MINUTE])
def test_no_day_has_more_restarts_than_the_budget(per_day: int, per_end: timedelta) -> None:
    ends = crash_loop(per_end=per_end, policy=FailurePolicy(per_day=per_day))
    assert most_in_a_day(ends) <= per_day


def test_a_budget_of_a_day_leaves_no_long_gap() -> None:
    """Once half of it is used, the rest is spread, so that a repaired job is back within two hours or so."""
    pauses = [later.claimed - earlier.at for earlier, later in pairwise(crash_loop())]
    assert max(pauses) <= POLICY.probe_every + HOUR
    assert "24 restarts are allowed" in after(crash_loop()).breaker


def test_one_error_for_some_minutes_opens_no_breaker() -> None:
    """A server that is away for minutes looks like this."""
    ends = [end(number, number * MINUTE, fingerprint="ConnectException: nn") for number in range(1, 8)]
    assert after(ends).breaker == ""


def test_an_error_between_commits_opens_no_breaker() -> None:
    ends = [end(number, number * HOUR, fingerprint="same", worked=number == 3) for number in range(1, 5)]
    assert after(ends).breaker == ""


def test_a_persons_word_closes_the_breaker_and_starts_the_count_again() -> None:
    ends = crash_loop("same")
    assert next_attempt(POLICY, ends, "orders", cleared=ends[-1].at) is None
    again = end(len(ends) + 1, ends[-1].at - START + MINUTE, fingerprint="same")
    attempt = after([*ends, again], cleared=ends[-1].at)
    assert (attempt.breaker, attempt.at <= again.at + POLICY.backoff) == ("", True)


@pytest.mark.parametrize("blameless", [{"kind": EndKind.PREEMPTED, "fingerprint": ""}, {"shared": True}])
def test_what_a_job_has_no_part_in_costs_nothing_of_its_budget(blameless: dict[str, object]) -> None:
    usual = end(1, timedelta(), fingerprint="same")
    ends = [
        replace(usual, generation=number, at=START + number * 10 * MINUTE, **blameless)  # type: ignore[arg-type]
        for number in range(1, 200)
    ]
    attempt = after(ends)
    assert (attempt.breaker, attempt.at <= ends[-1].at + POLICY.longest_backoff) == ("", True)


def test_once_the_environment_answers_the_backoff_starts_again() -> None:
    """Kafka was away for half a day under many streams; they worked again, and one ends of something else."""
    away = [end(number, number * 10 * MINUTE, shared=True, fingerprint="Kafka") for number in range(1, 60)]
    back = end(60, DAY, 10 * MINUTE, worked=True, fingerprint="another")
    assert after([*away, back]).at <= back.at + POLICY.backoff


@pytest.mark.parametrize("lasted", [timedelta(seconds=1), 2 * MINUTE])
@pytest.mark.parametrize("hours", [0.1, 2.5, 24])
def test_an_outage_lengthens_the_pause_to_ten_times_the_first_at_most(hours: float, lasted: timedelta) -> None:
    """Only the next attempt finds out that Kafka answers; and a job that finds it away may end within a second."""
    for stream in ("orders", "clicks", "payments"):
        pauses = [later.claimed - earlier.at for earlier, later in pairwise(outage(stream, hours, lasted))]
        assert all(POLICY.backoff <= pause <= 10 * POLICY.backoff for pause in pauses)
        assert pauses[0] <= 2 * POLICY.backoff


def test_an_own_end_amid_an_outage_doubles_the_pause_by_the_own_ones_alone() -> None:
    own = [end(number, number * MINUTE) for number in range(1, 8)]
    away = [end(number, number * MINUTE, shared=True, fingerprint="Kafka") for number in range(8, 30)]
    for stream in ("orders", "clicks", "payments"):
        attempts = [next_attempt(POLICY, [*ends, end(30, HOUR)], stream, None) for ends in (own, [*own, *away], away)]
        assert attempts[0] == attempts[1], "an outage forgives nothing, and adds nothing"
        assert attempts[2]
        assert attempts[2].at <= START + HOUR + POLICY.backoff


def test_own_ends_double_the_pause() -> None:
    ends = [end(number, number * HOUR) for number in range(1, 6)]
    longest = [
        max(next_attempt(POLICY, ends[:count], f"s-{seed}", None).at - ends[count - 1].at for seed in range(200))  # type: ignore[union-attr]
        for count in range(1, 6)
    ]
    for count, pause in enumerate(longest):
        assert 0.9 * POLICY.backoff * 2**count < pause <= POLICY.backoff * 2**count


def test_a_fleet_that_died_together_does_not_restart_together() -> None:
    """A thousand streams: nearly all at moments of their own, and spread over the whole wait."""
    ends = [end(number, number * HOUR) for number in range(1, 8)]
    for count in (1, 4, 7):
        attempts = (next_attempt(POLICY, ends[:count], f"stream-{number}", None) for number in range(1000))
        waits = sorted((attempt.at - ends[count - 1].at) for attempt in attempts if attempt)
        longest = min(POLICY.longest_backoff, POLICY.backoff * 2 ** (count - 1))
        assert len(set(waits)) > 990
        assert waits[-1] <= longest
        for tenth in range(10):
            within = sum(longest * tenth / 10 <= wait < longest * (tenth + 1) / 10 for wait in waits)
            assert 50 < within < 170, f"{within} of 1000 streams in one tenth of the wait"


@pytest.mark.parametrize("kind", EndKind)
def test_only_what_was_no_fault_of_the_job_costs_none_of_its_restarts(kind: EndKind) -> None:
    """An end whose cause nobody knows may be the job's fault."""
    assert past_end(1, kind=kind).costs is (kind not in {EndKind.PREEMPTED, EndKind.NODE_LOST, EndKind.DONE})
