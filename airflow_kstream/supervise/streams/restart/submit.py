"""Submitting a stream: claim the next generation, or go on with our own claim; submit it once, find it by its tag."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from airflow_kstream.clients.kerberos import keytabs, tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.waiting import until
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import (
    Conflict,
    CredentialError,
    Denied,
    InvalidInput,
    KstreamError,
    NotFound,
    SubmissionFailed,
    Unavailable,
)
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.keytab import KeyVersion
from airflow_kstream.model.secrets import Value
from airflow_kstream.model.streams.contract import fence_name, stopped_marker
from airflow_kstream.model.streams.generation import Claim, ClaimStart, DesiredState, Position
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Submit
from airflow_kstream.model.streams.resume import ResumePoint
from airflow_kstream.model.streams.stream import KeytabCredentials
from airflow_kstream.model.streams.submission import Submission, SubmissionOrder, SubmitOutcome
from airflow_kstream.policy.streams.horizon.rotation import keytab_of
from airflow_kstream.supervise.clusters.tokens import learn_lifetimes
from airflow_kstream.supervise.streams.checkpoint.ownership import (
    check_ownership_before_submission,
    take_ownership_before_claim,
)
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.run import ActionLog, StreamRun
from airflow_kstream.supervise.streams.folder.secrets import looked_up
from airflow_kstream.supervise.streams.folder.state_folder import new_nonce
from airflow_kstream.supervise.streams.folder.tagged_applications import TaggedApplications
from airflow_kstream.supervise.streams.look.observe import confirm_absence
from airflow_kstream.supervise.streams.look.renewals import keep_tokens
from airflow_kstream.supervise.streams.restart.former_spec import to_be_submitted, with_spec_of
from airflow_kstream.supervise.streams.restart.successor import (
    require_nodes,
    require_right_to_submit,
    require_successors_needs,
)
from airflow_kstream.supervise.tickets.keytab_probe import explained


def preflight(run: StreamRun, observation: Observation | None = None) -> None:
    """Check that the next generation can start, without changing anything; raise the first obstacle.

    This host can submit it, its secrets and a ticket can be obtained, both servers accept the stream's identity, its
    queue takes it, its files and checkpoints are within its rights, and HDFS can grant a claim to it alone.
    """
    for check in _checks(run, observation):
        check()
    run.folder.require_exclusive_claims()


def obstacles(run: StreamRun, observation: Observation | None = None) -> Iterator[KstreamError]:
    """Yield each obstacle that `preflight` would find without writing; one that is Unavailable is not proven."""
    for check in _checks(run, observation):
        try:
            check()
        except KstreamError as error:
            yield error


def _checks(run: StreamRun, observation: Observation | None) -> tuple[Callable[[], object], ...]:
    return (
        lambda: _with_secrets(run, require_client(run)),
        lambda: run.engine.preflight(run.cluster, run.spec),
        lambda: _log_in(run.session.identity),
        run.session.yarn.active,
        lambda: require_nodes(run, observation),
        lambda: require_successors_needs(run),
        lambda: require_right_to_submit(run, observation) if observation else None,
    )


def require_client(run: StreamRun) -> Submission:
    """Plan a submission. Raises InvalidInput: when this host has no client, or the spec sets what the protocol owns."""
    return _planned(run, generation=0, nonce="preflight")


def _planned(run: StreamRun, generation: int, nonce: str, resume: ResumePoint | None = None) -> Submission:
    plan = run.engine.submission(SubmissionOrder(run.cluster, run.spec, generation, nonce, resume))
    if plan.obstacle:
        raise InvalidInput(plan.obstacle, tried=f"submit {run.spec.name}")
    return plan


def _with_secrets(run: StreamRun, plan: Submission) -> Submission:
    """Look the secrets up for this submission; they are stored nowhere."""
    return replace(plan, secret_conf=looked_up(plan.secret_conf, run.secrets))


def _log_in(identity: Identity) -> None:
    """Log in. Raises CredentialError: with the reason that the keytab check knows."""
    with private_folder() as private:
        try:
            tickets.acquire(identity, private / "tickets")
        except CredentialError as error:
            raise explained(error, identity) from error


@dataclass(frozen=True)
class Submitted:
    """A submission whose client has ended. `began` is when the client was started, by our monotonic clock: the
    NameNode's time of the claim may be another NameNode's, which is behind the one that answers now, or ahead."""

    outcome: SubmitOutcome
    began: float

    @property
    def age(self) -> timedelta:
        return timedelta(seconds=time.monotonic() - self.began)


@dataclass(frozen=True)
class SubmissionInputs:
    """The needs of a submission beside its claim: secrets, and a private folder with a ticket cache."""

    secret_conf: Mapping[str, Value] = field(repr=False)
    folder: Path
    ticket_cache: Path


@contextmanager
def prepared(run: StreamRun) -> Iterator[SubmissionInputs]:
    """Do all that can fail and needs no claim: a claim without an application keeps every supervisor waiting."""
    plan = _with_secrets(run, require_client(run))
    require_nodes(run)
    with run.engine.turn(run.spec.submit.timeout), private_folder() as private:
        cache = private / "tickets"
        if isinstance(run.spec.credentials, KeytabCredentials):
            # The client logs in itself: this shows that the KDC answers.
            _log_in(run.session.identity)
        else:
            tickets.acquire(run.session.identity, cache)
        yield SubmissionInputs(plan.secret_conf, private, cache)


@dataclass
class Submitter:
    """The submissions of one reconcile, and the claims, by nonce, that it made or tried to make.

    It keeps a claim until it knows what became of it, because a lost reply hides our own success. Known again, such a
    claim is submitted at the next look; for everybody else it is a claim whose application may still arrive, which
    costs `submit.ttl` with nothing running.
    """

    subject: StreamRun
    story: ActionLog
    may_submit: bool = True
    """False for a caller that only wants to stop the stream."""
    unsubmitted: dict[str, int] = field(default_factory=dict)
    """The generations of claims that were not submitted yet."""
    outcomes: dict[str, Submitted] = field(default_factory=dict)
    """The submissions whose applications are not found yet."""
    given_up: set[str] = field(default_factory=set)
    """The claims whose fences were taken, or may have been."""

    def submit(self, observation: Observation, step: Submit) -> None:
        """Claim the next generation and submit it, unless orders changed or another supervisor was quicker."""
        if not self.may_submit:
            raise Conflict("its desired state is running again", tried=f"stop {self.subject.spec.name}")
        subject, step = self._subject_of(observation, step)
        if not observation.current:
            preflight(subject, observation)
        with prepared(subject) as ready:
            if orders_changed(self.subject, observation) or self.subject.folder.repeat_former(observation.desired):
                return
            take_ownership_before_claim(subject, observation, step.why, self.story.record)
            subject.engine.close_former(subject.session, observation)
            resume = subject.engine.resume(subject.session, subject.spec, observation)
            try:
                claim = self._claim(subject, observation, step, resume)
            except Conflict as lost:
                self.story.tell(f"{lost.message}: checking again")
                return
            self.story.record(f"claimed generation {step.generation}", step.why)
            self._submit(subject, claim, ready)

    def pending(self, observation: Observation) -> Claim | None:
        """Return the stream's newest claim if it is ours to go on with."""
        claim = observation.claim
        if claim is None or claim.generation != observation.generation:
            return None
        free = observation.current is None and claim.fence in observation.files
        return claim if claim.nonce in self.outcomes or (free and claim.nonce in self.unsubmitted) else None

    def go_on(self, observation: Observation, claim: Claim) -> None:
        """Go on with our own claim, which a lost reply had hidden from us, or whose application is not found yet."""
        self.story.tell_once(f"generation {claim.generation} was claimed here: going on with it")
        if claim.nonce in self.outcomes:
            self._conclude(claim)
        elif observation.desired.state is DesiredState.RUNNING:
            subject = with_spec_of(self.subject, claim) if claim.instead_of else self.subject
            with prepared(subject) as ready:
                # Others may have given it up meanwhile.
                if not orders_changed(self.subject, observation) and claim.fence in subject.folder.names():
                    self._submit(subject, claim, ready)
        elif self._withdraw(claim):
            self.story.record(f"gave up generation {claim.generation}", "nothing of it was submitted")

    def withdraw_all(self) -> None:
        """Give up what was claimed here and will not be submitted, as far as HDFS can be reached: nobody else waits for
        it then.

        A claim interrupted by a freeze is resumed afterwards; if this process is gone, another gives it up after
        `submit.ttl`.
        """
        for nonce, generation in list(self.unsubmitted.items()):
            frozen = False
            with suppress(KstreamError):
                frozen = not self.subject.take_fence(fence_name(generation, nonce))
            if not frozen:
                del self.unsubmitted[nonce]

    def _subject_of(self, observation: Observation, step: Submit) -> tuple[StreamRun, Submit]:
        """Return the run with the spec to be submitted. One of former times that can't be submitted any longer leaves
        the declared one, at the usual pace."""
        if step.former is None:
            return self.subject, step
        try:
            former = to_be_submitted(self.subject, observation)
            preflight(former, observation)
        except (Conflict, InvalidInput, NotFound, Denied) as error:
            why = f"{step.why}; but that can't be done ({error.without_advice}), so the declared one is tried again"
            self.story.tell_once(f"submit: {why}")
            return self.subject, replace(step, why=why, former=None)
        return former, step

    def _claim(self, subject: StreamRun, observation: Observation, step: Submit, resume: ResumePoint | None) -> Claim:
        """Claim the step's generation. Raises Conflict: when another supervisor was quicker."""
        draft = ClaimDraft(
            generation=step.generation,
            nonce=new_nonce(),
            spec=subject.spec,
            lifetimes=learn_lifetimes(subject.session.hdfs, subject.session.identity),
            positions=_positions(observation, resume),
            reason=step.why,
            key=_key_of(subject),
            start=ClaimStart(step.former.instead_of if step.former else None, resume),
        )
        self.unsubmitted[draft.nonce] = step.generation
        try:
            return subject.folder.make_claim(draft)
        except Conflict:
            del self.unsubmitted[draft.nonce]
            raise

    def _submit(self, subject: StreamRun, claim: Claim, ready: SubmissionInputs) -> None:
        """Submit a claim that we hold, once.

        Raises SubmissionFailed: when no application appears, and the engine's errors. The claim's fence is removed
        first, so that an application that still arrives under this claim can't start, unless the ResourceManager may
        merely not list it yet.
        """
        check_ownership_before_submission(subject, claim)
        self.unsubmitted.pop(claim.nonce, None)
        try:
            plan = replace(
                _planned(subject, claim.generation, claim.nonce, claim.start.resume), secret_conf=ready.secret_conf
            )
            timeout, began = subject.spec.submit.timeout, time.monotonic()
            outcome = subject.engine.submit(plan, subject.cluster, ready.ticket_cache, ready.folder, timeout)
        except Exception:
            # The client never started, for whatever reason. If HDFS is away now, the next look finds a claim of ours
            # again.
            self.unsubmitted[claim.nonce] = claim.generation
            self._withdraw(claim)
            raise
        self.outcomes[claim.nonce] = Submitted(outcome, began)
        self._conclude(claim)

    def _withdraw(self, claim: Claim) -> bool:
        """Give up a claim of ours that was not submitted; return False if it stays ours: the cluster is frozen."""
        if not self.subject.take_fence(claim.fence):
            return False
        self.unsubmitted.pop(claim.nonce, None)
        return True

    def _conclude(self, claim: Claim) -> None:
        """Find the application of a claim whose client has ended. Raises SubmissionFailed: when there is none."""
        submitted, given_up = self.outcomes[claim.nonce], claim.nonce in self.given_up
        outcome, run, number = submitted.outcome, self.subject, claim.generation
        application = None if given_up else self._find(claim, patient=outcome.exit_code == 0)
        if application is None and (given_up or self._surely_missing(claim, submitted.age)):
            self.given_up.add(claim.nonce)
            if run.take_fence(claim.fence):
                self._kill_a_late_arrival(claim)
        del self.outcomes[claim.nonce]
        if application and outcome.withdrawn and application.state is not ApplicationState.RUNNING:
            self._withdrawn(claim, application)
            return
        if application is None:
            raise SubmissionFailed(
                f"it {_ending(run, outcome)} and left no application tagged {run.id.generation_tag(number)}; "
                f"it said:\n{outcome.tail}",
                tried=f"submit generation {number} of {run.spec.name}",
                principal=str(run.session.identity),
            )
        keep_tokens(run.folder, claim, outcome.tokens)
        self.story.record(f"submitted generation {number} as {application.id}", claim.reason, submitted=number)

    def _withdrawn(self, claim: Claim, application: Application) -> None:
        """Record that a generation never came to run: its queue had no room. Its successor waits there next.

        The marker makes it a planned end, which is not a failure of the stream's, whatever became of the application.
        One that never had a container needs no proof of its death.
        """
        run, within = self.subject, format_duration(self.subject.spec.submit.timeout)
        why = f"its queue had no room for {application.id} within {within}"
        run.folder.ask_to_stop(claim.generation, why)
        if application.alive and not run.is_frozen():
            application = run.session.yarn.kill(application.id, f"kstream: {why}", run.spec.stop.kill_wait)
        # YARN shows its owner when it began, and the log of its first container as soon as there is one.
        if not application.alive and application.started and not application.logs_url:
            run.folder.mark(stopped_marker(claim.generation))
        self.story.record(f"withdrew generation {claim.generation}", why)

    def _kill_a_late_arrival(self, claim: Claim) -> None:
        """Kill an application that appeared while its fence was taken: it may run, but could get no more executors."""
        late, run = self._find(claim, patient=False), self.subject
        if late and late.alive and not run.is_frozen():
            why = "kstream: its generation was given up before it appeared"
            run.session.yarn.kill(late.id, why, run.spec.stop.kill_wait)

    def _find(self, claim: Claim, *, patient: bool) -> Application | None:
        """Find the application by its tag. After a client succeeded, a ResourceManager may need a moment to list it."""
        run, tag = self.subject, self.subject.id.generation_tag(claim.generation)
        tagged = TaggedApplications(run.id, run.folder.authored().counted)

        def newest() -> Application | None:
            ours, _ = tagged.split(run.session, run.session.yarn.applications(tag))
            return max((app for _, app in ours), key=lambda app: app.order, default=None)

        return until(newest, run.spec.watch.look_every, run.spec.submit.ttl if patient else timedelta())

    def _surely_missing(self, claim: Claim, age: timedelta) -> bool:
        """Return False if it may run although it is not listed: it would lose its fence, and its claim times out
        anyway."""
        try:
            confirm_absence(self.subject, claim, age)
        except Unavailable:
            return False
        return True


def orders_changed(subject: StreamRun, observation: Observation) -> bool:
    """Tell whether the desired state was written since this look, or the cluster was frozen: preparing a step may
    take minutes."""
    listing, folder = subject.session.state.look(), subject.folder
    if subject.freeze(listing).holds(subject.session.hdfs.now()):
        return True
    order = folder.newest_order(folder.authored(), listing)
    return (order.number if order else 0) != observation.desired.number


def _positions(observation: Observation, resume: ResumePoint | None) -> dict[str, Position]:
    """Return the positions from which the next generation goes on: a person may have named an older state."""
    if resume is None:
        return {point.path: point.position for point in observation.checkpoints}
    return {point.path: Position(None, resume.number, resume.number) for point in observation.checkpoints}


def _ending(run: StreamRun, outcome: SubmitOutcome) -> str:
    if outcome.exit_code is None:
        return f"did not end within {format_duration(run.spec.submit.timeout)}, was ended,"
    return f"ended with {outcome.exit_code}"


def _key_of(run: StreamRun) -> KeyVersion | None:
    """Read the key before the client copies the file: if it is rotated in between, the claim holds the older key."""
    path = keytab_of(run.spec, run.cluster)
    return keytabs.key_at_hand(path, run.session.identity.principal) if path else None
