"""Submitting a stream: claim the next generation, submit it once, find it by its tag."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from airflow_kstream.clients.kerberos import keytabs, tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.waiting import until
from airflow_kstream.model.application import Application
from airflow_kstream.model.errors import CredentialError, InvalidInput, SubmissionFailed
from airflow_kstream.model.generation import Claim
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.keytab import KeyVersion
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.stream import KeytabCredentials, StreamSpec
from airflow_kstream.model.submission import Submission, SubmissionOrder, SubmitOutcome
from airflow_kstream.supervise.clusters.token_lifetimes import learn_lifetimes
from airflow_kstream.supervise.streams.formats import ClaimDraft
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.secrets import looked_up
from airflow_kstream.supervise.streams.state_folder import new_nonce
from airflow_kstream.supervise.tickets.keytab_probe import KeytabPlace, why_refused


def preflight(run: StreamRun) -> None:
    """Check that the next generation can start, without changing anything; raise the first obstacle.

    This host can submit it, its secrets and a ticket can be obtained, both servers accept the stream's identity, and
    HDFS can grant a claim to it alone.
    """
    _with_secrets(run, require_client(run))
    run.engine.preflight(run.cluster, run.spec)
    _log_in(run.session.identity)
    run.session.yarn.active()
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
    """Log in. On failure the keytab check knows the reason: libraries report a rotated key as a failed decryption."""
    with private_folder() as private:
        try:
            tickets.acquire(identity, private / "tickets")
        except CredentialError as error:
            reason = why_refused(KeytabPlace(identity.principal, identity.keytab)) if identity.keytab else ""
            raise CredentialError(reason or error.message, tried=error.tried, principal=identity.principal) from error


def claim_next(run: StreamRun, observation: Observation, generation: int, why: str) -> Claim:
    """Claim this generation. Raises Conflict: when another supervisor was quicker."""
    draft = ClaimDraft(
        generation=generation,
        nonce=new_nonce(),
        spec=run.spec,
        lifetimes=learn_lifetimes(run.session.hdfs, run.session.identity),
        positions={point.path: point.position for point in observation.checkpoints},
        reason=why,
        key=_key_of(run.spec),
    )
    return run.folder.make_claim(draft)


def submit(run: StreamRun, claim: Claim) -> Application:
    """Submit a claim that we hold, and return the application that carries its tag.

    Raises SubmissionFailed: when no application appears. The claim's fence is removed first, so an application that
    still arrives under this claim can't start.
    """
    plan = _with_secrets(run, _planned(run, claim.generation, claim.nonce))
    outcome = _run_client(run, plan)
    application = _find(run, claim, patient=outcome.exit_code == 0)
    if application is None:
        run.folder.take_fence(claim.fence)
        raise SubmissionFailed(
            f"it ended with {outcome.exit_code} and left no application tagged "
            f"{run.id.generation_tag(claim.generation)}; the end of its output:\n{outcome.tail}",
            tried=f"run {plan.binary} for generation {claim.generation} of {run.spec.name}",
            principal=str(run.session.identity),
        )
    return application


def _run_client(run: StreamRun, plan: Submission) -> SubmitOutcome:
    with private_folder() as private:
        cache = private / "tickets"
        if not isinstance(run.spec.credentials, KeytabCredentials):
            tickets.acquire(run.session.identity, cache)
        return run.engine.submit(plan, run.cluster, cache, private, run.spec.submit.timeout)


def _find(run: StreamRun, claim: Claim, *, patient: bool) -> Application | None:
    """Find the application by its tag. After a client succeeded, the ResourceManager may need a moment to list it."""
    tag = run.id.generation_tag(claim.generation)

    def newest() -> Application | None:
        return max(run.session.yarn.applications(tag), key=lambda app: app.id, default=None)

    return until(newest, run.spec.watch.look_every, run.spec.submit.ttl if patient else timedelta())


def _key_of(spec: StreamSpec) -> KeyVersion | None:
    """Read the key before the client copies the file: if it is rotated in between, the claim holds the older key."""
    if not isinstance(spec.credentials, KeytabCredentials):
        return None
    return keytabs.key_at_hand(spec.credentials.keytab, spec.credentials.principal)
