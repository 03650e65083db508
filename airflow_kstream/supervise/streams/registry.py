"""The streams of a state_dir. Only this module lists its folders."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.generation import Claim, StreamId
from airflow_kstream.model.near_names import did_you_mean
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.state_folder import StreamFolder


@dataclass(frozen=True)
class RegisteredStream:
    """A stream with its newest claim: None if nothing was ever claimed, an error if it can't be read.

    The error concerns this stream alone; the caller decides what it means for the question at hand.
    """

    stream: StreamId
    folder: StreamFolder
    names: frozenset[str]
    newest: Claim | KstreamError | None


def stream_names(session: ClusterSession) -> tuple[str, ...]:
    """Return the streams that have a folder in this state_dir. Raises NotFound: when there is no such state_dir."""
    session.hdfs.status(session.cluster.state_dir)
    return tuple(stream.name for stream in stream_ids(session))


def require_known(session: ClusterSession, name: str, tried: str) -> None:
    """Raises NotFound: when no stream of this name has a folder in the state_dir."""
    known = [stream.name for stream in stream_ids(session)]
    if name not in known:
        raise no_such_stream(session, name, known, tried)


def no_such_stream(session: ClusterSession, name: str, known: Collection[str], tried: str) -> NotFound:
    there = ", ".join(sorted(known)) or "no stream"
    return NotFound(f"{session.cluster.state_dir} has {there}{did_you_mean(name, known)}", tried=tried)


def newest_claims(session: ClusterSession) -> Iterator[RegisteredStream]:
    """Yield every stream with its newest claim; nothing if there is no such state_dir."""
    for stream in stream_ids(session):
        yield registered(session, stream)


def registered(session: ClusterSession, stream: StreamId) -> RegisteredStream:
    """Return a stream with its newest claim. Raises nothing: what can't be read is the stream's own trouble."""
    folder = StreamFolder(session.hdfs, stream)
    names: frozenset[str] = frozenset()
    try:
        names = folder.names()
        return RegisteredStream(stream, folder, names, folder.claim(names))
    except KstreamError as error:
        return RegisteredStream(stream, folder, names, error)


def stream_ids(session: ClusterSession) -> list[StreamId]:
    """Return the streams that have a folder in this state_dir, by name; none if there is no such state_dir."""
    state_dir = session.cluster.state_dir
    folders = [folder.name for folder in session.hdfs.list(state_dir) if folder.is_folder]
    named = [(StreamId(folder.rpartition("-")[0], state_dir), folder) for folder in folders]
    return sorted((stream for stream, folder in named if str(stream) == folder), key=lambda stream: stream.name)
