"""What the check of a connection tells of its state_dir: who may speak there, who may create, and the ways out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.clusters.authors import SUPERVISORS_FILE, FolderKind, Supervisors, folder_name
from airflow_kstream.model.clusters.state_dir_rights import StateDirUse
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.state_dir import Closing, closing, few, is_readable_by_all, openness
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.state_dir_use import state_dir_use

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
