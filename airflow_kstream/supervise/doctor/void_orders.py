"""Orders that outrank what counts, had their author a say: perhaps one who had it when the order was given.

What they say is not read. Who gave them and when stands in the listing, and a person who looks knows the author.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.freeze import LONGEST
from airflow_kstream.model.orders import ALL_STREAMS, OrderFile, order_of
from airflow_kstream.model.own_folders import FolderKind, folder_name
from airflow_kstream.policy.authors import may_order
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.state_dir import StateListing
from airflow_kstream.supervise.streams.registry import streams_among

# Each costs a listing, and anybody can make folders.
_MOST_FOLDERS = 50


def void_orders(session: ClusterSession, listing: StateListing) -> tuple[OrderFile, ...]:
    """Return each author's newest order on each subject that is newer than the one that counts, and counts for nothing.

    Costs a listing for each author who is no supervisor, fifty at most, and two for each stream that such an order is
    about. Raises Unavailable: when HDFS is away.
    """
    streams = {str(stream): stream for stream in streams_among(listing.entries, listing.path)}
    speakers: dict[str, frozenset[str]] = {ALL_STREAMS: frozenset()}
    found: list[OrderFile] = []
    for path, folder in islice(_folders(listing), _MOST_FOLDERS):
        for order in _newest(session, path, folder).values():
            if order.subject in streams and order.subject not in speakers:
                files = session.copies.files(streams[order.subject])
                users = frozenset(file.user for file in files if file.user)
                speakers[order.subject] = users or frozenset({listing.entries[order.subject].owner})
            if order.subject in speakers and _is_void(session, listing, order, speakers[order.subject]):
                found.append(order)
    return tuple(sorted(found, key=lambda order: (order.subject, order.author)))


def _folders(listing: StateListing) -> Iterator[tuple[str, FileStatus]]:
    """Yield the folders of orders that are named after their owners, who are no supervisors."""
    for path, folder in listing.folders(FolderKind.ORDERS).items():
        named = folder_name(FolderKind.ORDERS, folder.owner)
        if folder.owner not in listing.supervisors and folder.name in (named, f"{named}.2"):
            yield path, folder


def _newest(session: ClusterSession, path: str, folder: FileStatus) -> Mapping[str, OrderFile]:
    """Return the owner's last order on each subject; what can't be listed has none."""
    newest: dict[str, OrderFile] = {}
    with suppress(Denied):
        for file in session.hdfs.listing(path).entries:
            if not file.is_folder and file.owner == folder.owner and (named := order_of(file.name)):
                order = OrderFile(f"{path}/{file.name}", *named, file.owner, file.modified)
                known = newest.get(order.subject)
                newest[order.subject] = order if known is None or known.rank < order.rank else known
    return newest


def _is_void(session: ClusterSession, listing: StateListing, order: OrderFile, speakers: frozenset[str]) -> bool:
    if may_order(order.author, listing.supervisors, speakers):
        return False
    if order.subject == ALL_STREAMS and session.hdfs.now() - order.at > LONGEST:
        return False
    with suppress(Denied):
        counting = session.orders.newest(order.subject, speakers, listing)
        return counting is None or counting.at < order.at
    return True
