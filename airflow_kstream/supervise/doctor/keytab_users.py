"""The running streams that log in with a keytab, and the effect of a rotation on each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.finding import Severity
from airflow_kstream.model.kerberos.keytab import FindingKind, KdcStatus, KeytabFinding, KeyVersion, LoginResult
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG, Claim, StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.policy.streams.horizon.horizon import issued_at
from airflow_kstream.policy.streams.horizon.rotation import KeyLoss, RenewalRounds, identity_of, key_loss, keytab_of
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.registry import RegisteredStream, newest_claims
from airflow_kstream.supervise.streams.look.watched_claim import completed


@dataclass(frozen=True)
class KeytabUser:
    """A running generation that makes its own tokens; `rounds` are its driver's, None if lifetimes are unknown."""

    stream: str
    claim: Claim
    application: Application
    principal: str
    keytab: str
    rounds: RenewalRounds | None


@dataclass(frozen=True)
class AffectedStream:
    """A running stream that gets no further tokens; `loss` is None if the cluster's lifetimes are not known."""

    stream: str
    generation: int
    application: str
    kvno: int | None
    loss: KeyLoss | None

    @property
    def words(self) -> str:
        if self.loss is None:
            return f"{self.stream} ({self.application}), at an unknown time"
        fails = _span(self.loss.fails_from, self.loss.fails_by)
        ends = _span(self.loss.dies_from, self.loss.dies_by)
        return (
            f"{self.stream} ({self.application}) {fails}; its last tokens end {ends}, "
            "and it dies with the first connection after that"
        )

    def to_json(self) -> dict[str, Any]:
        loss = self.loss
        return {
            "stream": self.stream,
            "generation": self.generation,
            "application": self.application,
            "kvno": self.kvno,
            "fails_from": loss.fails_from.isoformat() if loss else None,
            "fails_by": loss.fails_by.isoformat() if loss else None,
            "dies_from": loss.dies_from.isoformat() if loss else None,
            "dies_by": loss.dies_by.isoformat() if loss else None,
        }


def keytab_users(session: ClusterSession) -> tuple[tuple[KeytabUser, ...], tuple[KeytabFinding, ...]]:
    """Return the running streams with a keytab, by the newest claims and one listing; and the unreadable claims.

    Raises NotFound: when there is no state_dir. Raises Denied or Unavailable: when a server refuses or is away.
    """
    listed = session.yarn.applications(ALL_STREAMS_TAG)
    session.hdfs.status(session.cluster.state_dir)
    return users_among(session, newest_claims(session), listed)


def users_among(
    session: ClusterSession, streams: Iterable[RegisteredStream], listed: Sequence[Application]
) -> tuple[tuple[KeytabUser, ...], tuple[KeytabFinding, ...]]:
    """Return the same for streams and applications that were read already."""
    users: list[KeytabUser] = []
    trouble: list[KeytabFinding] = []
    for registered in streams:
        if doubt := _doubt(registered):
            words = f"could not determine whether {registered.stream.name} uses it: {doubt}"
            trouble.append(KeytabFinding(FindingKind.STREAMS_NOT_KNOWN, Severity.WARNING, words))
        elif user := _user(session, registered, listed):
            users.append(user)
    return tuple(users), tuple(trouble)


def _doubt(registered: RegisteredStream) -> str:
    newest = registered.newest
    if isinstance(newest, KstreamError):
        if newest.retryable:
            raise newest
        return str(newest)
    return newest.doubt if newest and isinstance(newest.spec, UnknownSpec) else ""


def _user(session: ClusterSession, registered: RegisteredStream, listed: Sequence[Application]) -> KeytabUser | None:
    claim = registered.newest
    if not isinstance(claim, Claim) or isinstance(spec := claim.spec, UnknownSpec):
        return None
    app = running_application(session, registered.stream, claim, listed)
    keytab = keytab_of(spec, session.cluster)
    if app is None or keytab is None:
        return None
    claim = completed(session, claim, app)
    started = registered.folder.driver_started(claim.generation, registered.names)
    rounds = _rounds(session, claim, spec, app, started)
    principal = identity_of(spec, session.cluster).principal
    return KeytabUser(registered.stream.name, claim, app, principal, keytab, rounds)


def affected_streams(
    users: Sequence[KeytabUser], at_hand: KeyVersion, kdc: KdcStatus, now: datetime
) -> tuple[AffectedStream, ...]:
    """Return the users of one keytab whose next login will be refused, given the KDC's answer to this keytab."""
    return tuple(
        AffectedStream(
            user.stream,
            user.claim.generation,
            user.application.id,
            user.claim.credentials.key.kvno if user.claim.credentials.key else None,
            key_loss(user.rounds, *_rotated(user.claim, at_hand, kdc, now)) if user.rounds else None,
        )
        for user in users
        if _is_refused(user.claim.credentials.key, at_hand, kdc)
    )


def _is_refused(key: KeyVersion | None, at_hand: KeyVersion, kdc: KdcStatus) -> bool:
    """Tell whether the next login is refused. An adopted generation's unknown key counts as the one at hand."""
    if key is None or not key.differs_from(at_hand):
        return kdc.login.lasting
    if kdc.login is LoginResult.KEY_REFUSED and kdc.kvno == key.kvno:
        # A wrong file replaced the keytab; the stream has the right key.
        return False
    return at_hand.succeeds(key) or kdc.login.lasting


def _rotated(claim: Claim, at_hand: KeyVersion, kdc: KdcStatus, now: datetime) -> tuple[datetime, datetime]:
    """Return the earliest and latest time: a working keytab was written at the rotation, a failing one before it."""
    written = at_hand.stamped or claim.claimed_at
    after = min(max(written, claim.claimed_at), now)
    return (after, after) if kdc.login is LoginResult.ACCEPTED else (after, now)


def running_application(
    session: ClusterSession, stream: StreamId, claim: Claim, listed: Sequence[Application]
) -> Application | None:
    tag = stream.generation_tag(claim.generation)
    alive = [app for app in listed if tag in app.tags and app.alive]
    if not alive and claim.adoption.application:
        with suppress(NotFound):
            alive = [app for app in [session.yarn.application(claim.adoption.application)] if app.alive]
    return max(alive, key=lambda app: app.order, default=None)


def _rounds(
    session: ClusterSession, claim: Claim, spec: StreamSpec, app: Application, started: datetime | None
) -> RenewalRounds | None:
    """Return its rounds: the first is between its start and its driver's report or, without one, within our margin."""
    issued = issued_at(claim, spec.restart)
    if claim.credentials.lifetimes is None or issued is None:
        return None
    first = max(issued, app.started or claim.claimed_at)
    slack = max(started - first, timedelta()) if started else spec.restart.adopt_margin
    ratio = engine_of(spec).renewal_ratio(session.cluster, spec)
    launch_tokens_end = issued + claim.credentials.lifetimes.max_lifetime
    return RenewalRounds(first, claim.credentials.lifetimes.renew_interval, ratio, slack, launch_tokens_end)


def _span(early: datetime, late: datetime) -> str:
    if late - early < timedelta(minutes=1):
        return f"about {early:%Y-%m-%d %H:%M:%S %Z}"
    return f"between {early:%Y-%m-%d %H:%M:%S} and {late:%Y-%m-%d %H:%M:%S %Z}"
