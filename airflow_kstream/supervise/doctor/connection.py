"""The check of a connection: probe by probe, passed, with a warning or failed, with the reason and the way out."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import Denied, KstreamError, Unavailable
from airflow_kstream.model.plain import fields_of
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.doctor.yarn import TO_ASK
from airflow_kstream.policy.streams.restart.allowed import words
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.clusters.tokens import learn_lifetimes
from airflow_kstream.supervise.clusters.write_once import require_exclusive_renames
from airflow_kstream.supervise.doctor.state_dir_probes import ProbeFinding, closed_state_dir, told_supervisors
from airflow_kstream.supervise.streams.folder.registry import newest_claims
from airflow_kstream.supervise.streams.look.allowed import needed_by, needed_by_all, not_allowed


def told_bound(session: ClusterSession, declared: Sequence[StreamSpec] = ()) -> ProbeFinding:
    """Tell what declarations may use, and which of these go beyond it; without a bound, the one that would do."""
    cluster = session.cluster
    if cluster.allow is None:
        needed = needed_by_all(newest_claims(session), cluster).with_all(needed_by(declared, cluster))
        line = needed.line()
        return ProbeFinding(
            "it has none, so a declaration may use any keytab, proxied user, secret and file that the workers reach; "
            f"`kstream connection allow` prints what the present ones need{': ' * bool(line)}{line}",
            warns=True,
        )
    missing = {spec.name: not_allowed(spec, cluster) for spec in declared}
    said = [f"{name}: {words(each, cluster.name)}" for name, each in missing.items() if each]
    return ProbeFinding("; ".join(said) or _patterns(cluster.allow), warns=bool(said))


def _patterns(allow: Allow) -> str:
    given = ", ".join(f"{len(names)} of {name}" for name, names in allow.items() if names)
    return f"declarations may use what the connection has, and patterns: {given}" if given else "what it has itself"


# Streams that a row of the check names.
_NAMED = 10
_Probe = Callable[[ClusterSession], "str | ProbeFinding"]


class ProbeOutcome(StrEnum):
    """The end of a probe. WARNING: the connection works, and somebody should change something."""

    PASSED = "passed"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True)
class ProbeResult:
    """The result of one probe; `detail` is its finding, or why it failed.

    `commands` are the way out, for HDFS's superuser or the owner of the state_dir.
    """

    name: str
    outcome: ProbeOutcome
    detail: str
    commands: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.outcome is not ProbeOutcome.FAILED

    def to_json(self) -> dict[str, Any]:
        return fields_of(self)


def check_connection(
    cluster: Cluster, declared: Sequence[StreamSpec] = (), *, make: bool = False
) -> Iterator[ProbeResult]:
    """Run all probes, each after those that it needs; a failed one does not hide the rest.

    The users of these declarations, too, must be able to create in state_dir, and `allow` has to cover them. To `make`
    is to make state_dir if it is missing and to close it if it is open, as far as the connection's principal may.
    """
    with open_session(cluster, cluster.watcher) as session:
        for name, probe in _probes(declared, make=make).items():
            try:
                said = probe(session)
                told = ProbeFinding(said) if isinstance(said, str) else said
                outcome = ProbeOutcome.WARNING if told.warns else ProbeOutcome.PASSED
                yield ProbeResult(name, outcome, told.words, told.commands)
            except KstreamError as error:
                yield ProbeResult(name, ProbeOutcome.FAILED, str(error))


def _resolve(session: ClusterSession) -> str:
    urls = (*session.cluster.resourcemanagers, *session.cluster.namenodes)
    hosts = sorted({urlsplit(url).hostname or "" for url in urls})
    for host in hosts:
        try:
            socket.getaddrinfo(host, None)
        except OSError as error:
            raise Unavailable(f"{host}: {error.strerror}", tried="resolve the servers' names") from error
    return ", ".join(hosts)


def _tls(session: ClusterSession) -> str:
    plain = [url for url in (*session.cluster.resourcemanagers, *session.cluster.namenodes) if url.startswith("http:")]
    if plain:
        return f"not used by {', '.join(plain)}"
    return f"verified against {session.cluster.tls.ca or 'the public authorities'}"


def _ticket(session: ClusterSession) -> str:
    with private_folder() as private:
        left = tickets.acquire(session.identity, private / "tickets")
    return f"{session.identity.principal}, good for {format_duration(left)}"


def _resourcemanager(session: ClusterSession) -> ProbeFinding:
    address = session.yarn.active()
    words = f"{address} is active, Hadoop {session.yarn.info(address).version}"
    if session.yarn.asks_who:
        return ProbeFinding(words)
    return ProbeFinding(f"{words}, and has not asked who we are", warns=True)


def _stops(session: ClusterSession) -> str | ProbeFinding:
    try:
        return f"applications are stopped {session.yarn.way_to_stop()}"
    except Denied as error:
        names = [stream.stream.name for stream in newest_claims(session)]
        them = ", ".join(names[:_NAMED]) + f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
        return ProbeFinding(f"{error.without_advice}; nobody can stop {them or 'a stream'}. {TO_ASK}", warns=True)


def _applications(session: ClusterSession) -> str:
    return f"{len(session.yarn.applications('kstream'))} applications tagged kstream are visible"


def _namenode(session: ClusterSession) -> str:
    session.hdfs.status("/")
    return f"one of {', '.join(session.cluster.namenodes)} is active"


def _lifetimes(session: ClusterSession) -> str:
    lifetimes = learn_lifetimes(session.hdfs, session.identity)
    return (
        f"renewed every {format_duration(lifetimes.renew_interval)}, at most {format_duration(lifetimes.max_lifetime)}"
    )


def _state_dir(session: ClusterSession) -> str:
    session.hdfs.status(session.cluster.state_dir)
    require_exclusive_renames(session.hdfs, session.cluster.state_dir)
    return f"{session.cluster.state_dir} can be written, and of two renames onto one target the second is refused"


def _probes(declared: Sequence[StreamSpec] = (), *, make: bool = False) -> dict[str, _Probe]:
    """Return the probes in their order. The rights on state_dir come before the first write there."""
    return {
        "resolve": _resolve,
        "TLS": _tls,
        "ticket": _ticket,
        "SPNEGO and active ResourceManager": _resourcemanager,
        "applications": _applications,
        "way to stop applications": _stops,
        "active NameNode": _namenode,
        "token lifetimes": _lifetimes,
        "who may create in state_dir": partial(closed_state_dir, declared=declared, make=make),
        "supervisors": told_supervisors,
        "allow": partial(told_bound, declared=declared),
        "state_dir": _state_dir,
    }
