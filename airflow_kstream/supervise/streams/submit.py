"""Claim the next generation, submit it once, find it by its tag."""

from __future__ import annotations

import time
from pathlib import Path

from airflow_kstream.clients import spark
from airflow_kstream.clients.kerberos import keytabs, tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.jobs import kstream_driver
from airflow_kstream.model.application import Application
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import CredentialError, InvalidInput, SubmissionFailed, Unavailable
from airflow_kstream.model.generation import Claim, StreamId
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.keytab import KeyVersion
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.stream import KeytabCredentials, StreamSpec
from airflow_kstream.model.submission import SparkDefaults, Submission
from airflow_kstream.policy.streams.spark_submission import SubmissionInputs, submission
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.token_lifetimes import learn_lifetimes
from airflow_kstream.supervise.streams.formats import ClaimDraft
from airflow_kstream.supervise.streams.state_folder import StreamFolder, new_nonce
from airflow_kstream.supervise.tickets.keytab_probe import KeytabPlace, why_refused


def preflight(session: ClusterSession, stream: StreamId, spec: StreamSpec, defaults: SparkDefaults) -> None:
    """Raise what would keep the next generation from starting. Changes nothing.

    The ticket can be had, the local files are there, the command line builds, both servers answer as this identity.
    """
    planned(session.cluster, stream, spec, defaults, generation=0, nonce="preflight")
    spark.check_conf_folder(session.cluster)
    for path in _local_files(spec):
        if not Path(path).exists():
            raise InvalidInput(f"{path} does not exist on this host", tried=f"check the files of {spec.name}")
    _log_in(session.identity)
    session.yarn.active()
    session.hdfs.status("/")


def _log_in(identity: Identity) -> None:
    """The libraries' own words for a rotated key are a decryption that failed: the check of the keytab knows better."""
    with private_folder() as private:
        try:
            tickets.acquire(identity, private / "tickets")
        except CredentialError as error:
            known = why_refused(KeytabPlace(identity.principal, identity.keytab)) if identity.keytab else ""
            raise CredentialError(known or error.message, tried=error.tried, principal=identity.principal) from error


def planned(
    cluster: Cluster, stream: StreamId, spec: StreamSpec, defaults: SparkDefaults, *, generation: int, nonce: str
) -> Submission:
    """The words of the submission, without touching the cluster."""
    helper = str(Path(kstream_driver.__file__))
    return submission(SubmissionInputs(spec, cluster, stream, generation, nonce, defaults, helper))


def claim_next(session: ClusterSession, seen: Observation, spec: StreamSpec, generation: int, why: str) -> Claim:
    """Raise Conflict when another supervisor was quicker."""
    draft = ClaimDraft(
        generation=generation,
        nonce=new_nonce(),
        spec=spec,
        lifetimes=learn_lifetimes(session.hdfs, session.identity),
        positions={point.path: point.position for point in seen.checkpoints},
        reason=why,
        key=_key_of(spec),
    )
    return StreamFolder(session.hdfs, seen.stream).make_claim(draft)


def submit(
    session: ClusterSession, stream: StreamId, spec: StreamSpec, defaults: SparkDefaults, claim: Claim
) -> Application:
    """Run spark-submit for a claim that we hold, and return the application that carries its tag.

    When spark-submit fails and there is none, the claim's fence is taken and SubmissionFailed raised: whatever may
    still arrive under this claim can't start.
    """
    plan = planned(session.cluster, stream, spec, defaults, generation=claim.generation, nonce=claim.nonce)
    with private_folder() as private:
        cache = private / "tickets"
        if not isinstance(spec.credentials, KeytabCredentials):
            tickets.acquire(session.identity, cache)
        outcome = spark.submit(plan, spark.environment(session.cluster, cache), private, spec.submit.timeout)
    found = _find(session, stream, claim, spec, patient=outcome.exit_code == 0)
    if found is None:
        StreamFolder(session.hdfs, stream).take_fence(claim.fence)
        raise SubmissionFailed(
            f"it ended with {outcome.exit_code} and left no application tagged "
            f"{stream.generation_tag(claim.generation)}; the end of what it said:\n{outcome.tail}",
            tried=f"run {plan.binary} for generation {claim.generation} of {stream.name}",
            principal=str(session.identity),
        )
    return found


def _find(
    session: ClusterSession, stream: StreamId, claim: Claim, spec: StreamSpec, *, patient: bool
) -> Application | None:
    """The application by tag. After a spark-submit that said yes it may take the ResourceManager a moment."""
    deadline = time.monotonic() + (spec.submit.ttl.total_seconds() if patient else 0)
    while True:
        try:
            found = session.yarn.applications(stream.generation_tag(claim.generation))
        except Unavailable:
            if time.monotonic() > deadline:
                raise
            found = ()
        if found or time.monotonic() > deadline:
            return max(found, key=lambda app: app.id, default=None)
        time.sleep(spec.watch.look_every.total_seconds())


def _key_of(spec: StreamSpec) -> KeyVersion | None:
    """Read before spark-submit copies the file: of a rotation in between, the claim tells the older key."""
    if not isinstance(spec.credentials, KeytabCredentials):
        return None
    return keytabs.key_at_hand(spec.credentials.keytab, spec.credentials.principal)


def _local_files(spec: StreamSpec) -> list[str]:
    deploy = spec.deploy
    named = [spec.application, *deploy.files, *deploy.jars, *deploy.py_files, *deploy.archives]
    return [path.partition("#")[0].removeprefix("file:") for path in named if _is_local(path)]


def _is_local(path: str) -> bool:
    return "://" not in path and not path.startswith("local:")
