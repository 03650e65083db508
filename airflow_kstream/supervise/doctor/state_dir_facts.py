"""The facts of a state_dir: its rights, who speaks there, what strangers left, and the streams' folders."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_kstream.model.authors import SUPERVISORS_FILE
from airflow_kstream.model.cluster_facts import StateDirFacts, StreamFolderFacts
from airflow_kstream.model.contract import claim_file, newest_claim
from airflow_kstream.policy.state_dir import strange_entries
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.state_dir import StateListing, ground_of
from airflow_kstream.supervise.doctor.state_dir_use import state_dir_rights
from airflow_kstream.supervise.doctor.void_orders import void_orders
from airflow_kstream.supervise.streams.registry import RegisteredStream, streams_among


def state_dir_facts(session: ClusterSession, streams: Sequence[RegisteredStream]) -> StateDirFacts:
    """Return the facts, with the folders of these streams, which were read.

    Costs three requests, a listing for each stream whose folder belongs to somebody whom nothing proves to be its
    user, and what `void_orders` costs.
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
        void_orders(session, listing),
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
