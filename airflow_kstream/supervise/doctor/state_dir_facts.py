"""The facts of a state_dir: its rights, who speaks there, what strangers left, and the streams' folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.clusters.authors import SUPERVISORS_FILE
from airflow_kstream.model.clusters.cluster_facts import StateDirFacts, StreamFolderFacts
from airflow_kstream.model.clusters.orders import ALL_STREAMS, OrderFile
from airflow_kstream.model.clusters.own_folders import FolderKind, folder_name
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.contract import claim_file, newest_claim
from airflow_kstream.model.streams.freeze import LONGEST
from airflow_kstream.policy.authors import may_order
from airflow_kstream.policy.state_dir import strange_entries
from airflow_kstream.supervise.clusters.orders import orders_in
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.state_dir import StateListing, ground_of
from airflow_kstream.supervise.doctor.state_dir_use import state_dir_rights
from airflow_kstream.supervise.streams.folder.registry import RegisteredStream, streams_among

# Of orders that may count for nothing: each costs a listing, and anybody can make folders.
_MOST_FOLDERS = 50


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
