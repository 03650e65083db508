"""The streams of a state_dir. Only this module lists its folders."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.clusters.authors import AuthoredFiles
from airflow_kstream.model.declared import did_you_mean
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.names import advised_id
from airflow_kstream.model.streams.generation import Claim, Desired, StreamId
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.folder.tagged_applications import TaggedApplications

if TYPE_CHECKING:
    from airflow_kstream.supervise.clusters.session import ClusterSession


@dataclass(frozen=True)
class RegisteredStream:
    """A stream with its newest claim: None if nothing was ever claimed, an error if it can't be read.

    `authored` are the files of its folder with their authors. The error concerns this stream alone; the caller decides
    what it means for the question at hand.
    """

    stream: StreamId
    folder: StreamFolder
    authored: AuthoredFiles
    newest: Claim | KstreamError | None

    @property
    def names(self) -> frozenset[str]:
        """Return the files that count."""
        return frozenset(self.authored.counted)

    def desired(self) -> Desired:
        """Read what is wanted of it. Raises InvalidInput: when that can't be read."""
        listing = self.folder.session.state.last()
        return self.folder.desired(self.folder.newest_order(self.authored, listing))

    @property
    def tagged(self) -> TaggedApplications:
        """Return what tells its applications from those of strangers with its tags."""
        return TaggedApplications(self.stream, self.authored.counted)


def stream_names(session: ClusterSession) -> tuple[str, ...]:
    """Return the streams that have a folder in this state_dir. Raises NotFound: when there is no such state_dir."""
    session.hdfs.status(session.cluster.state_dir)
    return tuple(stream.name for stream in stream_ids(session))


def require_known(session: ClusterSession, name: str, tried: str) -> None:
    """Raises NotFound: when no stream of this name has a folder in the state_dir, and nobody gave an order on it."""
    known = [stream.name for stream in stream_ids(session)]
    if name not in known and not has_order(session, name) and not _is_beyond(session, name):
        raise no_such_stream(session, name, known, tried)


def has_order(session: ClusterSession, name: str) -> bool:
    """Return whether a supervisor gave an order on a stream of this name: before its first claim it has no folder."""
    stream = StreamId(name, session.cluster.state_dir)
    return session.orders.newest(str(stream), (), session.state.last()) is not None


def _is_beyond(session: ClusterSession, name: str) -> bool:
    """Return whether a stream has a folder that is missing in a listing because that was too long."""
    if not session.state.last().cut:
        return False
    try:
        return session.hdfs.status(StreamId(name, session.cluster.state_dir).folder).is_folder
    except NotFound:
        return False


def no_such_stream(session: ClusterSession, name: str, known: Collection[str], tried: str) -> NotFound:
    there = ", ".join(sorted(known)) or "no stream"
    return NotFound(f"{session.cluster.state_dir} has {there}{did_you_mean(advised_id(name), known)}", tried=tried)


def newest_claims(session: ClusterSession) -> Iterator[RegisteredStream]:
    """Yield every stream with its newest claim; nothing if there is no such state_dir."""
    for stream in stream_ids(session):
        yield registered(session, stream)


def registered(session: ClusterSession, stream: StreamId) -> RegisteredStream:
    """Return a stream with its newest claim. Raises nothing: what can't be read is the stream's own trouble."""
    folder, authored = StreamFolder(session, stream), AuthoredFiles()
    try:
        authored = folder.authored()
        return RegisteredStream(stream, folder, authored, folder.claim(frozenset(authored.counted)))
    except KstreamError as error:
        return RegisteredStream(stream, folder, authored, error)


def stream_ids(session: ClusterSession) -> list[StreamId]:
    """Return the streams that have a folder in this state_dir, by name; none if there is no such state_dir."""
    return streams_among(session.state.look().entries, session.cluster.state_dir)


def streams_among(entries: Mapping[str, FileStatus], state_dir: str) -> list[StreamId]:
    """Return the streams whose folders are among these entries of a state_dir, by name.

    A folder with a name that no stream can have is a stranger's: in a command that we print, it could name others.
    """
    folders = [name for name, entry in entries.items() if entry.is_folder and is_stream_name(name.rpartition("-")[0])]
    named = [(StreamId(folder.rpartition("-")[0], state_dir), folder) for folder in folders]
    return sorted((stream for stream, folder in named if str(stream) == folder), key=lambda stream: stream.name)
