"""The next step for a stream, case by case: each says what must be done, or must not be, and why."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState, NodeVerdict
from airflow_kstream.model.streams.contract import started_marker, stop_marker, stopped_marker
from airflow_kstream.model.streams.generation import Claim, Desired, DesiredState, Position
from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.model.streams.looks import Looks
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import GiveUp, Kill, Note, Phase, Refuse, Settled, Step, Stop, Submit, Wait
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from tests.simulated.values import changed
from tests.simulated.yarn import (
    CHECKPOINT,
    START,
    TICKET_SPEC,
    SimulatedYarn,
    application,
    claim_of,
    containers,
    past_end,
    watched,
)

RUNNING, ACCEPTED, FAILED = ApplicationState.RUNNING, ApplicationState.ACCEPTED, ApplicationState.FAILED
FIRST_LOOK = Looks()


def claim(generation: int = 1, commit: int = -1) -> Claim:
    query = None if commit < 0 else "q"
    return claim_of(TICKET_SPEC, generation, START, {CHECKPOINT: Position(query, commit, commit)})


def yarn_of(state: ApplicationState | None, *files: str, hours: float = 1, generation: int = 1) -> SimulatedYarn:
    """A generation with its fence, so many hours after its claim; its application in this state, or none.

    If it ended, the end is recorded, and the pause after it is over.
    """
    made = claim(generation)
    yarn = SimulatedYarn(now=START + timedelta(hours=hours), claims={generation: made})
    yarn.ends = [past_end(generation)] if state in {FAILED, None} else []
    yarn.files = {f"gen-{generation:06d}", made.fence, *files}
    if state:
        yarn.applications = [(generation, application(generation, state))]
    return yarn


def commit(yarn: SimulatedYarn, batch: int, at: timedelta = timedelta(minutes=1)) -> SimulatedYarn:
    yarn.offsets[batch] = yarn.commits[batch] = START + at
    return yarn


def step(yarn: SimulatedYarn, mode: Mode = Mode.WATCH, age: timedelta = timedelta(days=1)) -> Step:
    """Return the step of a supervisor that has watched for so long without a change."""
    seen = yarn.look()
    return next_step(TICKET_SPEC, seen, watched(seen, age), mode)


def at_once(yarn: SimulatedYarn, mode: Mode = Mode.WATCH) -> Step:
    """Return the step of a first look."""
    return next_step(TICKET_SPEC, yarn.look(), FIRST_LOOK, mode)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("state", "phase"), [(RUNNING, Phase.RUNNING), (ACCEPTED, Phase.STARTING)])
def test_a_generation_that_is_well_is_left_alone_for_as_long_as_its_tokens_live(
    mode: Mode, state: ApplicationState, phase: Phase
) -> None:
    for hours in (0, 1, 24, 4 * 24):
        seen = step(yarn_of(state, hours=hours), mode)
        assert isinstance(seen, Settled)
        assert seen.phase is phase


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("state", [RUNNING, ACCEPTED])
def test_at_its_horizon_a_generation_is_stopped(mode: Mode, state: ApplicationState) -> None:
    seen = step(yarn_of(state, hours=5.5 * 24), mode)
    assert isinstance(seen, Stop)
    assert seen.preflight
    forced = step(yarn_of(state, hours=7 * 24 - 0.5), mode)
    assert isinstance(forced, Stop)
    assert not forced.preflight


@pytest.mark.parametrize(("days", "words"), [(5.5, "its horizon is 1d 12h away: "), (8, "its horizon was 1d ago: ")])
def test_a_restart_says_when_the_horizon_is_or_was(days: float, words: str) -> None:
    seen = step(yarn_of(RUNNING, hours=days * 24))
    assert isinstance(seen, Stop)
    assert seen.why.startswith(words)


class TestAPersonsWord:
    @pytest.mark.parametrize("state", [RUNNING, ACCEPTED, FAILED, None])
    @pytest.mark.parametrize("hours", [1, 6 * 24, 8 * 24])
    @pytest.mark.parametrize("file", [stop_marker(1), stopped_marker(1), started_marker(1)])
    def test_a_held_stream_is_never_touched(self, state: ApplicationState | None, hours: float, file: str) -> None:
        yarn = yarn_of(state, file, hours=hours)
        yarn.desired = Desired(DesiredState.HELD, 1, "ann", reason="maintenance")
        for mode in Mode:
            seen = step(yarn, mode)
            assert isinstance(seen, Settled)
            assert seen.phase is Phase.HELD
            assert seen.why.startswith("held by ann until `kstream streams start orders`: maintenance; ")

    @pytest.mark.parametrize("mode", Mode)
    def test_a_stopped_one_that_lives_is_stopped(self, mode: Mode) -> None:
        for state in (RUNNING, ACCEPTED):
            yarn = yarn_of(state)
            yarn.desired = Desired(DesiredState.STOPPED, 0, "ann")
            seen = step(yarn, mode)
            assert isinstance(seen, Stop)
            assert (seen.application, seen.preflight) == ("application_1_0001", False)

    @pytest.mark.parametrize("mode", Mode)
    @pytest.mark.parametrize("files", [(), (stop_marker(1),), (stopped_marker(1),)])
    def test_a_stopped_one_that_is_dead_stays_dead(self, mode: Mode, files: tuple[str, ...]) -> None:
        for hours in (1, 8 * 24):
            yarn = yarn_of(FAILED, *files, hours=hours)
            yarn.desired = Desired(DesiredState.STOPPED, 1, "ann")
            seen = step(yarn, mode)
            assert isinstance(seen, Settled)
            assert seen.phase is Phase.STOPPED

    def test_a_stream_that_was_stopped_and_that_yarn_forgot_waits_for_nothing(self) -> None:
        """Its run would otherwise wait in a worker slot at each schedule, for every stopped stream."""
        yarn = yarn_of(None, started_marker(1), stop_marker(1))
        yarn.desired = Desired(DesiredState.STOPPED, 0, "ann")
        assert isinstance(at_once(yarn), Settled)

    def test_a_requested_restart_stops_that_generation_and_no_later_one(self) -> None:
        yarn = yarn_of(RUNNING)
        yarn.desired = Desired(DesiredState.RUNNING, 1, "ann")
        assert isinstance(step(yarn), Stop)
        later = yarn_of(RUNNING, generation=2)
        later.desired = Desired(DesiredState.RUNNING, 1, "ann")
        assert isinstance(step(later), Settled)

    def test_a_requested_restart_follows_one_that_died_meanwhile(self) -> None:
        yarn = yarn_of(FAILED)
        yarn.desired = Desired(DesiredState.RUNNING, 1, "ann")
        assert step(yarn) == Submit(2, "ann requested a restart; all its containers are complete")

    def test_a_begun_stop_is_finished_whatever_is_wanted_by_then(self) -> None:
        seen = step(yarn_of(RUNNING, stop_marker(1)))
        assert isinstance(seen, Stop)
        assert not seen.preflight
        assert isinstance(step(yarn_of(FAILED, stop_marker(1))), Submit)


class TestItsOwnEnd:
    def test_a_success_ends_the_watch_and_an_ensure_starts_the_next(self) -> None:
        """The job says itself that it is done; whoever starts it all the same has a pace."""
        yarn = yarn_of(ApplicationState.FINISHED)
        seen = step(yarn, Mode.WATCH)
        assert isinstance(seen, Settled)
        assert seen.phase is Phase.ENDED
        note = step(yarn, Mode.ENSURE)
        assert isinstance(note, Note)
        assert (note.end.kind, note.end.costs) == (EndKind.DONE, False)
        yarn.carry_out(note)
        for mode in Mode:
            assert step(yarn, mode) == Submit(2, "generation 1 ended successfully; all its containers are complete")

    @pytest.mark.parametrize("mode", Mode)
    def test_once_its_pause_is_over_any_other_end_is_followed(self, mode: Mode) -> None:
        assert step(yarn_of(FAILED), mode) == Submit(2, "generation 1 ended by itself; all its containers are complete")

    def test_one_past_its_horizon_is_followed_by_the_watch_too(self) -> None:
        assert isinstance(step(yarn_of(FAILED, hours=8 * 24), Mode.WATCH), Submit)

    def test_a_first_generation_is_submitted_at_once(self) -> None:
        assert at_once(SimulatedYarn(), Mode.ENSURE) == Submit(1, "its first generation")


class TestTwoAtOnce:
    @pytest.mark.parametrize("mode", Mode)
    def test_an_older_generation_that_lives_is_killed(self, mode: Mode) -> None:
        yarn = yarn_of(RUNNING, generation=2)
        yarn.applications = [(1, application(1, RUNNING, number=1)), (2, application(2, RUNNING, number=2))]
        assert isinstance(seen := step(yarn, mode), Kill)
        assert seen.application == "application_1_0001"

    def test_an_older_generation_never_lives_beside_a_newer_claim(self) -> None:
        """Its application may come at any moment."""
        yarn = yarn_of(None, generation=2)
        yarn.applications = [(1, application(1, RUNNING))]
        for seen in (at_once(yarn), step(yarn)):
            assert isinstance(seen, Kill)

    @pytest.mark.parametrize("state", [ACCEPTED, RUNNING])
    def test_of_two_of_one_generation_the_first_is_left(self, state: ApplicationState) -> None:
        """A person ran the command of its driver again. Whose fence stands is healthy until it ends."""
        yarn = yarn_of(RUNNING)
        yarn.applications.append((1, application(1, state, number=2)))
        seen = step(yarn)
        assert isinstance(seen, Kill)
        assert seen.application == "application_1_0002"
        yarn.end(seen.application, ApplicationState.KILLED)
        assert isinstance(step(yarn), Settled)


class TestAClaimWithoutAnApplication:
    def test_it_may_still_arrive_until_this_supervisor_has_waited_for_it(self) -> None:
        """Whatever the clocks of servers say: a NameNode ten minutes ahead takes no fence."""
        yarn = yarn_of(None, hours=48)
        seen = at_once(yarn)
        assert isinstance(seen, Wait)
        assert seen.until - yarn.now == TICKET_SPEC.submit.ttl
        assert isinstance(step(yarn, age=TICKET_SPEC.submit.ttl - timedelta(seconds=1)), Wait)
        assert isinstance(step(yarn, age=TICKET_SPEC.submit.ttl), GiveUp)

    def test_of_a_stream_that_was_stopped_meanwhile_it_must_not_arrive_late_either(self) -> None:
        yarn = yarn_of(None)
        yarn.desired = Desired(DesiredState.STOPPED, 1, "ann")
        assert isinstance(step(yarn, age=TICKET_SPEC.submit.ttl), GiveUp)

    def test_once_given_up_it_is_followed(self) -> None:
        yarn = yarn_of(None)
        yarn.files.discard(yarn.claims[1].fence)
        seen = at_once(yarn)
        assert isinstance(seen, Submit)
        assert seen.generation == 2

    @pytest.mark.parametrize("evidence", ["its driver's marker", "a commit"])
    def test_one_that_ran_keeps_its_fence_while_it_may_live(self, evidence: str) -> None:
        """A ResourceManager that has just taken over lists nothing: e06 of the review."""
        yarn = yarn_of(None, *([started_marker(1)] if "marker" in evidence else []))
        if evidence == "a commit":
            commit(yarn, 0)
        assert isinstance(at_once(yarn), Wait)
        for seconds in (0, 10, 100, 119):
            assert isinstance(step(yarn, age=timedelta(seconds=seconds)), Wait)

    def test_one_whose_driver_reported_its_start_never_loses_its_fence(self) -> None:
        yarn = commit(yarn_of(None, started_marker(1)), 0)
        seen = step(yarn)
        assert isinstance(seen, Submit)
        assert "its checkpoints were silent for 30s" in seen.why

    def test_commits_may_be_anothers_so_its_application_is_fenced_off_before_the_next(self) -> None:
        yarn = commit(yarn_of(None), 0)
        seen = step(yarn)
        assert isinstance(seen, GiveUp)
        yarn.carry_out(seen)
        assert isinstance(step(yarn), Submit)

    def test_one_that_committed_did_run_although_it_was_given_up(self) -> None:
        """It localised its fence before that was taken, and the ResourceManager has forgotten it."""
        yarn = commit(yarn_of(None), 0)
        yarn.files.discard(yarn.claims[1].fence)
        assert isinstance(at_once(yarn), Wait)

    def test_one_that_was_given_up_as_it_arrived_is_replaced_in_good_order(self) -> None:
        yarn = yarn_of(RUNNING)
        yarn.files.discard(yarn.claims[1].fence)
        seen = step(yarn)
        assert isinstance(seen, Stop)
        assert seen.preflight
        assert "given up as it arrived" in seen.why

    def test_an_adopted_job_has_no_fence_to_lose(self) -> None:
        yarn = yarn_of(RUNNING)
        yarn.claims[1] = replace(
            claim(), adoption=replace(claim().adoption, application="application_1_0001", started=START)
        )
        yarn.files.discard(yarn.claims[1].fence)
        assert isinstance(step(yarn), Settled)


class TestAnApplicationWithoutAClaim:
    def test_its_claim_may_show_at_the_next_look(self) -> None:
        yarn = yarn_of(RUNNING)
        yarn.applications.append((2, application(2, RUNNING, number=2)))
        assert isinstance(at_once(yarn), Wait)
        assert isinstance(step(yarn, age=TICKET_SPEC.submit.ttl - timedelta(seconds=1)), Wait)

    def test_one_that_lives_is_left_alone_and_a_person_reads_what_to_do(self) -> None:
        yarn = yarn_of(None)
        yarn.applications = [(999999, application(999999, RUNNING))]
        seen = step(yarn)
        assert isinstance(seen, Settled)
        assert seen.phase is Phase.RUNNING
        assert "nobody claimed generation 999999" in seen.why
        assert "adopt SPEC.yaml --application-id application_1_0001` takes it up again" in seen.why

    @pytest.mark.parametrize("claims", [True, False])
    def test_when_nothing_lives_a_person_accepts_the_next_above_claims_and_tags(self, claims: bool) -> None:
        """The folder was restored from an older copy, or is gone: faults.md D2, protocol.md 3c."""
        yarn = yarn_of(FAILED)
        yarn.applications = [(7, application(7, FAILED))]
        yarn.ends = [past_end(7)]
        if not claims:
            yarn.claims.clear()
        assert isinstance(at_once(yarn), Wait), "its claim may show"
        seen = step(yarn, Mode.ENSURE)
        assert isinstance(seen, Refuse)
        assert "let generation 8 follow with `kstream streams accept SPEC.yaml`" in seen.why
        yarn.accept()
        seen = step(yarn, Mode.ENSURE)
        assert isinstance(seen, Submit)
        assert seen.generation == 8

    def test_a_folder_that_is_gone_leaves_what_runs_and_its_person_reads_what_to_do(self) -> None:
        yarn = yarn_of(RUNNING)
        yarn.claims.clear()
        seen = at_once(yarn)
        assert isinstance(seen, Settled)
        assert seen.phase is Phase.RUNNING
        assert "adopt SPEC.yaml --application-id application_1_0001` takes it up again" in seen.why
        yarn.desired = Desired(DesiredState.STOPPED)
        assert isinstance(at_once(yarn), Stop)

    def test_of_two_that_nobody_claimed_none_is_killed(self) -> None:
        yarn = yarn_of(RUNNING)
        yarn.claims.clear()
        yarn.applications.append((2, application(2, RUNNING, number=2)))
        assert isinstance(step(yarn), Refuse)


class TestProofOfDeath:
    """What nobody proved dead is not followed."""

    @pytest.mark.parametrize("verdict", [NodeVerdict.LIVE, NodeVerdict.UNREACHABLE, NodeVerdict.RESTARTED])
    def test_without_proof_a_first_look_is_never_enough(self, verdict: NodeVerdict) -> None:
        """However long ago the ResourceManager's clock says that it ended, and the checkpoint moved."""
        yarn = commit(yarn_of(FAILED, hours=24), 0)
        seen: Observation = changed(yarn.look(), containers=containers(verdict))
        assert isinstance(next_step(TICKET_SPEC, seen, FIRST_LOOK, Mode.ENSURE), Wait)

    def test_a_request_to_stop_does_not_say_that_it_stopped(self) -> None:
        yarn = commit(yarn_of(FAILED, stop_marker(1)), 0)
        yarn.nodemanager_answers = False
        assert isinstance(at_once(yarn), Wait)
        yarn.files.add(stopped_marker(1))
        assert at_once(yarn) == Submit(
            2, "generation 1 was stopped to be followed; it stopped before its end, and told so"
        )
