"""Reconciling a stream with its spec and its desired state: look, take one step, look again.

Idempotent: called twice, or by two processes at once, it does the work once. If a supervisor dies between two steps,
the next one continues where it stopped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType

from airflow_kstream.clients.waiting import until
from airflow_kstream.model.application import Application
from airflow_kstream.model.contract import newest_desired, stop_marker
from airflow_kstream.model.errors import Conflict, KstreamError, RestartAborted, Unavailable
from airflow_kstream.model.generation import Claim, DesiredState, Position, StreamId
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.plan import (
    Done,
    GiveUp,
    Kill,
    Note,
    Phase,
    Refuse,
    Report,
    Settled,
    Step,
    Stop,
    Submit,
    Wait,
)
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.policy.streams.after_end import needs_a_person
from airflow_kstream.policy.streams.reconcile import Mode, next_step
from airflow_kstream.policy.streams.watchable import require_submittable
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.cleanup import clean_up
from airflow_kstream.supervise.streams.memory import Memory
from airflow_kstream.supervise.streams.neighbours import with_company
from airflow_kstream.supervise.streams.observe import Prefetched, observe
from airflow_kstream.supervise.streams.owner_steps import before_claim, before_stop, before_submission, when_settled
from airflow_kstream.supervise.streams.ownership import require_available
from airflow_kstream.supervise.streams.past_ends import record_end
from airflow_kstream.supervise.streams.report import report
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.stop import stop
from airflow_kstream.supervise.streams.submit import (
    OwnClaims,
    Prepared,
    claim_next,
    conclude,
    preflight,
    prepared,
    require_client,
    submit,
    withdraw,
    withdraw_all,
)
from airflow_kstream.supervise.streams.witnesses import Witnesses

log = logging.getLogger(__name__)


@dataclass
class Reconciler:
    """One reconcile of one stream. `tell` gets a line for each action and each wait.

    `may_submit` is False for a caller that only wants to stop the stream. `patient` is False for one that has better
    things to do than to wait for servers that are away before anything was done.
    """

    subject: StreamRun
    tell: Callable[[str], None] = log.info
    may_submit: bool = True
    patient: bool = True
    done: list[Done] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)
    _strangers: set[str] = field(default_factory=set)
    _memory: Memory = field(default_factory=Memory)
    _witnesses: Witnesses = field(init=False)
    _known: Prefetched = field(default_factory=Prefetched)
    _noted: tuple[int, Mapping[str, Position]] = (-1, MappingProxyType({}))
    _own: OwnClaims = field(default_factory=OwnClaims)

    def __post_init__(self) -> None:
        self._witnesses = Witnesses(self.session)

    @property
    def session(self) -> ClusterSession:
        return self.subject.session

    @property
    def spec(self) -> StreamSpec:
        return self.subject.spec

    @property
    def stream(self) -> StreamId:
        return self.subject.id

    def plan(self, mode: Mode = Mode.ENSURE) -> tuple[Observation, Step]:
        """Return the first step that `run` would take, without taking it: a wait if a death takes time to prove."""
        require_submittable(self.spec, self.session.cluster)
        observation = self._witnesses.asked(observe(self.subject))
        return observation, next_step(self.spec, observation, Memory().look(observation), mode)

    def run(self, mode: Mode = Mode.ENSURE) -> Report:
        """Take steps until the stream is settled.

        Raises Conflict: when somebody else moves the checkpoint. Raises RestartAborted: when the successor couldn't
        start. Raises SubmissionFailed, and the servers' refusals. Unavailable is waited out while a step is under way,
        and before the first one if this is patient.
        """
        if self.may_submit:
            # A stream of an earlier declaration must be stoppable regardless of what that declaration says.
            require_submittable(self.spec, self.session.cluster)
        self.done = []
        self._told.clear()
        self._memory, self._known, self._noted = Memory(look_every=self.spec.watch.look_every), Prefetched(), (-1, {})
        try:
            while True:
                # The servers may be away for this long after each step; the work continues when they are back.
                within = self.spec.heartbeat.start_timeout if self.patient or self.done else timedelta()
                outcome = until(lambda: self._advance(mode), self.spec.watch.look_every, within)
                if isinstance(outcome, Report):
                    return outcome
        finally:
            withdraw_all(self.subject, self._own)

    def _advance(self, mode: Mode) -> Report | Step:
        """Take one look and the step that it requires; return a report if there is nothing left to do."""
        try:
            observation = self._witnesses.asked(observe(self.subject, self._known))
            # Facts missing from the claim's file are queried from the cluster once.
            self._known = Prefetched(observation.claim, observation.ends)
            self._recall(observation)
            self._tell_of_strangers(observation)
            step = next_step(self.spec, observation, self._memory.look(observation), mode)
            pending = self._own.pending(observation)
            if pending and isinstance(step, Wait | Settled) and not observation.frozen:
                self._go_on(observation, pending)
                return step
            if isinstance(step, Settled):
                return self._settle(observation, step)
            self._tell_once(f"{type(step).__name__.lower()}: {step.why}")
            if isinstance(step, Note):
                return self._note_end(observation, step, mode)
            self._carry_out(observation, step)
            return step
        except Unavailable as error:
            self._tell_once(f"no conclusion: {error}")
            raise

    def _carry_out(self, observation: Observation, step: Step) -> None:
        if isinstance(step, Wait | Refuse) and observation.claim is None:
            # Whose checkpoint it is says more than that it moves.
            require_available(self.subject, observation)
        match step:
            case Wait():
                time.sleep(self.spec.watch.look_every.total_seconds())
            case Kill(application, why):
                self.session.yarn.kill(application, f"kstream: {why}", self.spec.stop.kill_wait)
                self._record(f"killed {application}", why)
            case Stop():
                self._stop(observation, step)
            case GiveUp():
                self._give_up(step)
            case Submit():
                self._submit(observation, step)
            case Refuse(why):
                raise Conflict(why, tried=f"start {self.spec.name}")

    def _recall(self, observation: Observation) -> None:
        """Read the positions that earlier supervisors saw, once for each generation."""
        number = observation.generation
        if self._noted[0] == number or observation.desired.state is not DesiredState.RUNNING:
            return
        reached = self.subject.folder.reached(number, observation.files)
        self._noted = number, reached
        self._memory.recall(number, reached)

    def _note(self, observation: Observation) -> None:
        """Keep the furthest positions for later supervisors, if they have moved on. Nothing fails for the lack of it:
        a stream must be stoppable when a quota is full."""
        positions = {path: at for path, at in self._memory.furthest.items() if at.offset >= 0}
        claim = observation.claim
        if claim is None or claim.newer or positions in ({}, self._noted[1], claim.positions):
            return
        try:
            self.subject.folder.note_reached(observation.generation, positions)
        except KstreamError as error:
            self.tell(f"the positions reached are not noted: {error}")
            return
        self._noted = observation.generation, positions

    def _note_end(self, observation: Observation, step: Note, mode: Mode) -> Report | Step:
        """Record an end that nobody planned. Of two supervisors the one whose record stands tells it, if anybody is
        watching: the next look finds it recorded."""
        ends = with_company(self.session, self.stream, self.spec.failure, (*observation.ends, step.end))
        if not record_end(self.subject.folder, ends):
            return step
        self._record(f"recorded the end of generation {step.end.generation}", step.why)
        if ends[-1].shared:
            self.tell(f"other streams ended of the same error: it is the environment's ({step.end.fingerprint})")
        recorded = replace(observation, ends=ends)
        if mode is Mode.WATCH and needs_a_person(self.spec, recorded):
            return self._settle(recorded, Settled(Phase.ENDED, step.why))
        return step

    def _stop(self, observation: Observation, step: Stop) -> None:
        try:
            self._check_successor(observation, step)
        except KstreamError as error:
            tried = f"make sure that a successor of generation {step.generation} of {self.spec.name} can start"
            message = f"{error.without_advice}; the current generation keeps running"
            raise RestartAborted(message, tried=tried) from error
        if self._somebody_spoke(observation):
            return
        self._note(observation)
        self._witnesses.remember_places(step.application)
        ended = stop(self.subject, step)
        if ended is None:
            self.tell(f"the stop of generation {step.generation} is left as it is: {self.subject.freeze()}")
            return
        self._record(f"generation {step.generation} ({ended.application.id}) is dead: {ended.means}", step.why)

    def _give_up(self, step: GiveUp) -> None:
        """Take the fence of a claim without an application, unless that arrived since the look."""
        # A stranger's application with its tag is none of the stream's, so not YARN's listing alone decides.
        again = observe(self.subject)
        if again.frozen:
            return
        if any(number == step.generation and app.alive for number, app in again.applications):
            self.tell(f"generation {step.generation} arrived as it was to be given up: checking again")
            return
        self.subject.folder.take_fence(step.fence)
        self._record(f"gave up generation {step.generation}", step.why)

    def _check_successor(self, observation: Observation, step: Stop) -> None:
        """Check that a successor can start. A forced restart ignores files and tickets, not a client and a claim."""
        if step.obstacle:
            raise Conflict(step.obstacle, tried=f"restart {self.spec.name}")
        before_stop(self.subject, observation, step)
        if step.preflight:
            preflight(self.subject)
        elif (
            observation.desired.state is DesiredState.RUNNING and stop_marker(step.generation) not in observation.files
        ):
            require_client(self.subject)
            self.subject.folder.require_exclusive_claims()

    def _submit(self, observation: Observation, step: Submit) -> None:
        if not self.may_submit:
            raise Conflict("its desired state is running again", tried=f"stop {self.spec.name}")
        if not observation.current:
            preflight(self.subject)
        with prepared(self.subject) as ready:
            if self._somebody_spoke(observation):
                return
            before_claim(self.subject, observation, step.why, self._record)
            try:
                claim = claim_next(self.subject, self._own, observation, step.generation, step.why)
            except Conflict as lost:
                self.tell(f"{lost.message}: checking again")
                return
            self._record(f"claimed generation {step.generation}", step.why)
            self._submit_claimed(claim, ready)

    def _go_on(self, observation: Observation, claim: Claim) -> None:
        """Go on with our own claim, which a lost reply had hidden from us, or whose application is not found yet."""
        self._tell_once(f"generation {claim.generation} was claimed here: going on with it")
        if claim.nonce in self._own.outcomes:
            self._submitted(claim, conclude(self.subject, self._own, claim))
        elif observation.desired.state is DesiredState.RUNNING:
            with prepared(self.subject) as ready:
                self._submit_claimed(claim, ready)
        else:
            withdraw(self.subject, self._own, claim)
            self._record(f"gave up generation {claim.generation}", "nothing of it was submitted")

    def _submit_claimed(self, claim: Claim, ready: Prepared) -> None:
        before_submission(self.subject, claim)
        app = submit(self.subject, self._own, claim, ready)
        self._submitted(claim, app)

    def _submitted(self, claim: Claim, app: Application) -> None:
        number = claim.generation
        self._record(f"submitted generation {number} as {app.id}", claim.reason, submitted=number)

    def _somebody_spoke(self, observation: Observation) -> bool:
        """Tell whether the desired state was written since this look, or the cluster was frozen: preparing a step may
        take minutes."""
        if self.subject.is_frozen():
            return True
        return newest_desired(self.subject.folder.names()) != newest_desired(observation.files)

    def _settle(self, observation: Observation, step: Settled) -> Report:
        if observation.frozen:
            # Not even cleaned up: a person may be looking at what is there.
            frozen = report(self.spec, observation, step, self.session.yarn.active(), tuple(self.done))
            self.tell(f"{step.phase}: {step.why}; {frozen.freeze}")
            return frozen
        doubt = when_settled(self.subject, observation, step, self._record, self.tell)
        for folder in self._cleaned(observation):
            self._record(f"deleted {folder}", "it held what an ended generation needed, its keytab included")
        settled = report(self.spec, observation, step, self.session.yarn.active(), tuple(self.done))
        return replace(settled, owner_doubt=doubt)

    def _cleaned(self, observation: Observation) -> tuple[str, ...]:
        try:
            self._note(observation)
            return clean_up(self.subject, observation)
        except KstreamError as error:
            # The stream is as it should be; the next reconcile looks at the remains again.
            self.tell(f"not cleaned up: {error}")
            return ()

    def _record(self, what: str, why: str, submitted: int | None = None) -> None:
        self.done.append(Done(self.session.hdfs.now(), what, why, submitted))
        self._told.clear()
        self.tell(f"{what} ({why})")

    def _tell_of_strangers(self, observation: Observation) -> None:
        for app in observation.strangers:
            if app.id not in self._strangers:
                self._strangers.add(app.id)
                self.tell(
                    f"{app.id} of user {app.user} carries this stream's tags and is left alone: it is {app.state}"
                )

    def _tell_once(self, line: str) -> None:
        """Tell a line once until something is done: an outage of ten minutes is two lines, not three hundred."""
        if line not in self._told:
            self._told.add(line)
            self.tell(line)
