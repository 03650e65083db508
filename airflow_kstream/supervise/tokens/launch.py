"""Facts about an application's launch tokens that can be known from outside."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.kerberos.tokens import USUAL_RENEWAL_RATIO, TokenLifetimes
from airflow_kstream.model.plain import plain
from airflow_kstream.model.streams.contract import claim_file
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.horizon import Horizon
from airflow_kstream.model.streams.observation import CredentialLook
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.policy.streams.horizon.horizon import Credentials, horizon
from airflow_kstream.policy.streams.horizon.launch_tokens import issued_at
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.tokens import earliest_issue, learn_lifetimes
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.registry import RegisteredStream, newest_claims
from airflow_kstream.supervise.streams.look.observe import key_at_hand
from airflow_kstream.supervise.streams.look.renewals import with_tokens
from airflow_kstream.supervise.streams.look.watched_claim import completed


@dataclass(frozen=True)
class LaunchTokens:
    """The earliest time of their issue, and how long the cluster lets them live: they are not visible from outside.

    `claim` and `horizon` are those of the stream's generation, None for an application of no stream: whether that
    makes its own tokens is not known. `now` is the NameNode's clock.
    """

    application: Application
    issued: datetime
    lifetimes: TokenLifetimes
    now: datetime
    stream: str = ""
    claim: Claim | None = None
    horizon: Horizon | None = None

    @property
    def end(self) -> datetime:
        """Return the time from which the launch tokens may be dead, regardless of renewals."""
        return self.issued + self.lifetimes.max_lifetime

    @property
    def mode(self) -> str | None:
        """Return how its stream authenticates; None if no claim tells."""
        if self.claim is None or isinstance(self.claim.spec, UnknownSpec):
            return None
        return self.claim.spec.credentials.mode

    def to_json(self) -> dict[str, Any]:
        """Return plain data, times in ISO 8601, durations in seconds."""
        horizon = self.horizon
        return {
            "application": self.application.id,
            "state": self.application.state,
            "stream": self.stream or None,
            "generation": self.claim.generation if self.claim else None,
            "credentials": self.mode,
            "issued_not_before": plain(self.issued),
            "launch_tokens_end": plain(self.end),
            "renew_interval_seconds": plain(self.lifetimes.renew_interval),
            "max_lifetime_seconds": plain(self.lifetimes.max_lifetime),
            "horizon": plain(horizon.hard) if horizon else None,
            "horizon_reason": horizon.reason if horizon else None,
            "planned_restart": plain(horizon.plan) if horizon else None,
        }


def launch_tokens(session: ClusterSession, application_id: str) -> LaunchTokens:
    """Conclude from the stream's claim or, for an application of no stream, from its start and the cluster's lifetimes.

    To learn these lifetimes, get a token and cancel it.

    Raises NotFound: when the ResourceManager doesn't list the application. Raises Denied: when it hides its start.
    """
    app = session.yarn.application(application_id)
    for registered in newest_claims(session):
        claim = _claim_of(registered, app)
        if claim and (launch := _of_stream(session, app, registered.stream.name, claim)):
            return launch
    issued = earliest_issue(app, session.identity)
    return LaunchTokens(app, issued, learn_lifetimes(session.hdfs, session.identity), session.hdfs.now())


def _of_stream(session: ClusterSession, app: Application, name: str, claim: Claim) -> LaunchTokens | None:
    """Conclude from the claim; None if neither the claim nor the cluster tells enough."""
    claim = completed(session, claim, app)
    spec = claim.spec if isinstance(claim.spec, StreamSpec) else None
    policy = spec.restart if spec else RestartPolicy()
    issued = issued_at(claim, policy)
    if claim.credentials.lifetimes is None or issued is None:
        return None
    now = session.hdfs.now()
    ratio = engine_of(spec).renewal_ratio(session.cluster, spec) if spec else USUAL_RENEWAL_RATIO
    key = key_at_hand(spec, claim, session.cluster) if spec else None
    return LaunchTokens(
        application=app,
        issued=issued,
        lifetimes=claim.credentials.lifetimes,
        now=now,
        stream=name,
        claim=claim,
        horizon=horizon(policy, Credentials(claim, CredentialLook(key, ratio), app.lifetime_left), now),
    )


def _claim_of(registered: RegisteredStream, app: Application) -> Claim | None:
    """Return the claim of the application's generation: by its tags or, if it was adopted, by the newest claim."""
    newest = registered.newest
    if isinstance(newest, KstreamError) and newest.retryable:
        raise newest
    number = registered.stream.generation_of(app.tags)
    if number is not None:
        claim = registered.folder.claim(registered.names & {claim_file(number)})
        return with_tokens(registered.folder, claim, registered.names) if claim else None
    # Another stream's broken claim says nothing about this application.
    return newest if isinstance(newest, Claim) and newest.adoption.application == app.id else None
