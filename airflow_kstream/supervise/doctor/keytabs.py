"""The check of the keytabs of a cluster's streams, and of the running streams that a rotated keytab ends, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow_kstream.clients.kerberos import keytabs, tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import CredentialError, KstreamError
from airflow_kstream.model.finding import Severity
from airflow_kstream.model.kerberos.keytab import FindingKind, KdcStatus, KeytabFinding, KeyVersion
from airflow_kstream.policy.tickets.keytabs import keytab_findings, unreadable
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.doctor.keytab_users import AffectedStream, KeytabUser, affected_streams, keytab_users
from airflow_kstream.supervise.tickets.keytab_probe import KdcProbe, KeytabPlace
from airflow_kstream.supervise.tickets.renewal import RealmCircuitBreaker

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
