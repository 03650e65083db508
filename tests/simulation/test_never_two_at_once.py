"""Supervisors that crash, freeze, race and act on stale looks never let two generations write at once.

The policy and the clock of a supervisor's own are the real ones. Drivers are processes that outlive the
ResourceManager's word; it forgets its applications for a while, and NodeManagers may not answer.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.contract import stop_marker
from airflow_kstream.model.streams.freeze import Freeze
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.plan import Kill, Phase, Settled, Step, Stop, Submit
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from airflow_kstream.supervise.streams.folder.memory import SignMemory
from tests.examples import examples
from tests.simulated.yarn import CHECKPOINT, TICKET_SPEC, SimulatedYarn

# Shorter than stop.silence: how long a process may outlive its kill where no NodeManager tells.
_LINGERS = [0, 3, 20]
_ENDS = [ApplicationState.FAILED, ApplicationState.KILLED, ApplicationState.FINISHED]


class Supervisor:
    """A supervisor: the real policy, and the real memory on the simulated clock."""

    def __init__(self, yarn: SimulatedYarn) -> None:
        self.yarn = yarn
        self.memory = SignMemory(yarn.monotonic)

    def next(self, mode: Mode = Mode.ENSURE) -> Step:
        seen = self.yarn.look()
        return next_step(TICKET_SPEC, seen, self.memory.look(seen), mode)


class TwoSupervisors(RuleBasedStateMachine):
    """Any number of supervisors that observe, and act on their observation at once, much later, or never."""

    supervisors = Bundle("supervisors")
    looks = Bundle("looks")

    def __init__(self) -> None:
        super().__init__()
        self.yarn = SimulatedYarn()
        self.forgot_at: datetime | None = None
        self.may_forget = self.yarn.now

    @initialize(lingers=st.sampled_from(_LINGERS), answers=st.booleans(), helper=st.booleans(), idle=st.booleans())
    def a_cluster(self, lingers: int, answers: bool, helper: bool, idle: bool) -> None:
        self.yarn.lingers = timedelta(seconds=lingers)
        self.yarn.nodemanager_answers, self.yarn.has_helper, self.yarn.idle = answers, helper, idle

    @initialize(target=supervisors)
    def the_first_supervisor(self) -> Supervisor:
        return Supervisor(self.yarn)

    @rule(target=supervisors)
    def another_supervisor_starts(self) -> Supervisor:
        return Supervisor(self.yarn)

    @rule(target=looks, supervisor=supervisors, mode=st.sampled_from(Mode))
    def look(self, supervisor: Supervisor, mode: Mode) -> Step:
        return self._checked(supervisor, mode)

    @rule(step=looks)
    def act_on_what_was_seen(self, step: Step) -> None:
        self.yarn.carry_out(step)

    @rule(supervisor=supervisors, mode=st.sampled_from(Mode))
    def look_and_act_at_once(self, supervisor: Supervisor, mode: Mode) -> None:
        self.yarn.carry_out(self._checked(supervisor, mode))

    @rule(
        supervisor=supervisors,
        seconds=st.sampled_from([2, 10, 45]),
        times=st.sampled_from([3, 20, 40]),
        arrives=st.sampled_from(["at once", "in a full queue", "late"]),
    )
    def wait_as_a_reconcile_does(self, supervisor: Supervisor, seconds: int, times: int, arrives: str) -> None:
        """Look again and again and act each time; its submissions arrive and start, wait, or come later."""
        for _ in range(times):
            self.yarn.carry_out(self._checked(supervisor, Mode.ENSURE))
            if self.yarn.on_their_way and arrives != "late":
                self.yarn.arrive(at_once=arrives == "at once")
            self.time_passes(seconds)
            self.at_most_one_driver_writes()

    @precondition(lambda self: self.yarn.on_their_way)
    @rule(at_once=st.booleans())
    def a_submission_arrives(self, at_once: bool) -> None:
        self.yarn.arrive(at_once=at_once)

    @precondition(lambda self: self.yarn.waiting)
    @rule()
    def the_queue_has_room(self) -> None:
        self.yarn.start(self.yarn.waiting[0].id)

    @precondition(lambda self: self.yarn.on_their_way)
    @rule()
    def a_submission_is_lost(self) -> None:
        self.yarn.on_their_way.pop(0)

    @rule(seconds=st.sampled_from([1, 20, 45, 700, 86400, 3 * 86400]))
    def time_passes(self, seconds: int) -> None:
        self.yarn.pass_time(seconds)
        if self.forgot_at and self.yarn.now - self.forgot_at > timedelta(minutes=1):
            self.yarn.forgetful, self.forgot_at = False, None

    @precondition(lambda self: self.yarn.now >= self.may_forget)
    @rule()
    def the_resourcemanager_restarts(self) -> None:
        """It recovers its applications within `watch.recovery_wait`, and does not restart again before."""
        self.yarn.forgetful, self.forgot_at = True, self.yarn.now
        self.may_forget = self.yarn.now + 2 * TICKET_SPEC.watch.recovery_wait

    @precondition(lambda self: self.yarn.running)
    @rule(state=st.sampled_from(_ENDS))
    def the_job_ends_by_itself(self, state: ApplicationState) -> None:
        self.yarn.end(self.yarn.running[0].id, state)

    @precondition(lambda self: self.yarn.offsets and not self.yarn.drivers)
    @rule()
    def the_checkpoint_is_lost(self) -> None:
        self.yarn.lose_the_checkpoint()

    @rule()
    def a_person_accepts_the_checkpoint(self) -> None:
        self.yarn.accept()

    @rule(state=st.sampled_from([*DesiredState, DesiredState.RUNNING]), again=st.booleans())
    def a_person_wants(self, state: DesiredState, again: bool) -> None:
        through = max(self.yarn.claims, default=0) if again else 0
        self.yarn.desired = Desired(state, through, "somebody")

    @rule(hours=st.sampled_from([0, 1, 100]))
    def a_person_freezes_the_cluster(self, hours: int) -> None:
        """For no time at all, it is lifted."""
        self.yarn.freeze = Freeze(1, self.yarn.now + timedelta(hours=hours), "somebody")

    @invariant()
    def at_most_one_driver_writes(self) -> None:
        assert len(self.yarn.drivers) <= 1, self.yarn.drivers

    @invariant()
    def what_runs_has_its_fence(self) -> None:
        for driver in self.yarn.drivers:
            assert self.yarn.claims[driver.generation].fence in self.yarn.files, driver

    def _checked(self, supervisor: Supervisor, mode: Mode) -> Step:
        """Return the next step, which must neither harm a healthy generation nor go against a person's word."""
        step = supervisor.next(mode)
        if self.yarn.freeze.holds(self.yarn.now):
            self._changes_nothing(step)
        if isinstance(step, Kill | Stop):
            self._may_end(step)
        if isinstance(step, Submit):
            self._goes_on(step)
        if self.yarn.desired.state is DesiredState.HELD:
            assert isinstance(step, Settled), step
        if self.yarn.desired.state is DesiredState.STOPPED:
            assert not isinstance(step, Submit), step
            assert not (isinstance(step, Settled) and step.phase in {Phase.RUNNING, Phase.STARTING}), step
        return step

    def _changes_nothing(self, step: Step) -> None:
        """Of an end that comes meanwhile a record is written."""
        before = deepcopy(vars(self.yarn))
        self.yarn.carry_out(step)
        assert vars(self.yarn) | {"ends": before["ends"]} == before, step

    def _goes_on(self, step: Submit) -> None:
        """Check that no generation starts behind its predecessor's beginning without a person's word."""
        claim, position = self.yarn.look().claim, self.yarn.look().checkpoints[0].position
        if claim and self.yarn.accepted.get(step.generation) != position:
            assert position.offset >= claim.positions[CHECKPOINT].offset, step

    def _may_end(self, step: Kill | Stop) -> None:
        seen = self.yarn.look()
        current, ends = seen.current, horizon_of(TICKET_SPEC, seen)
        if isinstance(step, Kill):
            assert current is None or step.application != current.id, step
            return
        wanted = seen.desired.state is DesiredState.STOPPED or seen.desired.restart_up_to >= step.generation
        due = ends is not None and ends.due(seen.now)
        assert wanted or due or stop_marker(step.generation) in seen.files, step


TwoSupervisors.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=60, deadline=None)
TestTwoSupervisors = TwoSupervisors.TestCase


def bring_up(yarn: SimulatedYarn, mode: Mode = Mode.ENSURE, looks: int = 1200) -> SimulatedYarn:
    """Let one supervisor look every two seconds until it has nothing to do; its submissions arrive."""
    supervisor = Supervisor(yarn)
    for _ in range(looks):
        step = supervisor.next(mode)
        if isinstance(step, Settled) and step.phase in {Phase.RUNNING, Phase.STOPPED, Phase.HELD}:
            break
        yarn.carry_out(step)
        if yarn.on_their_way:
            yarn.arrive()
        yarn.pass_time(2)
    return yarn


def test_a_supervisor_left_alone_brings_the_stream_to_run() -> None:
    """Liveness: regardless of the past, a working supervisor and working servers end with one running generation."""
    yarn = SimulatedYarn()
    yarn.carry_out(Supervisor(yarn).next())
    yarn.on_their_way.clear()  # the submission was lost with its submitter
    assert not yarn.running
    assert len(bring_up(yarn).running) == 1


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("mode", Mode)
def test_a_stream_is_restarted_before_its_tokens_die_and_no_sooner(mode: Mode, answers: bool) -> None:
    yarn = bring_up(SimulatedYarn(lingers=timedelta(seconds=20), nodemanager_answers=answers))
    claimed = yarn.claims[1].claimed_at
    yarn.now = claimed + timedelta(days=4)
    assert max(bring_up(yarn, mode).claims) == 1
    yarn.now = claimed + timedelta(days=6)
    yarn = bring_up(yarn, mode)
    assert max(yarn.claims) == 2
    assert len(yarn.drivers) == len(yarn.running) == 1


def test_a_claim_whose_submitter_died_costs_one_wait_and_not_the_stream() -> None:
    yarn = SimulatedYarn()
    yarn.carry_out(Supervisor(yarn).next())
    yarn.on_their_way.clear()
    started = yarn.now
    bring_up(yarn)
    waited = yarn.now - started
    assert TICKET_SPEC.submit.ttl <= waited < TICKET_SPEC.submit.ttl + timedelta(minutes=1)


def test_a_resourcemanager_that_forgets_for_a_minute_changes_nothing() -> None:
    yarn = bring_up(SimulatedYarn(idle=True))
    yarn.forgetful = True
    supervisor = Supervisor(yarn)
    for _ in range(30):
        yarn.carry_out(supervisor.next())
        yarn.pass_time(2)
    yarn.forgetful = False
    assert max(bring_up(yarn).claims) == 1
    assert yarn.claims[1].fence in yarn.files


def test_a_late_application_that_vanishes_at_once_is_waited_for() -> None:
    """The ResourceManager restarts before the first look at the late application; its idle driver commits nothing."""
    yarn = SimulatedYarn(idle=True, has_helper=True, nodemanager_answers=False)
    supervisor = Supervisor(yarn)
    for _ in range(20):
        yarn.carry_out(supervisor.next())
        yarn.pass_time(10)
    yarn.forgetful = True
    yarn.arrive()
    for _ in range(6):
        yarn.carry_out(supervisor.next())
        yarn.pass_time(2)
    assert [driver.generation for driver in yarn.drivers] == [1]
    assert max(yarn.claims) == 1


def test_an_application_that_arrives_after_it_was_given_up_never_runs() -> None:
    yarn = SimulatedYarn()
    supervisor = Supervisor(yarn)
    yarn.carry_out(supervisor.next())
    fence = yarn.claims[1].fence
    while fence in yarn.files:
        yarn.carry_out(supervisor.next())
        yarn.pass_time(2)
    yarn.arrive()
    assert yarn.drivers == []
    assert [driver.generation for driver in bring_up(yarn).drivers] == [2]
