"""Who uses a state_dir, and who of them can create in it: asked of HDFS, as everybody for whom this host can act."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import Denied, KstreamError, NotFound
from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.own_folders import FolderKind, folder_name, is_folder_of
from airflow_kstream.model.state_dir_rights import Need, StateDirRights, StateDirUse, StateDirUser, acl_entries
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.policy.streams.identity import identity_of
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.clusters.state_dir import StateListing
from airflow_kstream.supervise.streams.registry import streams_among

_CREATE = "-wx"
# Of the users of a state_dir, in words.
_NAMED = 20


@dataclass
class _Found:
    """The users that were found, with what each does, and whom this host can act for, by HDFS's short name."""

    users: list[StateDirUser] = field(default_factory=list)
    identities: dict[str, Identity] = field(default_factory=dict)


def state_dir_rights(hdfs: Hdfs, path: str) -> StateDirRights:
    """Ask for the rights on a state_dir. Raises NotFound: when there is none."""
    status = hdfs.status(path)
    entries = hdfs.acl(path)
    above = hdfs.status(path.rpartition("/")[0] or "/")
    return StateDirRights(
        path,
        status.owner,
        status.group,
        status.permission,
        acl_entries(entries or ()),
        above.group,
        keeps_acls=entries is not None,
    )


def state_dir_use(session: ClusterSession, declared: Iterable[StreamSpec] = ()) -> StateDirUse:
    """Find out who uses the connection's state_dir, by what lies in it and by these declarations.

    Costs a listing of each stream's copies, and a login for each user that this host can act for. Raises NotFound: when
    there is no such state_dir.
    """
    rights = state_dir_rights(session.hdfs, session.state.path)
    listing = session.state.look()
    found = _Found(_speakers(session, listing), {session.state.user: session.identity})
    _add_declared(session, listing, declared, found)
    _add_kept(session, listing, found)
    found.users += _owners(listing)
    creators = {user.name for user in found.users if user.need is Need.CREATE}
    asked = {user: _can_create(session, user, found.identities[user]) for user in creators & set(found.identities)}
    can_create = {user: can for user, can in asked.items() if can is not None}
    return StateDirUse(rights, listing.supervisors.superuser, tuple(found.users), can_create)


def new_state_dir_use(session: ClusterSession, declared: Iterable[StreamSpec] = ()) -> StateDirUse:
    """Return who will use a state_dir that is yet to be made by this connection's principal."""
    path, user = session.state.path, session.state.user
    superuser, parent = session.hdfs.status("/").owner, _nearest(session.hdfs, path)
    listing = StateListing(path, {}, session.state.supervisors)
    found = _Found(identities={user: session.identity})
    _add_declared(session, listing, declared, found)
    keeps_acls = session.hdfs.acl(parent) is not None
    group = session.hdfs.status(parent).group
    rights = StateDirRights(path, user, group, "1755", (), group, keeps_acls=keeps_acls)
    nobody = {each.name: False for each in found.users}
    return StateDirUse(rights, superuser, tuple(found.users), nobody)


def _nearest(hdfs: Hdfs, path: str) -> str:
    """Return the nearest folder above that exists."""
    above = path.rpartition("/")[0]
    try:
        hdfs.status(above or "/")
    except NotFound:
        return _nearest(hdfs, above)
    return above or "/"


def _speakers(session: ClusterSession, listing: StateListing) -> list[StateDirUser]:
    kinds = (FolderKind.DECLARED, FolderKind.ORDERS, FolderKind.LEASES)
    named = listing.supervisors.named.difference(listing.supervisors.misnamed)
    whys = dict.fromkeys(named, "is a supervisor") | {session.state.user: "is this connection's"}
    return [_creator(listing, user, why, (folder_name(kind, user) for kind in kinds)) for user, why in whys.items()]


def _creator(listing: StateListing, user: str, why: str, folders: Iterable[str]) -> StateDirUser:
    """Return a user who creates these folders, as far as they are not that user's already."""
    entries = listing.entries
    missing = (name for name in folders if name not in entries or entries[name].owner != user)
    return StateDirUser(user, Need.CREATE, why, tuple(missing))


def _runs(listing: StateListing, user: str, stream: StreamId) -> StateDirUser:
    folders = (str(stream), folder_name(FolderKind.ORDERS, user))
    return _creator(listing, user, f"runs {stream.name}", folders)


def _add_declared(
    session: ClusterSession, listing: StateListing, declared: Iterable[StreamSpec], found: _Found
) -> None:
    """Add the users of declarations at hand. Raises KstreamError: when one of them can't log in, so that nobody knows
    who it is."""
    cluster = session.cluster
    for spec in declared:
        identity = identity_of(spec, cluster)
        with open_session(cluster, identity) as own:
            user = own.hdfs.user()
        found.identities.setdefault(user, identity)
        found.users.append(_runs(listing, user, StreamId(spec.name, cluster.state_dir)))


def _add_kept(session: ClusterSession, listing: StateListing, found: _Found) -> None:
    """Add the users whose names HDFS gave when their streams were submitted, by the copies of the declarations."""
    for stream in streams_among(listing.entries, session.cluster.state_dir):
        files = [file for file in session.copies.files(stream) if file.user]
        for file in files:
            if file.user not in found.identities and (copy := session.copies.read(file)):
                found.identities.update((file.user, each) for each in _identity(copy.spec, session.cluster))
        found.users += [_runs(listing, user, stream) for user in sorted({file.user for file in files})]


def _identity(spec: StreamSpec, cluster: Cluster) -> Iterator[Identity]:
    """Yield the identity of a declaration, nothing if this connection has no keytab or cache for it."""
    try:
        yield identity_of(spec, cluster)
    except KstreamError:
        return


def _owners(listing: StateListing) -> Iterator[StateDirUser]:
    """Yield the owners of what lies there already: they go on working in their own folders."""
    streams = {str(stream) for stream in streams_among(listing.entries, listing.path)}
    for name, entry in listing.entries.items():
        if entry.is_folder and (name in streams or any(is_folder_of(kind, name) for kind in FolderKind)):
            yield StateDirUser(entry.owner, Need.ENTER, f"owns {name}")


def _can_create(session: ClusterSession, user: str, identity: Identity) -> bool | None:
    """Return whether this user can create in the state_dir; None if nobody can say."""
    if identity == session.identity:
        return _has_right(session) if session.state.user == user else None
    try:
        with open_session(session.cluster, identity) as own:
            # Who may not be impersonated is denied as well.
            return _has_right(own) if own.hdfs.user() == user else None
    except KstreamError:
        return None


def _has_right(session: ClusterSession) -> bool | None:
    try:
        session.hdfs.check_access(session.cluster.state_dir, _CREATE)
    except Denied:
        return False
    except KstreamError:
        return None
    return True


def words_of(users: Iterable[StateDirUser], can_create: Mapping[str, bool]) -> str:
    """Return who uses a state_dir and what for, in words, and whether they can create there."""
    reasons: dict[tuple[str, Need], list[str]] = {}
    for user in users:
        reasons.setdefault((user.name, user.need), []).append(user.why)
    creators = {name for name, need in reasons if need is Need.CREATE}
    answers = {True: "can create", False: "can not create", None: "not known whether it can create"}
    lines = []
    for (name, need), whys in sorted(reasons.items()):
        rest = f" and {len(whys) - 3} more" if len(whys) > 3 else ""
        if need is Need.CREATE:
            lines.append(f"{name} ({', '.join(whys[:3])}{rest}): {answers[can_create.get(name)]}")
        elif name not in creators:
            lines.append(f"{name} ({', '.join(whys[:3])}{rest})")
    rest = f"; and {len(lines) - _NAMED} more" if len(lines) > _NAMED else ""
    return "; ".join(lines[:_NAMED]) + rest
