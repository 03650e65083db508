"""What the check of a connection tells of its state_dir: who may speak there, who may create, and the ways out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.authors import SUPERVISORS_FILE, Supervisors
from airflow_kstream.model.errors import Denied, NotFound
from airflow_kstream.model.orders import OrderFile
from airflow_kstream.model.own_folders import FolderKind, folder_name
from airflow_kstream.model.state_dir_rights import StateDirUse
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.policy.state_dir import Closing, closing, is_readable_by_all, openness, order_words, repeating
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.state_dir_use import new_state_dir_use, state_dir_use, words_of
from airflow_kstream.supervise.doctor.void_orders import void_orders

_FOLDER_MODE = "1755"
_NAMED = 5
_ONLY_THERE = (
    "HDFS keeps no ACLs, and nobody can tell the members of a group: {user} will be able to create nothing beside the "
    "folders that are made here, unless state_dir has a group of exactly those who use it and the mode 1775"
)


@dataclass(frozen=True)
class Told:
    """The finding of a probe. With `warns`, somebody should carry out the commands."""

    words: str
    commands: tuple[str, ...] = ()
    warns: bool = False


def told_supervisors(session: ClusterSession) -> Told:
    """Tell who speaks for all streams of state_dir, and how the connection's principal becomes one of them."""
    path, user = session.state.path, session.state.user
    session.hdfs.status(path)
    try:
        listing = session.state.look()
    except Denied as denied:
        return Told(
            f"{user} may not read who they are: {denied.without_advice}",
            (f"hdfs dfs -chmod 644 {_quoted(path)}",),
            warns=True,
        )
    supervisors, file = listing.supervisors, listing.entries.get(SUPERVISORS_FILE)
    void = file is not None and not _counts(file, supervisors)
    counting = None if void else file
    closed = counting is not None and not is_readable_by_all(counting.permission)
    words = "; ".join([*_who(path, supervisors, file if void else None), *_defects(path, supervisors, closed=closed)])
    orders = void_orders(session, listing)
    lost = f". Orders count for nothing that are newer than what counts: {_listed(orders)}" if orders else ""
    if user in supervisors:
        commands = (f"hdfs dfs -chmod 644 {_quoted(path)}",) if closed else ()
        warns = void or closed or bool(orders or supervisors.misnamed)
        return Told(f"{words}. {user}, this connection's principal, is one of them{lost}", commands, warns)
    return Told(
        f"{words}. {user}, this connection's principal, is none of them: its copies of declarations, and its orders on "
        f"streams that don't run as itself, count for nothing, and it can't freeze the cluster{lost}",
        tuple(_naming(session, user, file, void)),
        warns=True,
    )


def _defects(path: str, supervisors: Supervisors, *, closed: bool) -> Iterator[str]:
    if closed:
        yield f"not everybody may read {path}/{SUPERVISORS_FILE}: who may not can't judge anything in {path}"
    if names := supervisors.misnamed:
        yield f"no short name of a user, so that they name nobody: {', '.join(map(repr, names[:_NAMED]))}"


def _listed(orders: Sequence[OrderFile]) -> str:
    """Return the orders in words, with the commands that show and repeat each."""
    words = [f"{order_words(order)} (hdfs dfs -cat {order.path}; {repeating(order)})" for order in orders[:_NAMED]]
    rest = f" and {len(orders) - _NAMED} more" if len(orders) > _NAMED else ""
    return ", ".join(words) + rest


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
    """Yield the commands of HDFS's superuser, or of the owner of state_dir, that make the user a supervisor."""
    place = _quoted(session.state.path)
    if void:
        yield f"hdfs dfs -rm -r {place}"
    size = file.length if file and not void else 0
    last = session.hdfs.read_part(f"{session.state.path}/{SUPERVISORS_FILE}", size - 1, 1) if size else b"\n"
    # A last line without an end would become one with the name.
    line = f"echo {shlex.quote(user)}" if last == b"\n" else f"printf '\\n%s\\n' {shlex.quote(user)}"
    yield f"{line} | hdfs dfs -appendToFile - {place}"
    yield f"hdfs dfs -chmod 644 {place}"


def _quoted(path: str) -> str:
    return shlex.quote(f"{path}/{SUPERVISORS_FILE}")


def closed_state_dir(session: ClusterSession, declared: Sequence[StreamSpec] = (), *, make: bool = False) -> Told:
    """Tell who may create in state_dir, with the commands that make it, or close it; or do so with `make`.

    Raises Denied: when that is to be done and the connection's principal may not; the error has the commands.
    """
    try:
        use = state_dir_use(session, declared)
    except NotFound:
        return _missing(session, declared, make=make)
    plan = closing(use)
    if plan.commands and make:
        _carry_out(session, plan, plan.commands)
        use = state_dir_use(session, declared)
    return _told(session, use)


def _told(session: ClusterSession, use: StateDirUse) -> Told:
    plan, rights = closing(use), use.rights
    why = openness(rights)
    mode = f"{rights.path} has the mode {rights.permission}, {rights.owner}:{rights.group}"
    named = ", ".join(str(entry) for entry in rights.named)
    used = words_of(use.users, use.can_create)
    words = [
        f"{mode}{f', and {named}' if named else ''}",
        *(f"it is open: {each}" for each in why),
        f"it is used by {used}" if used else "",
        *_no_copies(session, use),
        *(_ONLY_THERE.format(user=user) for user in plan.only_in_own_folders),
    ]
    return Told("; ".join(filter(None, words)), plan.commands, warns=bool(plan.commands or why))


def _no_copies(session: ClusterSession, use: StateDirUse) -> Iterator[str]:
    """Yield that copies of declarations can't be kept, where they can't."""
    user = session.state.user
    mine = session.state.last().entries.get(folder_name(FolderKind.DECLARED, user))
    if use.can_create.get(user) is False and (mine is None or mine.owner != user):
        yield f"{user} can keep no copies of declarations, which would be submitted when those are not at hand"


def _missing(session: ClusterSession, declared: Sequence[StreamSpec], *, make: bool) -> Told:
    use = new_state_dir_use(session, declared)
    plan, path = closing(use), use.rights.path
    place, owner = shlex.quote(path), shlex.quote(use.rights.owner)
    commands = (
        f"hdfs dfs -mkdir -p {place}",
        f"hdfs dfs -chown {owner} {place}",
        f"hdfs dfs -chmod {plan.permission} {place}",
        *plan.commands,
    )
    if not make:
        words = f"there is no {path}; its owner speaks for all of its streams"
        return Told(words, commands, warns=True)
    _carry_out(session, plan, commands, new=True)
    return _told(session, state_dir_use(session, declared))


def _carry_out(session: ClusterSession, plan: Closing, commands: Sequence[str], *, new: bool = False) -> None:
    """Make it closed. Raises Denied: with the commands, when that takes another user."""
    hdfs, path = session.hdfs, plan.path
    if plan.folders:
        raise _refused("only HDFS's superuser makes folders for others", commands, f"close {path}")
    try:
        if new:
            hdfs.make_folder(path, _FOLDER_MODE)
            hdfs.change_mode(path, plan.permission)
        elif not plan.entries:
            hdfs.change_mode(path, plan.permission)
        elif plan.sets_sticky:
            hdfs.change_mode(path, f"1{hdfs.status(path).permission[-3:]}")
        if plan.entries:
            hdfs.change_acl(path, plan.acl)
    except Denied as denied:
        raise _refused(denied.without_advice, commands, denied.tried) from denied


def _refused(why: str, commands: Sequence[str], tried: str) -> Denied:
    steps = "; ".join(f"`{command}`" for command in commands)
    return Denied(f"{why}. Its owner, or HDFS's superuser, runs: {steps}", tried=tried)
