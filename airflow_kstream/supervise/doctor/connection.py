"""The check of a connection: probe by probe, passed, with a warning or failed, with the reason and the way out.

One probe tells who may speak in its state_dir, and who may create something there.
"""

from __future__ import annotations

import shlex
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.clusters.authors import SUPERVISORS_FILE, FolderKind, Supervisors, folder_name
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.cluster_facts import OpenWeb
from airflow_kstream.model.clusters.state_dir_rights import StateDirUse
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.model.plain import fields_of
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.doctor.hdfs import TO_ASK as TO_ASK_NAMENODES
from airflow_kstream.policy.doctor.hdfs import open_words
from airflow_kstream.policy.doctor.yarn import OPEN_LOGS, TO_ASK, TO_ASK_NODES
from airflow_kstream.policy.state_dir import Closing, closing, few, is_readable_by_all, openness
from airflow_kstream.policy.streams.restart.allowed import words
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.clusters.tokens import learn_lifetimes
from airflow_kstream.supervise.clusters.write_once import require_exclusive_renames
from airflow_kstream.supervise.doctor.server_facts import node_page, open_namenodes, open_node
from airflow_kstream.supervise.doctor.state_dir_use import state_dir_use
from airflow_kstream.supervise.streams.folder.registry import newest_claims
from airflow_kstream.supervise.streams.look.blocked import needed_by, needed_by_all, not_allowed

_ONLY_THERE = (
    "HDFS keeps no ACLs, and nobody can tell the members of a group: {user} will be able to create nothing beside the "
    "folders that are made here, unless state_dir has a group of exactly those who use it and the mode 1775"
)
_CAN = {True: "can create", False: "can not create", None: "not known whether it can create"}


@dataclass(frozen=True)
class ProbeFinding:
    """The finding of a probe. With `warns`, somebody should carry out the commands."""

    words: str
    commands: tuple[str, ...] = ()
    warns: bool = False


def told_supervisors(session: ClusterSession) -> ProbeFinding:
    """Tell who speaks for all streams of state_dir, and how the connection's principal becomes one of them."""
    path, user = session.state.path, session.state.user
    session.hdfs.status(path)
    readable = f"hdfs dfs -chmod 644 {_quoted(path)}"
    try:
        listing = session.state.look()
    except Denied as denied:
        return ProbeFinding(f"{user} may not read who they are: {denied.without_advice}", (readable,), warns=True)
    supervisors, file = listing.supervisors, listing.entries.get(SUPERVISORS_FILE)
    void = file is not None and not _counts(file, supervisors)
    closed = file is not None and not void and not is_readable_by_all(file.permission)
    said = [*_who(path, supervisors, file if void else None), *_defects(path, supervisors, closed=closed)]
    words = f"{'; '.join(said)}. {user}, this connection's principal, is"
    if user in supervisors:
        warns = void or closed or bool(supervisors.misnamed)
        return ProbeFinding(f"{words} one of them", (readable,) if closed else (), warns)
    return ProbeFinding(
        f"{words} none of them: its copies of declarations, and its orders on streams that don't run as itself, count "
        "for nothing, and it can't freeze the cluster",
        (*_naming(session, user, file, void), readable),
        warns=True,
    )


def _defects(path: str, supervisors: Supervisors, *, closed: bool) -> Iterator[str]:
    if closed:
        yield f"not everybody may read {path}/{SUPERVISORS_FILE}: who may not can't judge anything in {path}"
    if supervisors.misnamed:
        yield f"no short name of a user, so that they name nobody: {few(map(repr, supervisors.misnamed))}"


def _counts(file: FileStatus, supervisors: Supervisors) -> bool:
    return not file.is_folder and file.owner in (supervisors.superuser, supervisors.owner)


def _who(path: str, supervisors: Supervisors, void: FileStatus | None) -> Iterator[str]:
    yield f"{supervisors.superuser} (owns /)"
    yield f"{supervisors.owner} (owns {path})"
    file = f"{path}/{SUPERVISORS_FILE}"
    if void:
        what = "is a folder" if void.is_folder else f"belongs to {void.owner}"
        yield f"{file} {what}, so that it names nobody"
    elif supervisors.named:
        yield f"{', '.join(sorted(supervisors.named))} (named in {file})"
    else:
        yield f"{file} names nobody"


def _naming(session: ClusterSession, user: str, file: FileStatus | None, void: bool) -> Iterator[str]:
    """Yield the commands of HDFS's superuser, or of the owner of state_dir, that name the user in it."""
    place = _quoted(session.state.path)
    if void:
        yield f"hdfs dfs -rm -r {place}"
    size = file.length if file and not void else 0
    last = session.hdfs.read_part(f"{session.state.path}/{SUPERVISORS_FILE}", size - 1, 1) if size else b"\n"
    # A last line without an end would become one with the name.
    line = f"echo {shlex.quote(user)}" if last == b"\n" else f"printf '\\n%s\\n' {shlex.quote(user)}"
    yield f"{line} | hdfs dfs -appendToFile - {place}"


def _quoted(path: str) -> str:
    return shlex.quote(f"{path}/{SUPERVISORS_FILE}")


def closed_state_dir(
    session: ClusterSession, declared: Sequence[StreamSpec] = (), *, make: bool = False
) -> ProbeFinding:
    """Tell who may create in state_dir, with the commands that make it, or close it; or do so with `make`.

    Raises Denied: when that is to be done and the connection's principal may not; the error has the commands.
    """
    use = state_dir_use(session, declared)
    if make and (plan := closing(use)).changes:
        _carry_out(session, plan)
        use = state_dir_use(session, declared)
    return _told(session, use)


def _told(session: ClusterSession, use: StateDirUse) -> ProbeFinding:
    plan, rights, why = closing(use), use.rights, openness(use.rights)
    if rights.exists:
        mode = f"{rights.path} has the mode {rights.permission}, {rights.owner}:{rights.group}"
        said = [
            ", and ".join(filter(None, (mode, ", ".join(map(str, rights.named))))),
            *(f"it is open: {each}" for each in why),
            f"it is used by {_users(use)}",
            *_can_not_keep(session, use),
        ]
    else:
        said = [f"there is no {rights.path}; its owner speaks for all of its streams"]
    only_there = (_ONLY_THERE.format(user=user) for user in plan.folders if plan.changes)
    return ProbeFinding("; ".join((*said, *only_there)), plan.commands, warns=plan.changes)


def _users(use: StateDirUse) -> str:
    """Return who uses it and what for, in words, and whether they can create there."""
    users = sorted(use.users, key=lambda user: user.name)
    can = {user.name: f": {_CAN[use.can_create.get(user.name)]}" if user.creates else "" for user in users}
    return few((f"{user.name} ({few(user.whys, 3)}){can[user.name]}" for user in users), 20, "; ")


def _can_not_keep(session: ClusterSession, use: StateDirUse) -> Iterator[str]:
    """Yield what can't be kept in it, for want of a folder or the right to make one."""
    user = session.state.user
    if use.can_create.get(user) is not False:
        return
    mine = {name for name, entry in session.state.last().entries.items() if entry.owner == user}
    if folder_name(FolderKind.DECLARED, user) not in mine:
        yield f"{user} can keep no copies of declarations, which would be submitted when those are not at hand"
    if folder_name(FolderKind.TOLD, user) not in mine:
        yield f"{user} can note nothing of what was told: a triggerer that restarts tells again what lasts"


def _carry_out(session: ClusterSession, plan: Closing) -> None:
    """Make it, or close it. Raises Denied: with the commands, when that takes another user."""
    hdfs, path = session.hdfs, plan.rights.path
    if plan.folders:
        raise _refused("only HDFS's superuser makes folders for others", plan, f"close {path}")
    try:
        if not plan.rights.exists:
            hdfs.make_folder(path, plan.rights.permission)
        if not plan.entries:
            hdfs.change_mode(path, plan.permission)
            return
        if not plan.rights.sticky:
            hdfs.change_mode(path, f"1{plan.rights.permission[-3:]}")
        hdfs.change_acl(path, plan.acl)
    except Denied as denied:
        raise _refused(denied.without_advice, plan, denied.tried) from denied


def _refused(why: str, plan: Closing, tried: str) -> Denied:
    steps = "; ".join(f"`{command}`" for command in plan.commands)
    return Denied(f"{why}. Its owner, or HDFS's superuser, runs: {steps}", tried=tried)


def told_bound(session: ClusterSession, declared: Sequence[StreamSpec] = ()) -> ProbeFinding:
    """Tell what declarations may use, and which of these go beyond it; without a bound, the one that would do."""
    cluster = session.cluster
    if cluster.allow is None:
        needed = needed_by_all(newest_claims(session), cluster).with_all(needed_by(declared, cluster))
        return ProbeFinding(
            "it has none, so a declaration may use any keytab, proxied user, secret and file that the workers reach; "
            f"{needed.advice()}",
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


def _nodemanager(session: ClusterSession) -> str | ProbeFinding:
    """Tell whether one knows who asks. What it can't tell harms no connection: logs then come from HDFS."""
    try:
        found = open_node(session, node_page(session))
    except (NotFound, Unavailable) as error:
        return ProbeFinding(f"no NodeManager answers: {error.without_advice}", warns=True)
    if found is None:
        return "one of them tells nothing to a caller without a login"
    return ProbeFinding(f"{found.server} has not asked who we are: {OPEN_LOGS}. {TO_ASK_NODES}", warns=True)


def _namenode(session: ClusterSession) -> str:
    """Raises Denied: also when WebHDFS took the request without a proof of who asks."""
    opened: tuple[OpenWeb, ...] = ()
    # One NameNode of a pair may be away; if both are, the request below says so.
    with suppress(Unavailable):
        opened = open_namenodes(session)
    if opened:
        tried, servers = "ask the NameNode who we are", ", ".join(web.server for web in opened)
        raise Denied(f"{open_words(opened)}. {TO_ASK_NAMENODES}", tried=tried, server=servers)
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
        "a NodeManager": _nodemanager,
        "active NameNode": _namenode,
        "token lifetimes": _lifetimes,
        "who may create in state_dir": partial(closed_state_dir, declared=declared, make=make),
        "supervisors": told_supervisors,
        "allow": partial(told_bound, declared=declared),
        "state_dir": _state_dir,
    }
