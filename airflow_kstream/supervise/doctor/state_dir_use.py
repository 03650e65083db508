"""Who uses a state_dir and can create in it, asked of HDFS as everybody for whom this host can act; and the facts of it
for the checks: its rights, who speaks there, what strangers left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
from airflow_kstream.model.clusters.authors import (
    ALL_STREAMS,
    SUPERVISORS_FILE,
    FolderKind,
    OrderFile,
    folder_name,
    is_folder_of,
)
from airflow_kstream.model.clusters.cluster_facts import StateDirFacts, StreamFolderFacts
from airflow_kstream.model.clusters.state_dir_rights import StateDirRights, StateDirUse, StateDirUser, acl_entries
from airflow_kstream.model.errors import Denied, KstreamError, NotFound
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.contract import claim_file, newest_claim
from airflow_kstream.model.streams.freeze import LONGEST
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.authors import may_order
from airflow_kstream.policy.state_dir import strange_entries
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.supervise.clusters.orders import orders_in
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.clusters.state_dir import StateListing, ground_of
from airflow_kstream.supervise.streams.folder.registry import RegisteredStream, streams_among

# Of orders that may count for nothing: each costs a listing, and anybody can make folders.
_MOST_FOLDERS = 50


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


def state_dir_facts(session: ClusterSession, streams: Sequence[RegisteredStream]) -> StateDirFacts:
    """Return the facts, with the folders of these streams, which were read.

    Costs three requests, a listing for each stream whose folder belongs to somebody whom nothing proves to be its
    user, and one for each author of orders who is not a supervisor.
    """
    listing = session.state.last()
    owners = {name: entry.owner for name, entry in listing.entries.items()}
    users = {str(stream): frozenset[str]() for stream in streams_among(listing.entries, listing.path)}
    users |= {str(each.stream): _users(session, listing, each) for each in streams}
    file = listing.entries.get(SUPERVISORS_FILE)
    return StateDirFacts(
        state_dir_rights(session.hdfs, listing.path),
        listing.supervisors,
        tuple(_folder(listing, each) for each in streams if str(each.stream) in listing.entries),
        strange_entries(owners, listing.supervisors, users),
        listing.cut_words,
        file.permission if file and listing.supervisors.named else "",
        _void_orders(session, listing, streams),
    )


def _users(session: ClusterSession, listing: StateListing, stream: RegisteredStream) -> frozenset[str]:
    """Return the stream's users, as far as HDFS proved them; none if nobody knows."""
    entry = listing.entries.get(str(stream.stream))
    if entry is None or entry.owner in listing.supervisors or entry.owner in stream.authored.users:
        return stream.authored.users
    return stream.authored.users | {file.user for file in session.copies.files(stream.stream) if file.user}


def _folder(listing: StateListing, stream: RegisteredStream) -> StreamFolderFacts:
    entry, counted = listing.entries[str(stream.stream)], stream.authored.counted
    newest = newest_claim(counted)
    return StreamFolderFacts(
        stream.stream.name,
        stream.stream.folder,
        entry.owner,
        f"{entry.permission}{' with an ACL' if entry.acl else ''}",
        ground_of(entry).closed,
        counted.get(claim_file(newest), "") if newest else "",
        stream.authored.strangers,
        stream.authored.cut,
    )


def _void_orders(
    session: ClusterSession, listing: StateListing, streams: Sequence[RegisteredStream]
) -> tuple[OrderFile, ...]:
    """Return each author's newest order, on each of these streams and on all, that is newer than the one that counts,
    and counts for nothing: perhaps its author had a say when it was given. What it says is not read."""
    subjects = {ALL_STREAMS: None, **{str(each.stream): each for each in streams}}
    folders = islice(_folders_of_orders(listing), _MOST_FOLDERS)
    orders = (order for path, folder in folders for order in _newest(session, path, folder))
    void = (
        order
        for order in orders
        if order.subject in subjects and _is_void(session, listing, order, subjects[order.subject])
    )
    return tuple(sorted(void, key=lambda order: (order.subject, order.author)))


def _folders_of_orders(listing: StateListing) -> Iterator[tuple[str, FileStatus]]:
    """Yield the folders of orders that are named after their owners, who are not supervisors."""
    for path, folder in listing.folders(FolderKind.ORDERS).items():
        named = folder_name(FolderKind.ORDERS, folder.owner)
        if folder.owner not in listing.supervisors and folder.name in (named, f"{named}.2"):
            yield path, folder


def _newest(session: ClusterSession, path: str, folder: FileStatus) -> Iterator[OrderFile]:
    """Yield the owner's last order on each subject; what can't be listed has none."""
    with suppress(Denied):
        own = (file for file in session.hdfs.listing(path).entries if file.owner == folder.owner)
        for orders in orders_in(path, folder, own).values():
            yield max(orders, key=lambda order: order.rank)


def _is_void(session: ClusterSession, listing: StateListing, order: OrderFile, stream: RegisteredStream | None) -> bool:
    speakers = stream.folder.speakers(stream.authored, listing) if stream else frozenset[str]()
    if may_order(order.author, listing.supervisors, speakers):
        return False
    if stream is None and session.hdfs.now() - order.at > LONGEST:
        return False
    with suppress(Denied):
        counting = session.orders.newest(order.subject, speakers, listing)
        return counting is None or counting.at < order.at
    return True
