"""Streams that end again and again for hours: how often they start, and who learns of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from airflow_kstream.model.streams.plan import Phase, Settled
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.registry import registered
from tests.simulated.ended_lives import BRISK, GREEN, Changing, keep, recorded
from tests.simulated.life import Life
from tests.simulated.restarts import HOUR, MINUTE

INFRASTRUCTURE = "User class threw exception: java.net.ConnectException: nn"
KAFKA = "User class threw exception: org.apache.kafka.common.errors.TimeoutException: Timeout expired while fetching"


def test_a_job_that_dies_at_each_start_is_started_ever_less_often(life: Life) -> None:
    began = life.clock.now()
    phases = keep(life, ends=16)
    assert life.clock.now() - began > timedelta(hours=8)
    assert phases.count(Phase.ENDED) == len(recorded(life)), "each end is one failed run"
    assert "its circuit breaker is open" in life.reconcile(Mode.ENSURE).why


def test_a_breaker_fails_the_watch_even_if_each_end_needed_nobody(life: Life) -> None:
    phases = keep(life, ends=13, diagnostics=INFRASTRUCTURE)
    assert Phase.ENDED in phases
    assert phases.index(Phase.ENDED) > 3
    assert registered(life.run.session, life.run.id).desired().at is None, "nobody wrote a desired state"


def test_a_changed_spec_goes_back_once_and_then_the_pace_alone_decides(life: Life) -> None:
    stream = Changing(life)
    stream.reconcile(Mode.ENSURE)
    stream.commit()
    stream.declared = GREEN
    assert stream.reconcile().generation == 2
    stream.end()
    stream.follow()
    began = stream.life.clock.now()
    for _ in range(9):
        stream.end()
        stream.follow()
    assert stream.arguments[3:] == [()] * 9
    assert [end.generation for end in stream.ends if end.back_to] == [2]
    assert stream.life.clock.now() - began > timedelta(hours=2), "its breaker opened"


def test_a_lone_stream_whose_kafka_is_silent_opens_no_breaker_and_needs_nobody(life: Life) -> None:
    stream = Changing(life)
    stream.reconcile(Mode.ENSURE)
    stream.commit()
    for _ in range(12):
        stream.end(KAFKA)
        report = stream.follow()
        assert report.phase is Phase.RUNNING
    assert [end.shared for end in recorded(life)] == [True] * 12
    assert not any("circuit breaker" in line for line in stream.lines)
    assert stream.arguments == [()] * 13


def test_a_spec_that_never_worked_may_name_a_broker_that_does_not_exist(life: Life) -> None:
    phases = keep(life, ends=12, diagnostics=KAFKA)
    assert recorded(life)
    assert not any(end.shared for end in recorded(life))
    assert Phase.ENDED in phases, "its breaker opened, and somebody was told"


def test_a_success_every_minute_is_followed_ever_less_often(life: Life) -> None:
    """A DAG that runs it again at once, for six hours: 360 would be possible."""
    life.run = replace(life.run, spec=BRISK)
    began, mode = life.clock.now(), Mode.ENSURE
    while life.clock.now() - began < 6 * HOUR:
        report = life.reconcile(mode)
        mode = Mode.ENSURE if report.ended else Mode.WATCH
        life.clock.ahead += MINUTE
        if report.phase is Phase.RUNNING:
            life.yarn.end(list(life.yarn.apps)[-1])
        elif isinstance(seen := life.watch().step, Settled) and seen.until:
            life.clock.ahead += max(seen.until - life.clock.now(), timedelta())
    assert 15 <= len(life.yarn.apps) <= 19


def test_a_success_of_an_hourly_job_is_followed_at_once(life: Life) -> None:
    life.run = replace(life.run, spec=BRISK)
    for generation in range(1, 9):
        assert life.reconcile(Mode.ENSURE).generation == generation
        life.clock.ahead += 59 * MINUTE
        life.yarn.end(list(life.yarn.apps)[-1])
        assert life.reconcile(Mode.WATCH).job.succeeded
        life.clock.ahead += MINUTE
