"""The check of the keytabs of a cluster's streams: which running streams a rotated one ends, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow_kstream.clients.kerberos import keytabs, tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import CredentialError, KstreamError
from airflow_kstream.model.finding import Severity
from airflow_kstream.model.kerberos.keytab import FindingKind, KdcStatus, KeytabFinding, KeyVersion, LoginResult
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG, Claim
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.policy.streams.horizon.launch_tokens import issued_at
from airflow_kstream.policy.streams.horizon.rotation import KeyLoss, RenewalRounds, identity_of, key_loss, keytab_of
from airflow_kstream.policy.tickets import keytab_findings, unreadable
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.registry import RegisteredStream, newest_claims
from airflow_kstream.supervise.streams.folder.tagged_applications import running_application
from airflow_kstream.supervise.streams.look.watched_claim import completed
from airflow_kstream.supervise.tickets.keytab_probe import KdcProbe, KeytabPlace
from airflow_kstream.supervise.tickets.renewal import RealmCircuitBreaker


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


_COSTLY = frozenset(FindingKind) - {FindingKind.OPEN_TO_OTHERS, FindingKind.CLOCK}


@dataclass(frozen=True)
class KeytabCheck:
    """The check of one principal's keytab. `findings` has errors first; `streams` are those that get no new tokens."""

    place: KeytabPlace
    findings: tuple[KeytabFinding, ...]
    streams: tuple[AffectedStream, ...] = ()
    kvno: int | None = None
    kdc: KdcStatus | None = None

    @property
    def worst(self) -> Severity | None:
        severities = [finding.severity for finding in self.findings]
        return min(severities, key=list(Severity).index, default=None)

    @property
    def failed(self) -> bool:
        return self.worst is Severity.ERROR

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "principal": self.place.principal,
            "keytab": self.place.path,
            "kvno": self.kvno,
            "kdc_kvno": self.kdc.kvno if self.kdc else None,
            "login": self.kdc.login.value if self.kdc else None,
            "severity": self.worst.value if self.worst else None,
            "findings": [
                {
                    "kind": finding.kind.value,
                    "severity": finding.severity.value,
                    "words": finding.words,
                    "remedy": finding.remedy,
                }
                for finding in self.findings
            ],
            "streams": [stream.to_json() for stream in self.streams],
        }


def check_keytabs(
    cluster: Cluster,
    place: KeytabPlace | None = None,
    also: Sequence[KeytabPlace] = (),
    known: Sequence[KeytabUser] | None = None,
) -> Iterator[KeytabCheck]:
    """Check `place` alone; without it the watcher's keytab, those of the cluster's streams, and `also`.

    The cluster's servers tell its streams, unless those that use a keytab are `known`.

    A failure hides no other, and each keytab is checked once.

    The check logs in at the KDC, into caches that are deleted afterwards. It names a stream only if the claim and the
    ResourceManager show that it runs; if they can't be reached, that is a finding. It waits once for a realm whose
    KDCs do not respond, not once for each keytab.
    """
    # A second request to a silent KDC costs 25 s, and all keytabs here use the same KDCs.
    breaker = RealmCircuitBreaker(give_up_after=1)
    with _watching(cluster, breaker) as helpers:
        users, trouble = _users(cluster, breaker) if known is None else (tuple(known), ())
        for checked in [place] if place else _places(cluster, users, also):
            yield _checked(checked, users, trouble, KdcProbe(breaker, helpers))


@contextmanager
def _watching(cluster: Cluster, breaker: RealmCircuitBreaker) -> Iterator[tuple[Path, ...]]:
    """Get the watcher a ticket that authenticates probes of others; none if it can't, as its own check reports."""
    with private_folder() as private:
        cache = private / "watcher"
        try:
            with breaker.request(cluster.watcher.principal, "log in"):
                tickets.acquire(cluster.watcher, cache)
        except KstreamError:
            yield ()
            return
        yield (cache,)


def _users(cluster: Cluster, breaker: RealmCircuitBreaker) -> tuple[tuple[KeytabUser, ...], tuple[KeytabFinding, ...]]:
    try:
        breaker.require_speaking(cluster.watcher.principal, "find the streams that use it")
        with open_session(cluster, cluster.watcher) as session:
            return keytab_users(session)
    except KstreamError as error:
        words = f"could not determine which streams use it: {error}"
        return (), (KeytabFinding(FindingKind.STREAMS_NOT_KNOWN, Severity.WARNING, words, "see `kstream connection`"),)


def _places(cluster: Cluster, users: Sequence[KeytabUser], also: Sequence[KeytabPlace]) -> list[KeytabPlace]:
    """Return the keytabs to check, the watcher's first."""
    watcher = cluster.watcher
    own = [KeytabPlace(watcher.principal, watcher.keytab)] if watcher.keytab else []
    theirs = sorted({*also, *(KeytabPlace(user.principal, user.keytab) for user in users)})
    return [*own, *(place for place in theirs if place not in own)]


def _checked(
    place: KeytabPlace, users: Sequence[KeytabUser], trouble: tuple[KeytabFinding, ...], kdcs: KdcProbe
) -> KeytabCheck:
    try:
        keytab = keytabs.read(place.path)
    except CredentialError as error:
        return KeytabCheck(place, (unreadable(error.message), *trouble))
    version = keytab.version(place.principal)
    if version is None:
        return KeytabCheck(place, (*keytab_findings(keytab, place.principal, None), *trouble))
    kdc = kdcs.ask(keytab, place.principal)
    now = datetime.now(UTC)
    mine = [user for user in users if user.principal == place.principal and _uses(user, place, version)]
    streams = affected_streams(mine, version, kdc, now)
    worked = [
        user.claim.claimed_at
        for user in mine
        if user.claim.credentials.key and not version.differs_from(user.claim.credentials.key)
    ]
    findings = _with_streams(keytab_findings(keytab, place.principal, kdc, max(worked, default=None)), streams)
    return KeytabCheck(place, (*findings, *trouble), streams, version.kvno, kdc)


def _uses(user: KeytabUser, place: KeytabPlace, version: KeyVersion) -> bool:
    """Compare its path, or its content: a stream knows it by the path on the host that submitted the stream."""
    key = user.claim.credentials.key
    return user.keytab == place.path or (key is not None and key.fingerprint == version.fingerprint)


def _with_streams(findings: tuple[KeytabFinding, ...], streams: Sequence[AffectedStream]) -> tuple[KeytabFinding, ...]:
    """Add the affected streams to the finding that affects them: the first error, or one of its own."""
    if not streams:
        return findings
    words = "; ".join(stream.words for stream in streams)
    head = next(
        (finding for finding in findings if finding.kind in _COSTLY and finding.severity is Severity.ERROR), None
    )
    if head is None:
        remedy = "`kstream streams restart` each, or let their supervisor do it"
        words = f"streams that run with an older key fail at their next renewal: {words}"
        return (KeytabFinding(FindingKind.OLD_KEY_RUNS, Severity.ERROR, words, remedy), *findings)
    costly = replace(head, words=f"{head.words}; streams that started with it fail at their next renewal: {words}")
    return (costly, *(finding for finding in findings if finding is not head))
