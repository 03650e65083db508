"""What follows an end that nobody planned: its record, a pause, a person's word."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.contract import stop_marker
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import Desired, DesiredState, FailedSpec
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.plan import GiveUp, Note, Phase, Settled, Submit, Wait
from airflow_kstream.policy.streams.ends.after_end import needs_a_person, state_refused
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from tests.simulated.flink import UNMAPPED
from tests.simulated.restarts import breaking, dead, noted, step
from tests.simulated.values import changed
from tests.simulated.yarn import START, TICKET_SPEC, SimulatedYarn, application, claim_of, past_end, watched

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
_AM = "Application application_1_0001 failed 1 times due to AM Container for x exited with  exitCode: "
CODE = "User class threw exception: java.lang.IllegalStateException: x"
_KILLED = "Application application_1_0001 was killed by user {} at 10.0.0.7"


def settled(yarn: SimulatedYarn, mode: Mode = Mode.WATCH) -> Settled:
    seen = step(yarn, mode)
    assert isinstance(seen, Settled), seen
    return seen


@pytest.mark.parametrize("mode", Mode)
def test_an_end_is_recorded_before_anything_follows_it(mode: Mode) -> None:
    yarn = dead("User application exited with status 1")
    seen = step(yarn, mode)
    assert seen == Note(
        PastEnd(1, EndKind.CODE, "", at=START + HOUR, claimed=START, lasted=HOUR, worked=True),
        "application_1_0001 ended by itself (code): FAILED/FAILED, User application exited with status 1",
    )


@pytest.mark.parametrize("mode", Mode)
def test_a_first_end_is_followed_within_half_a_minute(mode: Mode) -> None:
    yarn = dead()
    yarn.now = START + HOUR
    recorded = noted(yarn)
    pause = step(yarn, mode)
    assert isinstance(pause, Wait)
    assert recorded.at == yarn.now
    assert yarn.now <= pause.until <= yarn.now + timedelta(seconds=30)
    yarn.now = pause.until
    assert isinstance(step(yarn, mode), Submit)


@pytest.mark.parametrize("mode", Mode)
def test_a_stream_that_ends_again_and_again_waits_in_no_worker_slot(mode: Mode) -> None:
    yarn = dead(lived=10 * MINUTE)
    yarn.ends = [past_end(number - 8, START + number * MINUTE) for number in range(2, 9)]
    noted(yarn)
    pause = settled(yarn, mode)
    assert pause.phase is Phase.BACKING_OFF
    assert pause.until is not None
    assert pause.until - yarn.now > timedelta(seconds=30)
    assert (
        f"it is followed at {pause.until:%Y-%m-%d %H:%M:%S} UTC, or after `kstream streams start orders`" in pause.why
    )
    yarn.now = pause.until - timedelta(seconds=10)
    assert isinstance(step(yarn, mode), Wait)
    yarn.now = pause.until
    assert isinstance(step(yarn, mode), Submit)


def test_the_third_end_of_one_error_opens_the_breaker_and_says_why() -> None:
    yarn = breaking(dead(CODE, commits=0))
    recorded = noted(yarn)
    assert needs_a_person(TICKET_SPEC, yarn.look())
    pause = settled(yarn)
    assert (pause.phase, pause.breaker, pause.until) == (Phase.BACKING_OFF, True, recorded.at + 2 * HOUR)
    assert "its circuit breaker is open, because 3 generations in a row ended of the same error" in pause.why
    assert yarn.desired == Desired(), "the desired state is a person's"


def test_a_persons_start_closes_the_breaker_at_once() -> None:
    yarn = breaking(dead(CODE, commits=0))
    noted(yarn)
    yarn.desired = Desired(DesiredState.RUNNING, 0, "ann", yarn.now + MINUTE)
    yarn.now += 2 * MINUTE
    assert isinstance(step(yarn), Submit)


class TestAKill:
    @pytest.mark.parametrize("mode", Mode)
    def test_by_a_person_is_respected_until_a_person_starts_the_stream(self, mode: Mode) -> None:
        yarn = dead(_KILLED.format("bob"))
        assert noted(yarn).killed_by == "bob"
        for days in (0, 1, 365):
            yarn.now += timedelta(days=days)
            pause = settled(yarn, mode)
            assert pause.phase is Phase.KILLED
            assert "was killed by bob: " in pause.why
            assert "nothing starts it until `kstream streams start orders`" in pause.why
        yarn.desired = Desired(DesiredState.RUNNING, 0, "ann", yarn.now)
        assert isinstance(step(yarn, mode), Submit)

    def test_by_a_person_is_respected_past_the_horizon(self) -> None:
        yarn = dead(_KILLED.format("bob"), lived=timedelta(days=6))
        yarn.now += timedelta(days=2)
        noted(yarn)
        assert settled(yarn).phase is Phase.KILLED

    @pytest.mark.parametrize("user", ["streamer", "airflow"])
    def test_by_a_principal_of_ours_is_a_failure_like_others(self, user: str) -> None:
        yarn = dead(_KILLED.format(user))
        seen = replace(yarn.look(), yarn=replace(yarn.look().yarn, ours=frozenset({"airflow"})))
        note = next_step(TICKET_SPEC, seen, watched(seen), Mode.WATCH)
        assert isinstance(note, Note)
        assert (note.end.killed_by, note.end.costs) == ("", True)

    def test_of_unknown_origin_is_a_failure_like_others(self) -> None:
        assert noted(dead("Application killed.")).killed_by == ""

    def test_that_a_person_has_answered_already_is_followed_at_once(self) -> None:
        """They killed it, and started it before any supervisor had seen that."""
        yarn = dead(_KILLED.format("bob"))
        yarn.desired = Desired(DesiredState.RUNNING, 0, "bob", yarn.now - MINUTE)
        assert isinstance(step(yarn), Submit)

    def test_at_a_time_that_yarn_does_not_tell_is_answered_by_a_later_start(self) -> None:
        """A caller who may not view the application sees no times; a ResourceManager's clock may be ahead."""
        yarn = dead(_KILLED.format("bob"))
        yarn.applications = [(number, replace(app, finished=None)) for number, app in yarn.applications]
        noted(yarn)
        yarn.desired = Desired(DesiredState.RUNNING, 0, "ann", yarn.now - MINUTE)
        assert settled(yarn).phase is Phase.KILLED
        yarn.desired = Desired(DesiredState.RUNNING, 0, "ann", yarn.now)
        assert isinstance(step(yarn), Submit)

    def test_of_a_stream_that_is_to_be_stopped_is_no_failure(self) -> None:
        yarn = dead(_KILLED.format("bob"))
        yarn.desired = Desired(DesiredState.STOPPED, 0, "bob")
        assert settled(yarn).phase is Phase.STOPPED


class TestWhoHasToKnow:
    @pytest.mark.parametrize("diagnostics", [f"{_AM}-104", "User application exited with status 1", "", _KILLED])
    def test_a_job_that_another_try_may_not_mend_needs_a_person(self, diagnostics: str) -> None:
        yarn = dead(diagnostics)
        noted(yarn)
        assert needs_a_person(TICKET_SPEC, yarn.look())

    @pytest.mark.parametrize(
        "diagnostics",
        [f"{_AM}-102", f"{_AM}-100", "java.io.IOException: GSS initiate failed", "java.net.ConnectException: nn"],
    )
    def test_a_cluster_that_recovers_needs_nobody(self, diagnostics: str) -> None:
        yarn = dead(diagnostics, lived=MINUTE, commits=0)
        noted(yarn)
        assert not needs_a_person(TICKET_SPEC, yarn.look())

    def test_a_stream_that_the_environment_ended_needs_nobody(self) -> None:
        yarn = dead("User class threw exception: com.acme.KafkaGone: x")
        yarn.ends = [replace(noted(yarn), shared=True)]
        assert not needs_a_person(TICKET_SPEC, yarn.look())

    def test_an_open_breaker_needs_a_person_whatever_the_error_is(self) -> None:
        yarn = breaking(dead("java.net.ConnectException: nn", commits=0))
        yarn.ends = [replace(end, fingerprint="java.net.ConnectException: nn") for end in yarn.ends]
        noted(yarn)
        assert needs_a_person(TICKET_SPEC, yarn.look())


def refused() -> SimulatedYarn:
    """A first generation that was refused the state with which a person wanted it to begin."""
    yarn = dead(UNMAPPED, lived=MINUTE, commits=0)
    assert noted(yarn).kind is EndKind.STATE
    return yarn


class TestARefusedState:
    def test_opens_the_breaker_at_once_and_is_not_tried_again(self) -> None:
        yarn = refused()
        assert needs_a_person(TICKET_SPEC, yarn.look())
        for later in (MINUTE, 3 * HOUR, 100 * HOUR):
            yarn.now = START + later
            pause = settled(yarn, Mode.ENSURE)
            assert (pause.phase, pause.breaker, pause.until) == (Phase.BACKING_OFF, True, None)
        assert "Nothing follows until `kstream streams start orders --allow-non-restored-state`" in pause.why

    def test_is_tried_again_after_a_persons_word(self) -> None:
        yarn = refused()
        yarn.desired = Desired(DesiredState.RUNNING, 0, "ann", yarn.now + MINUTE)
        yarn.now += 2 * MINUTE
        assert isinstance(step(yarn), Submit)

    def test_is_no_word_on_another_declaration(self) -> None:
        yarn = refused()
        assert state_refused(TICKET_SPEC, yarn.look())
        assert not state_refused(replace(TICKET_SPEC, application="/jobs/mended.py"), yarn.look())

    def test_of_what_took_the_place_of_the_declared_spec_is_tried_no_more_either(self) -> None:
        yarn = refused()
        former, failed = replace(TICKET_SPEC, application="/jobs/former.py"), FailedSpec(fingerprint(TICKET_SPEC), 0)
        yarn.claims[1] = changed(yarn.claims[1], spec_fingerprint=fingerprint(former), instead_of=failed)
        assert state_refused(TICKET_SPEC, yarn.look())


def test_a_planned_end_is_no_end_of_its_own() -> None:
    for planned in ({stop_marker(1)}, set()):
        yarn = dead("User application exited with status 1")
        yarn.files |= planned
        yarn.desired = Desired(DesiredState.RUNNING, 0 if planned else 1, "ann")
        assert isinstance(step(yarn), Submit)


WEEK_AND_A_DAY = timedelta(days=8)


def test_an_end_past_the_horizon_is_recorded_as_that_of_its_credentials() -> None:
    yarn = dead("User application exited with status 1", lived=WEEK_AND_A_DAY)
    recorded = noted(yarn)
    assert (recorded.kind, recorded.at) == (EndKind.CREDENTIALS, START + WEEK_AND_A_DAY)
    assert not needs_a_person(TICKET_SPEC, yarn.look())
    followed = step(yarn)
    assert isinstance(followed, Submit)
    assert "generation 1 ended past its horizon" in followed.why


@pytest.mark.parametrize("mode", Mode)
def test_an_end_before_the_horizon_that_is_seen_after_it_is_the_jobs_own(mode: Mode) -> None:
    """Its supervisor was away over a weekend, and no token was dead when the job failed."""
    yarn = dead("User application exited with status 1")
    yarn.now = START + WEEK_AND_A_DAY
    recorded = noted(yarn)
    assert (recorded.kind, recorded.at) == (EndKind.CODE, START + HOUR)
    assert needs_a_person(TICKET_SPEC, yarn.look())
    followed = step(yarn, mode)
    assert isinstance(followed, Submit)
    assert "generation 1 ended by itself (code)" in followed.why


def test_a_success_before_the_horizon_stays_one_after_it() -> None:
    yarn = dead()
    yarn.applications = [(1, application(1, ApplicationState.FINISHED, finished=START + HOUR))]
    for moment in (START + 2 * HOUR, START + WEEK_AND_A_DAY):
        yarn.now = moment
        assert settled(yarn).phase is Phase.ENDED


def test_of_an_end_whose_time_nobody_tells_the_look_counts() -> None:
    yarn = dead("User application exited with status 1")
    yarn.applications = [(number, replace(app, finished=None)) for number, app in yarn.applications]
    yarn.now = START + WEEK_AND_A_DAY
    recorded = noted(yarn)
    assert (recorded.kind, recorded.at) == (EndKind.CREDENTIALS, yarn.now)


def test_the_drivers_own_word_names_the_cause_that_yarn_does_not_know() -> None:
    yarn = dead("User application exited with status 1")
    yarn.failure = "java.net.ConnectException: Call to kafka3:9092 failed"
    recorded = noted(yarn)
    assert (recorded.kind, recorded.fingerprint) == (
        EndKind.INFRASTRUCTURE,
        "java.net.ConnectException: Call to kafka#:# failed",
    )


def test_a_claim_that_never_brought_an_application_costs_a_restart() -> None:
    """A client that fails at each try would claim a generation a minute."""
    yarn = SimulatedYarn(now=START + HOUR, claims={1: claim_of(TICKET_SPEC, 1, START)})
    yarn.files = {"gen-000001", yarn.claims[1].fence}
    given_up = step(yarn)
    assert isinstance(given_up, GiveUp)
    yarn.carry_out(given_up)
    recorded = noted(yarn)
    assert (recorded.kind, recorded.costs) == (EndKind.NEVER_RAN, True)


def test_two_supervisors_that_see_one_end_count_it_once() -> None:
    yarn = dead()
    first, second = step(yarn), step(yarn)
    yarn.carry_out(first)
    yarn.now += MINUTE
    yarn.carry_out(second)
    assert [end.generation for end in yarn.ends] == [1]
    assert not isinstance(step(yarn), Note)
