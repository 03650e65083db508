"""What a person wants of a stream, written where every supervisor reads it."""

from __future__ import annotations

from airflow_kstream.model.errors import Conflict, NotFound
from airflow_kstream.model.generation import StreamId, Wish
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.supervise.clusters.session import Access
from airflow_kstream.supervise.streams.state_folder import StreamFolder


def want(access: Access, stream: StreamId, wish: Wish, reason: str) -> None:
    StreamFolder(access.hdfs, stream).want(wish, reason)


def want_restart(access: Access, stream: StreamId, reason: str) -> int:
    """Ask that the generation of this moment be replaced, and return its number. Asking twice restarts once."""
    folder = StreamFolder(access.hdfs, stream)
    claim = folder.claim(folder.names())
    if claim is None:
        raise NotFound("it was never submitted", tried=f"ask for a restart of {stream.name}")
    wish = folder.desired(folder.names()).wish
    if wish is not Wish.RUNNING:
        raise Conflict(f"somebody wants it {wish}; say `start` first", tried=f"ask for a restart of {stream.name}")
    folder.want(Wish.RUNNING, reason, restart_through=claim.generation)
    return claim.generation


def declared_at_last(access: Access, stream: StreamId) -> StreamSpec:
    """The spec of the newest claim: enough to watch and to stop a stream whose declaration isn't at hand.

    Its secrets are masked, so that it can't be submitted from.
    """
    folder = StreamFolder(access.hdfs, stream)
    claim = folder.claim(folder.names())
    if claim is None:
        raise NotFound("no generation of it was ever claimed", tried=f"read the claims of {stream.name}")
    return claim.spec
