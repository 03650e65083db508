"""Who uses a state_dir, and who of them can create in it: asked of HDFS, as everybody for whom this host can act."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.clusters.own_folders import FolderKind, folder_name, is_folder_of
from airflow_kstream.model.clusters.state_dir_rights import StateDirRights, StateDirUse, StateDirUser, acl_entries
from airflow_kstream.model.errors import Denied, KstreamError, NotFound
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.horizon.identity import identity_of
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.clusters.state_dir import StateListing
from airflow_kstream.supervise.streams.folder.registry import streams_among


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
    """Find out who uses the connection's state_dir, by what lies in it and by these declarations; one that is missing
    will be made by the connection's principal.

    Costs a listing of each stream's copies, and a login for each user that this host can act for. Raises KstreamError:
    when the user of a declaration can't log in, so that nobody knows who that is.
    """
    users = _Users(session, session.state.look())
    users.add_speakers()
    users.add_declared(declared)
    users.add_kept()
    found = (*users.creators.values(), *users.owners())
    return StateDirUse(_rights(session), users.listing.supervisors.superuser, found, users.can_create)


def _rights(session: ClusterSession) -> StateDirRights:
    path = session.state.path
    try:
        return state_dir_rights(session.hdfs, path)
    except NotFound:
        keeps_acls = session.hdfs.acl("/") is not None
        return StateDirRights(path, session.state.user, "", "755", keeps_acls=keeps_acls, exists=False)


@dataclass
class _Users:
    """Those who create in a state_dir, with what each does there, and whether they can, as far as HDFS told it."""

    session: ClusterSession
    listing: StateListing
    creators: dict[str, StateDirUser] = field(default_factory=dict)
    can_create: dict[str, bool | None] = field(default_factory=dict)

    def add_speakers(self) -> None:
        user, supervisors = self.session.state.user, self.listing.supervisors
        self.can_create[user] = _has_right(self.session)
        named = supervisors.named.difference(supervisors.misnamed)
        for name, why in (dict.fromkeys(named, "is a supervisor") | {user: "is this connection's"}).items():
            self._add(name, why, *(folder_name(kind, name) for kind in FolderKind))

    def add_declared(self, declared: Iterable[StreamSpec]) -> None:
        """Add the users of declarations at hand."""
        for spec in declared:
            user = self._ask_as(identity_of(spec, self.session.cluster))
            self._add_runner(user, StreamId(spec.name, self.session.cluster.state_dir))

    def add_kept(self) -> None:
        """Add the users whose names HDFS gave when their streams were submitted, by the copies of the declarations."""
        for stream in streams_among(self.listing.entries, self.listing.path):
            files = [file for file in self.session.copies.files(stream) if file.user]
            for file in files:
                if file.user not in self.can_create and (copy := self.session.copies.read(file)):
                    with suppress(KstreamError):
                        # This connection may have no keytab or cache for it, or be refused to act for it.
                        identity = identity_of(copy.spec, self.session.cluster)
                        self.can_create[file.user] = None
                        self._ask_as(identity)
            for user in {file.user for file in files}:
                self._add_runner(user, stream)

    def owners(self) -> Iterator[StateDirUser]:
        """Yield the other owners of what lies there already: they go on working in their own folders."""
        streams = {str(stream) for stream in streams_among(self.listing.entries, self.listing.path)}
        whys: dict[str, list[str]] = {}
        for name, entry in self.listing.entries.items():
            if entry.is_folder and (name in streams or any(is_folder_of(kind, name) for kind in FolderKind)):
                whys.setdefault(entry.owner, []).append(f"owns {name}")
        yield from (StateDirUser(name, tuple(why)) for name, why in whys.items() if name not in self.creators)

    def _ask_as(self, identity: Identity) -> str:
        """Ask whether this identity can create in it, and return its short name."""
        if identity == self.session.identity:
            return self.session.state.user
        with open_session(self.session.cluster, identity) as own:
            user = own.hdfs.user()
            self.can_create[user] = _has_right(own)
        return user

    def _add_runner(self, user: str, stream: StreamId) -> None:
        self._add(user, f"runs {stream.name}", str(stream), folder_name(FolderKind.ORDERS, user))

    def _add(self, name: str, why: str, *folders: str) -> None:
        """Add somebody who creates these folders, as far as they are not theirs already."""
        entries = self.listing.entries
        known = self.creators.get(name, StateDirUser(name, (), creates=True))
        missing = {folder for folder in folders if folder not in entries or entries[folder].owner != name}
        self.creators[name] = StateDirUser(
            name, (*known.whys, why), creates=True, folders=tuple(sorted({*known.folders, *missing}))
        )


def _has_right(session: ClusterSession) -> bool | None:
    """Return whether its identity can create in the state_dir; None if nobody can say."""
    try:
        session.hdfs.check_access(session.cluster.state_dir, "-wx")
    except (Denied, NotFound):
        return False
    except KstreamError:
        return None
    return True
