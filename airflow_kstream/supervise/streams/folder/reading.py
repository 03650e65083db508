"""Reading a file of a stream's folder: one that was listed a moment ago, and one that nobody can understand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
from airflow_kstream.model.errors import InvalidInput, NotFound, Unavailable
from airflow_kstream.model.streams.generation import StreamId

T = TypeVar("T")

_NOTHING_IS_DONE = "nothing is done for this stream"


def understood(
    hdfs: Hdfs, stream: StreamId, path: str, read: Callable[[str, FileStatus], T], without: str = _NOTHING_IS_DONE
) -> T:
    """Return what `read` makes of a file's text, and of its author and time by the NameNode.

    `without` says what it means that this file can't be read.

    Raises InvalidInput: with the way out, when it can make nothing of them. Raises NotFound: when there is no file.
    """
    try:
        return read(hdfs.read(path), hdfs.status(path))
    except InvalidInput as error:
        why = error.message
    advice = (
        f"{without} until somebody has repaired that file, or removed it with `hdfs dfs -rm -r {path}`: what "
        "is known without it then counts"
    )
    raise InvalidInput(f"{path} can't be understood: {why}; {advice}", tried=f"look at stream {stream.name}")


def just_listed(read: Callable[[], T]) -> T:
    """Read a file whose name was listed. Raises Unavailable: when newer ones have superseded it since."""
    try:
        return read()
    except NotFound as gone:
        message = f"{gone.message}: it was deleted after it was listed"
        raise Unavailable(message, tried=gone.tried, server=gone.server, principal=gone.principal) from gone
