"""The user whose folder a stream's is: the principal that submits it, until a declaration names another one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.errors import Denied, KstreamError
from airflow_kstream.model.generation import StreamId


@contextmanager
def in_own_folder(hdfs: Hdfs, stream: StreamId) -> Iterator[None]:
    """Write in the stream's folder. Raises Denied: with the way out, when the folder is another principal's."""
    try:
        yield
    except Denied as denied:
        raise _refused_by_owner(hdfs, stream, denied) from denied


def _refused_by_owner(hdfs: Hdfs, stream: StreamId, denied: Denied) -> Denied:
    """Return the refusal of a write in the stream's folder, with its way out if the folder is another user's."""
    try:
        owner, user = hdfs.status(stream.folder).owner, hdfs.user()
    except KstreamError:
        return denied
    if not owner or owner == user:
        return denied
    # Without -R: whose a generation's application is, the owner of its claim tells.
    command = f"`hdfs dfs -chown {user} {stream.folder}` (without -R)"
    advice = (
        f"{stream.folder} belongs to {owner}, who submitted the stream so far, and now it is declared to run as "
        f"{user}: HDFS's superuser hands it on with {command}, and {user} must be able to write the checkpoints as well"
    )
    return Denied(
        f"{denied.message.rstrip('.')}; {advice}", tried=denied.tried, server=denied.server, principal=denied.principal
    )
