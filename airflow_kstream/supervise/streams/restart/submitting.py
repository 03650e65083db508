"""Claiming the next generation and submitting it, or going on with a claim of our own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, NotFound
from airflow_kstream.model.streams.generation import Claim, DesiredState
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Submit
from airflow_kstream.supervise.streams.checkpoint.owner_steps import before_claim, before_submission
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.story import Story
from airflow_kstream.supervise.streams.restart.former_spec import to_be_submitted, with_spec_of
from airflow_kstream.supervise.streams.restart.submit import (
    OwnClaims,
    Prepared,
    claim_next,
    conclude,
    preflight,
    prepared,
    submit,
    withdraw,
    withdraw_all,
)


@dataclass
class Submitter:
    """The submissions of one reconcile. `may_submit` is False for a caller that only wants to stop the stream."""

    subject: StreamRun
    story: Story
    may_submit: bool = True
    own: OwnClaims = field(default_factory=OwnClaims)

    def submit(self, observation: Observation, step: Submit) -> None:
        if not self.may_submit:
            raise Conflict("its desired state is running again", tried=f"stop {self.subject.spec.name}")
        subject, step = self._subject_of(observation, step)
        if not observation.current:
            preflight(subject)
        with prepared(subject) as ready:
            if somebody_spoke(self.subject, observation) or self.subject.folder.repeat_former(observation.desired):
                return
            before_claim(subject, observation, step.why, self.story.record)
            instead_of = step.former.instead_of if step.former else None
            try:
                claim = claim_next(subject, self.own, observation, step.generation, step.why, instead_of)
            except Conflict as lost:
                self.story.tell(f"{lost.message}: checking again")
                return
            self.story.record(f"claimed generation {step.generation}", step.why)
            self._submit_claimed(subject, claim, ready)

    def _subject_of(self, observation: Observation, step: Submit) -> tuple[StreamRun, Submit]:
        """Return the run with the spec to be submitted. One of former times that can't be submitted any longer leaves
        the declared one, at the usual pace."""
        if step.former is None:
            return self.subject, step
        try:
            former = to_be_submitted(self.subject, observation)
            preflight(former)
        except (Conflict, InvalidInput, NotFound, Denied) as error:
            why = f"{step.why}; but that can't be done ({error.without_advice}), so the declared one is tried again"
            self.story.tell_once(f"submit: {why}")
            return self.subject, replace(step, why=why, former=None)
        return former, step

    def go_on(self, observation: Observation, claim: Claim) -> None:
        """Go on with our own claim, which a lost reply had hidden from us, or whose application is not found yet."""
        self.story.tell_once(f"generation {claim.generation} was claimed here: going on with it")
        if claim.nonce in self.own.outcomes:
            self._submitted(claim, conclude(self.subject, self.own, claim))
        elif observation.desired.state is DesiredState.RUNNING:
            subject = with_spec_of(self.subject, claim) if claim.instead_of else self.subject
            with prepared(subject) as ready:
                if not somebody_spoke(self.subject, observation):
                    self._submit_claimed(subject, claim, ready)
        elif withdraw(self.subject, self.own, claim):
            self.story.record(f"gave up generation {claim.generation}", "nothing of it was submitted")

    def _submit_claimed(self, subject: StreamRun, claim: Claim, ready: Prepared) -> None:
        before_submission(subject, claim)
        app = submit(subject, self.own, claim, ready)
        self._submitted(claim, app)

    def _submitted(self, claim: Claim, app: Application) -> None:
        number = claim.generation
        self.story.record(f"submitted generation {number} as {app.id}", claim.reason, submitted=number)

    def withdraw_all(self) -> None:
        """Give up the claims of this process whose submission never began: nobody else waits for them then."""
        withdraw_all(self.subject, self.own)


def somebody_spoke(subject: StreamRun, observation: Observation) -> bool:
    """Tell whether the desired state was written since this look, or the cluster was frozen: preparing a step may
    take minutes."""
    listing, folder = subject.session.state.look(), subject.folder
    if subject.freeze(listing).holds(subject.session.hdfs.now()):
        return True
    order = folder.newest_order(folder.authored(), listing)
    return (order.number if order else 0) != observation.desired.number
