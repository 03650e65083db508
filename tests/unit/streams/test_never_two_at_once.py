"""Supervisors that crash, freeze, race and act on stale looks never let two generations run at once."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from airflow_kstream.model.application import ApplicationState
from airflow_kstream.model.generation import Desired, DesiredState
from airflow_kstream.model.plan import Step
from airflow_kstream.policy.streams.reconcile import Mode, next_step
from tests.examples import examples
from tests.unit.simulated_yarn import TICKET_SPEC, SimulatedYarn

pytestmark = pytest.mark.simulation


class TwoSupervisors(RuleBasedStateMachine):
    """Any number of supervisors that observe, and act on their observation at once, much later, or never."""

    looks = Bundle("looks")

    def __init__(self) -> None:
        super().__init__()
        self.yarn = SimulatedYarn()
        self.first_look: datetime = self.yarn.now

    @rule(target=looks, mode=st.sampled_from(Mode))
    def look(self, mode: Mode) -> Step:
        return self._next(mode)

    @rule(step=looks)
    def act_on_what_was_seen(self, step: Step) -> None:
        self.yarn.carry_out(step)

    @rule(mode=st.sampled_from(Mode))
    def look_and_act_at_once(self, mode: Mode) -> None:
        self.yarn.carry_out(self._next(mode))

    @precondition(lambda self: self.yarn.on_their_way)
    @rule()
    def a_submission_arrives(self) -> None:
        self.yarn.arrive()

    @precondition(lambda self: self.yarn.on_their_way)
    @rule()
    def a_submission_is_lost(self) -> None:
        self.yarn.on_their_way.pop(0)

    @rule(seconds=st.sampled_from([1, 20, 45, 700, 86400, 3 * 86400]))
    def time_passes(self, seconds: int) -> None:
        self.yarn.pass_time(seconds)

    @precondition(lambda self: self.yarn.running)
    @rule(state=st.sampled_from([ApplicationState.FAILED, ApplicationState.KILLED, ApplicationState.FINISHED]))
    def the_job_ends_by_itself(self, state: ApplicationState) -> None:
        self.yarn.end(self.yarn.running[0].id, state)

    @rule(state=st.sampled_from(DesiredState), again=st.booleans())
    def a_person_wants(self, state: DesiredState, again: bool) -> None:
        through = max(self.yarn.claims, default=0) if again else 0
        self.yarn.desired = Desired(state, through, "somebody")

    @invariant()
    def at_most_one_generation_runs(self) -> None:
        assert len(self.yarn.running) <= 1, [app.id for app in self.yarn.running]

    def _next(self, mode: Mode) -> Step:
        return next_step(TICKET_SPEC, self.yarn.look(), self.first_look, mode)


TwoSupervisors.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=60, deadline=None)
TestTwoSupervisors = TwoSupervisors.TestCase


def test_a_supervisor_left_alone_brings_the_stream_to_run() -> None:
    """Liveness: regardless of the past, a working supervisor and working servers end with one running generation."""
    yarn = SimulatedYarn()
    for _ in range(5):
        yarn.carry_out(next_step(TICKET_SPEC, yarn.look(), yarn.now, Mode.ENSURE))
    yarn.on_their_way.clear()  # the submission was lost with its submitter
    assert not yarn.running
    first_look = yarn.now
    for _ in range(400):
        yarn.carry_out(next_step(TICKET_SPEC, yarn.look(), first_look, Mode.ENSURE))
        if yarn.on_their_way:
            yarn.arrive()
        yarn.now += timedelta(seconds=2)
    assert len(yarn.running) == 1
