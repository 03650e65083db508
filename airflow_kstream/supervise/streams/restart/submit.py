"""Submitting a stream: claim the next generation, submit it once, find it by its tag."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from airflow_kstream.clients.kerberos import keytabs, tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.waiting import until
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import (
    Conflict,
    CredentialError,
    InvalidInput,
    KstreamError,
    SubmissionFailed,
    Unavailable,
)
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.keytab import KeyVersion
from airflow_kstream.model.secrets import Value
from airflow_kstream.model.streams.contract import fence_name
from airflow_kstream.model.streams.generation import Claim, FailedSpec
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stream import KeytabCredentials
from airflow_kstream.model.streams.submission import Submission, SubmissionOrder, SubmitOutcome
from airflow_kstream.policy.streams.horizon.identity import keytab_of
from airflow_kstream.supervise.clusters.token_lifetimes import learn_lifetimes
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.secrets import looked_up
from airflow_kstream.supervise.streams.folder.state_folder import new_nonce
from airflow_kstream.supervise.streams.folder.strangers import TaggedApplications
from airflow_kstream.supervise.streams.look.launch_tokens import keep_tokens
from airflow_kstream.supervise.streams.look.observe import confirm_absence
from airflow_kstream.supervise.streams.restart.successor import require_successors_needs
from airflow_kstream.supervise.tickets.keytab_probe import explained


def preflight(run: StreamRun) -> None:
    """Check that the next generation can start, without changing anything; raise the first obstacle.

    This host can submit it, its secrets and a ticket can be obtained, both servers accept the stream's identity, its
    queue takes it, its files and checkpoints are within its rights, and HDFS can grant a claim to it alone.
    """
    _with_secrets(run, require_client(run))
    run.engine.preflight(run.cluster, run.spec)
    _log_in(run.session.identity)
    run.session.yarn.active()
    require_successors_needs(run)
    run.folder.require_exclusive_claims()


def require_client(run: StreamRun) -> Submission:
    """Plan a submission. Raises InvalidInput: when this host has no client, or the spec sets what the protocol owns."""
    return _planned(run, generation=0, nonce="preflight")


def _planned(run: StreamRun, generation: int, nonce: str) -> Submission:
    plan = run.engine.submission(SubmissionOrder(run.cluster, run.spec, generation, nonce))
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


@dataclass
class OwnClaims:
    """The claims that this process made or tried to make, until it knows what became of them; by nonce.

    A lost reply hides our own success. Known again, such a claim is submitted at the next look; for everybody else it
    is a claim whose application may still arrive, which costs `submit.ttl` with nothing running.
    """

    # With their generations.
    unsubmitted: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, Submitted] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)

    def pending(self, observation: Observation) -> Claim | None:
        """Return the stream's newest claim if it is ours to go on with."""
        claim = observation.claim
        if claim is None or claim.generation != observation.generation:
            return None
        free = observation.current is None and claim.fence in observation.files
        return claim if claim.nonce in self.outcomes or (free and claim.nonce in self.unsubmitted) else None


@dataclass(frozen=True)
class Prepared:
    """The needs of a submission beside its claim: secrets, and a private folder with a ticket cache."""

    secret_conf: Mapping[str, Value] = field(repr=False)
    folder: Path
    ticket_cache: Path


@contextmanager
def prepared(run: StreamRun) -> Iterator[Prepared]:
    """Do all that can fail and needs no claim: a claim without an application keeps every supervisor waiting."""
    plan = _with_secrets(run, require_client(run))
    with private_folder() as private:
        cache = private / "tickets"
        if isinstance(run.spec.credentials, KeytabCredentials):
            # The client logs in itself: this shows that the KDC answers.
            _log_in(run.session.identity)
        else:
            tickets.acquire(run.session.identity, cache)
        yield Prepared(plan.secret_conf, private, cache)


def claim_next(
    run: StreamRun,
    own: OwnClaims,
    observation: Observation,
    generation: int,
    why: str,
    instead_of: FailedSpec | None = None,
) -> Claim:
    """Claim this generation. Raises Conflict: when another supervisor was quicker."""
    draft = ClaimDraft(
        generation=generation,
        nonce=new_nonce(),
        spec=run.spec,
        lifetimes=learn_lifetimes(run.session.hdfs, run.session.identity),
        positions={point.path: point.position for point in observation.checkpoints},
        reason=why,
        key=_key_of(run),
        instead_of=instead_of,
    )
    own.unsubmitted[draft.nonce] = generation
    try:
        return run.folder.make_claim(draft)
    except Conflict:
        del own.unsubmitted[draft.nonce]
        raise


def submit(run: StreamRun, own: OwnClaims, claim: Claim, ready: Prepared) -> Application:
    """Submit a claim that we hold, once, and return the application that carries its tag.

    Raises SubmissionFailed: when no application appears, and the engine's errors. The claim's fence is removed first,
    so that an application that still arrives under this claim can't start, unless the ResourceManager may merely not
    list it yet.
    """
    own.unsubmitted.pop(claim.nonce, None)
    try:
        plan = replace(_planned(run, claim.generation, claim.nonce), secret_conf=ready.secret_conf)
        timeout, began = run.spec.submit.timeout, time.monotonic()
        outcome = run.engine.submit(plan, run.cluster, ready.ticket_cache, ready.folder, timeout)
    except KstreamError:
        # The client never started. If HDFS is away now, the next look finds a claim of ours again.
        own.unsubmitted[claim.nonce] = claim.generation
        withdraw(run, own, claim)
        raise
    own.outcomes[claim.nonce] = Submitted(outcome, began)
    return conclude(run, own, claim)


def withdraw(run: StreamRun, own: OwnClaims, claim: Claim) -> bool:
    """Give up a claim of ours that was not submitted; return False if it stays ours: the cluster is frozen."""
    if not run.take_fence(claim.fence):
        return False
    own.unsubmitted.pop(claim.nonce, None)
    return True


def withdraw_all(run: StreamRun, own: OwnClaims) -> None:
    """Give up what this process claimed and will not submit, as far as HDFS can be reached.

    What a freeze found is gone on with after it or, by another process, given up once `submit.ttl` is over.
    """
    for nonce, generation in list(own.unsubmitted.items()):
        frozen = False
        with suppress(KstreamError):
            frozen = not run.take_fence(fence_name(generation, nonce))
        if not frozen:
            del own.unsubmitted[nonce]


def conclude(run: StreamRun, own: OwnClaims, claim: Claim) -> Application:
    """Find the application of a claim whose client has ended. Raises SubmissionFailed: when there is none."""
    submitted, given_up = own.outcomes[claim.nonce], claim.nonce in own.given_up
    outcome = submitted.outcome
    application = None if given_up else _find(run, claim, patient=outcome.exit_code == 0)
    if application is None and (given_up or _surely_missing(run, claim, submitted.age)):
        own.given_up.add(claim.nonce)
        if run.take_fence(claim.fence):
            _kill_a_late_arrival(run, claim)
    del own.outcomes[claim.nonce]
    if application is None:
        raise SubmissionFailed(
            f"it {_ending(run, outcome)} and left no application tagged {run.id.generation_tag(claim.generation)}; "
            f"it said:\n{outcome.tail}",
            tried=f"submit generation {claim.generation} of {run.spec.name}",
            principal=str(run.session.identity),
        )
    keep_tokens(run.folder, claim, outcome.tokens)
    return application


def _kill_a_late_arrival(run: StreamRun, claim: Claim) -> None:
    """Kill an application that appeared while its fence was taken: it may run, but could get no more executors."""
    late = _find(run, claim, patient=False)
    if late and late.alive and not run.is_frozen():
        run.session.yarn.kill(
            late.id, "kstream: its generation was given up before it appeared", run.spec.stop.kill_wait
        )


def _ending(run: StreamRun, outcome: SubmitOutcome) -> str:
    if outcome.exit_code is None:
        return f"did not end within {format_duration(run.spec.submit.timeout)}, was ended,"
    return f"ended with {outcome.exit_code}"


def _find(run: StreamRun, claim: Claim, *, patient: bool) -> Application | None:
    """Find the application by its tag. After a client succeeded, the ResourceManager may need a moment to list it."""
    tag = run.id.generation_tag(claim.generation)
    tagged = TaggedApplications(run.id, run.folder.authored().counted)

    def newest() -> Application | None:
        ours, _ = tagged.split(run.session, run.session.yarn.applications(tag))
        return max((app for _, app in ours), key=lambda app: app.order, default=None)

    return until(newest, run.spec.watch.look_every, run.spec.submit.ttl if patient else timedelta())


def _surely_missing(run: StreamRun, claim: Claim, age: timedelta) -> bool:
    """Return False if it may run although it is not listed: it would lose its fence, and its claim times out anyway."""
    try:
        confirm_absence(run, claim, age)
    except Unavailable:
        return False
    return True


def _key_of(run: StreamRun) -> KeyVersion | None:
    """Read the key before the client copies the file: if it is rotated in between, the claim holds the older key."""
    path = keytab_of(run.spec, run.cluster)
    return keytabs.key_at_hand(path, run.session.identity.principal) if path else None
