"""Reconciling a stream with its spec and its desired state: look, take one step, look again.

Idempotent: called twice, or by two processes at once, it does the work once. If a supervisor dies between two steps,
the next one continues where it stopped.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from airflow_kstream.clients.waiting import at_most, until
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.hdfs_health import SafeMode
from airflow_kstream.model.errors import (
    Conflict,
    KstreamError,
    RestartAborted,
    Unavailable,
)
from airflow_kstream.model.streams.contract import stop_marker
from airflow_kstream.model.streams.generation import DesiredState, StreamId
from airflow_kstream.model.streams.looks import NOWHERE, ReachedPositions
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import (
    Examine,
    GiveUp,
    Kill,
    Note,
    Phase,
    Push,
    Refuse,
    Report,
    Revoke,
    Settled,
    Step,
    Stop,
    Submit,
    Wait,
)
from airflow_kstream.model.streams.stall import Stall
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.checkpoint.positions import position_doubt
from airflow_kstream.policy.streams.ends.after_end import (
    cause_of,
    end_message,
    in_safe_mode,
    needs_a_person,
    refused,
    tells_safe_mode,
)
from airflow_kstream.policy.streams.ends.starvation import still_starving
from airflow_kstream.policy.streams.horizon.launch_tokens import logs_end, must_be_fetched
from airflow_kstream.policy.streams.restart.facts import report
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from airflow_kstream.policy.streams.restart.watchable import require_submittable
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.checkpoint.ownership import (
    check_ownership_before_stop,
    require_available,
    settle_ownership,
)
from airflow_kstream.supervise.streams.engines import engine_for
from airflow_kstream.supervise.streams.folder.cleanup import clean_up
from airflow_kstream.supervise.streams.folder.declared_copies import keep_copy
from airflow_kstream.supervise.streams.folder.memory import PositionsReached, SignMemory, record_end
from airflow_kstream.supervise.streams.folder.run import ActionLog, StreamRun
from airflow_kstream.supervise.streams.look.blocked import note_blocked, require_allowed
from airflow_kstream.supervise.streams.look.nodemanager_reports import SilentOutputs, Witnesses, with_log_error
from airflow_kstream.supervise.streams.look.observe import Prefetched, observe
from airflow_kstream.supervise.streams.look.other_streams import mark_shared_causes
from airflow_kstream.supervise.streams.look.renewals import Renewals
from airflow_kstream.supervise.streams.pulse.evidence import save_logs
from airflow_kstream.supervise.streams.pulse.stalls import StallCare
from airflow_kstream.supervise.streams.restart.former_spec import (
    mark_server_outage,
    to_be_submitted,
    with_fallback_spec,
)
from airflow_kstream.supervise.streams.restart.stop import stop
from airflow_kstream.supervise.streams.restart.submit import (
    Submitter,
    orders_changed,
    preflight,
    require_client,
)
from airflow_kstream.supervise.streams.restart.token_pushes import cancel_pushed, push_tokens

log = logging.getLogger(__name__)

# A wait that is under way outlives so much: each next process would begin its clock at zero.
_FAILOVER = timedelta(minutes=1)
# In seconds: what one server, and all NameNodes in turn, may take to answer a reconcile that waits for nobody. A busy
# ResourceManager takes seconds to list a large cluster's applications, and one that is slow is not away.
_ONE_ANSWER, _ALL_NAMENODES = 20.0, 50.0


@dataclass
class _Run:
    """The knowledge of one run, from look to look."""

    memory: SignMemory
    reached: PositionsReached
    stalls: StallCare
    renewals: Renewals
    known: Prefetched = field(default_factory=Prefetched)
    looked: bool = False
    safe_mode: SafeMode | None = None


@dataclass
class Reconciler:
    """One reconcile of one stream. `tell` gets a line for each action and each wait.

    `may_submit` is False for a caller that only wants to stop the stream. `patient` is False for one that has better
    things to do than to wait for servers that are away before anything was done, also for those that are silent: it
    ends within a minute then.
    """

    subject: StreamRun
    tell: Callable[[str], None] = log.info
    may_submit: bool = True
    patient: bool = True
    _witnesses: Witnesses = field(init=False)
    _outputs: SilentOutputs = field(init=False)
    _story: ActionLog = field(init=False)
    _submitter: Submitter = field(init=False)
    _run: _Run = field(init=False)

    def __post_init__(self) -> None:
        self._witnesses, self._outputs = Witnesses(self.session), SilentOutputs(self.subject)
        self._story = ActionLog(self.session, self.tell)
        self._submitter = Submitter(self.subject, self._story, self.may_submit)
        self._run = self._begun(NOWHERE)

    def _begun(self, seen: ReachedPositions, stall: Stall | None = None, safe_mode: SafeMode | None = None) -> _Run:
        memory = SignMemory(look_every=self.spec.watch.look_every)
        reached = PositionsReached(self.subject, self._story, memory, seen)
        stalls = StallCare(self.subject, self._story, stall)
        return _Run(memory, reached, stalls, Renewals(self.session, at_once=True), safe_mode=safe_mode)

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
        observation = self._outputs.seen(self._witnesses.asked(observe(self.subject)))
        require_allowed(self.spec, self.session.cluster, observation.claim)
        observation = self._run.renewals.known(observation, self.subject.engine)
        self._run.reached.recall(observation)
        look = self._run.memory.look(observation)
        return observation, still_starving(next_step(self.spec, observation, look, mode), observation, look)

    def run(
        self,
        mode: Mode = Mode.ENSURE,
        seen: ReachedPositions = NOWHERE,
        stall: Stall | None = None,
        safe_mode: SafeMode | None = None,
    ) -> Report:
        """Take steps until the stream is settled.

        `seen` is what a watcher saw, who may note nothing in its folder, `stall` the batch that it found to be stalled,
        if `on_stall` calls for action, and `safe_mode` when it was refused by HDFS for that.

        Raises InvalidInput: when the connection does not allow what the declaration uses and the newest generation
        doesn't. Raises Conflict: when somebody else moves the checkpoint. Raises RestartAborted: when the successor
        couldn't start. Raises SubmissionFailed, and the servers' refusals. Unavailable is waited out while a step is
        under way, for a minute during a wait, and before the first step if this is patient.
        """
        if self.may_submit and self.subject.declared:
            # A stream of an earlier declaration must be stoppable regardless of what that declaration says.
            require_submittable(self.spec, self.session.cluster)
        self._story.begin()
        self._run = self._begun(seen, stall, safe_mode)
        waits = False
        try:
            while True:
                within = self._patience(waits=waits)
                outcome = until(partial(self._advance, mode), self.spec.watch.look_every, within)
                if isinstance(outcome, Report):
                    return outcome
                waits = isinstance(outcome, Wait)
        finally:
            self._submitter.withdraw_all()

    def _patience(self, *, waits: bool) -> timedelta:
        """Return for how long the servers may be away; the work continues when they are back."""
        if self.patient or self._story.done:
            return self.spec.heartbeat.start_timeout
        return _FAILOVER if waits else timedelta()

    def _longest_answer(self) -> float:
        """Return the seconds that a server may take to answer: a short time before it is known that any answers."""
        if self.patient or self._run.looked:
            return math.inf
        return min(_ONE_ANSWER, _ALL_NAMENODES / max(len(self.session.cluster.namenodes), 1))

    def _advance(self, mode: Mode) -> Report | Step:
        """Take one look and the step that it requires; return a report if there is nothing left to do."""
        try:
            with at_most(self._longest_answer()):
                observation = self._outputs.seen(self._witnesses.asked(observe(self.subject, self._run.known)))
            observation = self._run.renewals.known(observation, self.subject.engine)
            self._story.tell_of_strangers(observation)
            if not self._run.looked:
                self._run.looked = True
                self._require_allowed(observation)
                self._keep_copy()
                self._keep_closed(observation)
            # Facts missing from the claim's file are queried from the cluster once.
            self._run.known = Prefetched(observation.claim, observation.folder.ends)
            self._run.reached.recall(observation)
            look = self._run.memory.look(observation)
            step = next_step(self.spec, observation, look, mode)
            if isinstance(step, Note):
                observation = with_log_error(self.subject, observation, self._story.tell_once)
                step = next_step(self.spec, observation, look, mode)
            pending = self._submitter.pending(observation)
            if pending and isinstance(step, Wait | Settled) and not observation.frozen:
                self._submitter.go_on(observation, pending)
                return step
            step = still_starving(step, observation, look)
            if isinstance(step, Settled):
                step = self._run.stalls.instead_of(step, observation, position_doubt(observation, look))
            if isinstance(step, Settled):
                return self._settle(observation, step)
            self._require_declared(observation, step)
            self._story.tell_once(f"{type(step).__name__.lower()}: {step.why}")
            if isinstance(step, Note):
                return self._note_end(observation, step, mode)
            self._carry_out(observation, step)
            return step
        except Unavailable as error:
            if tells_safe_mode(error.message):
                # It answered, so its clock is known.
                self._run.safe_mode = refused(self._run.safe_mode, self.session.hdfs.now())
            self._story.tell_once(f"no conclusion: {error}")
            raise

    def _keep_closed(self, observation: Observation) -> None:
        """Close the stream's folder if others can write in it: who can, may also move files of its user there."""
        if observation.frozen:
            return
        try:
            if self.subject.folder.keep_closed():
                self.tell(f"closed {self.stream.folder}, without what strangers left there: others could write in it")
        except KstreamError as error:
            self.tell(f"{self.stream.folder} is open to others, and can't be closed: {error.without_advice}")

    def _require_allowed(self, observation: Observation) -> None:
        """Check that the connection allows what may be submitted: before a copy of it is kept, which would say so."""
        if self.may_submit and self.subject.declared:
            require_allowed(self.spec, self.session.cluster, observation.claim)

    def _keep_copy(self) -> None:
        """Keep the declaration, once servers have answered: silent ones are not waited for twice."""
        if self.may_submit and self.subject.declared:
            with at_most(_ONE_ANSWER):
                why = keep_copy(self.subject)
            if why:
                self.tell(why)

    def _require_declared(self, observation: Observation, step: Step) -> None:
        """Leave a stream as it is that only its claim describes: its own job wrote that. A person's stop needs no more.

        Raises RestartAborted: when something is due of what runs. Raises Conflict: when it is dead.
        """
        if observation.desired.state is DesiredState.STOPPED or isinstance(step, Wait | Refuse):
            return
        try:
            self.subject.require_declared(f"act on {self.spec.name}")
        except Conflict as error:
            message = f"{step.why}; but nothing is done, because {error.message}"
            kind = RestartAborted if observation.any_alive else Conflict
            raise kind(message, tried=error.tried, principal=str(self.session.identity)) from error

    def _carry_out(self, observation: Observation, step: Step) -> None:
        if isinstance(step, Wait | Refuse) and observation.claim is None and not observation.any_alive:
            # Whose checkpoint it is says more than that it moves.
            require_available(self.subject, observation)
        match step:
            case Wait():
                time.sleep(self.spec.watch.look_every.total_seconds())
            case Kill():
                self._kill(step)
            case Stop():
                self._stop(observation, step)
            case Push():
                push_tokens(self.subject, observation, step, self._story)
            case Revoke(generation):
                self._revoke(observation, generation, step.why)
            case Examine():
                self._run.stalls.examine(observation, step)
            case GiveUp():
                self._give_up(step)
            case Submit():
                self._submitter.submit(observation, step)
            case Refuse(why):
                self._run.reached.note(observation)
                raise Conflict(why, tried=f"start {self.spec.name}")

    def _note_end(self, observation: Observation, step: Note, mode: Mode) -> Report | Step:
        """Record an end that nobody planned. If two supervisors do, the one whose record stands tells it, where anybody
        is watching: the next look finds it recorded."""
        end = in_safe_mode(self.spec.failure, step.end, self._run.safe_mode)
        ends = mark_shared_causes(self.session, self.stream, self.spec.failure, (*observation.folder.ends, end))
        ends = mark_server_outage(self.subject, observation, ends)
        ends = with_fallback_spec(self.subject, observation, ends, self.tell)
        if not record_end(self.subject.folder, ends):
            return step
        self._story.record(f"recorded the end of generation {step.end.generation}", step.why)
        if ends[-1].shared:
            error = f" ({ends[-1].fingerprint})" if ends[-1].fingerprint else ""
            self.tell(f"it is the environment's, because {cause_of(ends[-1])}{error}")
        recorded = replace(observation, folder=replace(observation.folder, ends=ends))
        if mode is Mode.WATCH and needs_a_person(self.spec, recorded):
            return self._settle(recorded, Settled(Phase.ENDED, end_message(recorded, step.why)))
        return step

    def _stop(self, observation: Observation, step: Stop) -> None:
        try:
            self._check_successor(observation, step)
        except KstreamError as error:
            tried = f"make sure that a successor of generation {step.generation} of {self.spec.name} can start"
            message = f"{error.without_advice}; the current generation keeps running"
            self._note_blocked(observation, message)
            raise RestartAborted(message, tried=tried) from error
        if orders_changed(self.subject, observation):
            return
        self._run.reached.note(observation)
        self._save_logs(observation)
        if step.hung:
            self._run.stalls.record(observation, step.hung)
        remember = partial(self._witnesses.remember_places, step.application)
        ended = stop(self.subject, step, remember, observation.claim)
        if ended is None:
            self.tell(f"the stop of generation {step.generation} is left as it is: {self.subject.freeze()}")
            return
        self._story.record(f"generation {step.generation} ({ended.application.id}) is dead: {ended.means}", step.why)

    def _save_logs(self, observation: Observation) -> None:
        """Keep the ends of the generation's logs, if nobody will aggregate them by the time at which it has ended."""
        app, privileged = observation.current, self.session.cluster.client.proxy_user_privileges
        ends = logs_end(
            self.spec.restart, observation.claim, renewed=observation.credentials.renewed, privileged=privileged
        )
        if app and app.state is ApplicationState.RUNNING and must_be_fetched(self.spec.stop, ends, observation.now):
            save_logs(self.subject, app, observation.generation, self.tell)

    def _note_blocked(self, observation: Observation, why: str) -> None:
        """Keep why it is blocked for those who look from elsewhere; a full quota is not another reason to abort."""
        with suppress(KstreamError):
            note_blocked(self.subject.folder, observation.generation, observation.files, observation.now, why)

    def _kill(self, step: Kill) -> None:
        """Kill an application, unless the cluster was frozen since the look."""
        if self.subject.is_frozen():
            self.tell(f"{step.application} is left as it is: {self.subject.freeze()}")
            return
        self.session.yarn.kill(step.application, f"kstream: {step.why}", self.spec.stop.kill_wait)
        self._story.record(f"killed {step.application}", step.why)

    def _revoke(self, observation: Observation, generation: int, why: str) -> None:
        cancelled = cancel_pushed(self.subject, observation.files, generation)
        self._story.record(f"cancelled {cancelled} tokens that were pushed to generation {generation}", why)

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
        self._story.record(f"gave up generation {step.generation}", step.why)

    def _check_successor(self, observation: Observation, step: Stop) -> None:
        """Check that a successor can start. A forced restart ignores files and tickets, not a client and a claim."""
        if step.obstacle:
            self._run.reached.note(observation)
            raise Conflict(step.obstacle, tried=f"restart {self.spec.name}")
        check_ownership_before_stop(self.subject, observation, step)
        if step.preflight:
            preflight(to_be_submitted(self.subject, observation), observation)
        elif (
            observation.desired.state is DesiredState.RUNNING and stop_marker(step.generation) not in observation.files
        ):
            require_client(self.subject)
            self.subject.folder.require_exclusive_claims()

    def _settle(self, observation: Observation, step: Settled) -> Report:
        if observation.frozen:
            # Not even cleaned up: a person may be looking at what is there.
            frozen = report(self.spec, observation, step, self.session.yarn.active(), tuple(self._story.done))
            self.tell(f"{step.phase}: {step.why}; {frozen.freeze}")
            return frozen
        doubt = settle_ownership(self.subject, observation, step, self._story.record, self.tell)
        self._clean_up(observation)
        settled = report(self.spec, observation, step, self.session.yarn.active(), tuple(self._story.done))
        return replace(settled, declaration=replace(settled.declaration, owner_doubt=doubt))

    def _clean_up(self, observation: Observation) -> None:
        try:
            self._run.reached.note(observation)
            for folder in clean_up(self.subject, observation, partial(engine_for, self.subject)):
                self._story.record(f"deleted {folder}", "it held what an ended generation needed, its keytab included")
        except KstreamError as error:
            # The stream is as it should be; the next reconcile looks at the remains again.
            self.tell(f"not cleaned up: {error}")
