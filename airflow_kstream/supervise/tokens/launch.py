"""What can be known from outside of the tokens that an application was launched with."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_kstream.jobs.kstream_driver import claim_file
from airflow_kstream.model.application import Application, ApplicationState
from airflow_kstream.model.errors import Denied, InvalidInput
from airflow_kstream.model.generation import Claim, StreamId
from airflow_kstream.model.horizon import Horizon
from airflow_kstream.model.plain import plain
from airflow_kstream.model.stream import RestartPolicy
from airflow_kstream.model.tokens import TokenLifetimes
from airflow_kstream.policy.streams.horizon import horizon, issued_at
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.token_lifetimes import learn_lifetimes
from airflow_kstream.supervise.streams.observe import key_at_hand
from airflow_kstream.supervise.streams.state_folder import StreamFolder
from airflow_kstream.supervise.streams.watch import stream_names


@dataclass(frozen=True)
class LaunchTokens:
    """When they were issued at the earliest, and how long the cluster lets them live: nobody outside sees them.

    `claim` and `horizon` are those of the stream's generation, None for an application of no stream: whether such a
    one makes its own tokens is not known. `now` is the NameNode's clock.
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
        """From here on the tokens of the launch may be dead, however often they were renewed."""
        return self.issued + self.lifetimes.max_lifetime

    def to_json(self) -> dict[str, Any]:
        """Return plain data, times in ISO 8601, durations in seconds."""
        horizon = self.horizon
        return {
            "application": self.application.id,
            "state": self.application.state,
            "stream": self.stream or None,
            "generation": self.claim.generation if self.claim else None,
            "credentials": self.claim.spec.credentials.mode if self.claim else None,
            "issued_not_before": plain(self.issued),
            "launch_tokens_end": plain(self.end),
            "renew_interval_seconds": plain(self.lifetimes.renew_interval),
            "max_lifetime_seconds": plain(self.lifetimes.max_lifetime),
            "horizon": plain(horizon.hard) if horizon else None,
            "horizon_reason": horizon.reason if horizon else None,
            "planned_restart": plain(horizon.plan) if horizon else None,
        }


def launch_tokens(session: ClusterSession, application_id: str) -> LaunchTokens:
    """By the stream's claim where the application is one of a stream, else by its start and the cluster's lifetimes.

    The latter are learned with a token that is got and cancelled. Raise NotFound for an application that the
    ResourceManager does not list, and Denied where it does not tell us its start.
    """
    app = session.yarn.application(application_id)
    for name in stream_names(session):
        claim = _claim_of(session, StreamId(name, session.cluster.state_dir), app)
        if claim and claim.lifetimes:
            return _of_stream(session, app, name, claim, claim.lifetimes)
    if app.started is None:
        raise Denied(
            "it is of no stream, and this principal may not see when it started",
            tried=f"look at the tokens of {application_id}",
            principal=str(session.identity),
        )
    lifetimes = learn_lifetimes(session.hdfs, session.identity)
    return LaunchTokens(app, app.started - RestartPolicy().adopt_margin, lifetimes, session.hdfs.now())


def _of_stream(
    session: ClusterSession, app: Application, name: str, claim: Claim, lifetimes: TokenLifetimes
) -> LaunchTokens:
    now = session.hdfs.now()
    time_left = session.yarn.time_left(app.id) if app.state is ApplicationState.RUNNING else None
    return LaunchTokens(
        application=app,
        issued=issued_at(claim, claim.spec.restart),
        lifetimes=lifetimes,
        now=now,
        stream=name,
        claim=claim,
        horizon=horizon(claim.spec, claim, now, time_left, key_at_hand(claim.spec, claim)),
    )


def _claim_of(session: ClusterSession, stream: StreamId, app: Application) -> Claim | None:
    """The claim of the application's generation: by its tags, or, when it was adopted, by the newest claim's word."""
    folder = StreamFolder(session.hdfs, stream)
    number = stream.generation_of(app.tags)
    if number is not None:
        return folder.claim(folder.names() & {claim_file(number)})
    # Another stream's broken claim says nothing of this application.
    with suppress(InvalidInput):
        newest = folder.claim(folder.names())
        return newest if newest and newest.adopted == app.id else None
    return None
