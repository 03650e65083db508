"""The user whose folder a stream's is: the principal that submits it, until a declaration names another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_kstream.model.clusters.authors import Supervisors
from airflow_kstream.model.clusters.hdfs_path import as_word
from airflow_kstream.model.errors import Denied, KstreamError
from airflow_kstream.model.streams.generation import StreamId

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs


def require_own_folder(
    stream: StreamId, folder: FileStatus, user: str, supervisors: Supervisors, ran: Callable[[], bool]
) -> None:
    """Raises Denied: with the way out, when the folder belongs neither to the stream's user nor to a supervisor.

    What lies in a stranger's folder could change at any time. It was made before the stream's first start, or the
    declaration names another principal since: `ran` tells whether claims that count lie in it. Those are never to be
    deleted, because the generation that runs goes by them.
    """
    if folder.owner in {user, ""} or folder.owner in supervisors:
        return
    if ran():
        why = f"{stream.folder} belongs to {folder.owner}{_former(stream, user)}"
    else:
        why = (
            f"{stream.folder} belongs to {folder.owner}, and the stream runs as {user}. If {folder.owner} submitted it "
            f"so far, HDFS's superuser hands it on with {_hand_over(stream, user)}; if {folder.owner} has nothing to "
            f"do with it, with `hdfs dfs -rm -r {as_word(stream.folder)}` the name is free again"
        )
    raise Denied(why, tried=f"write in {stream.folder}")


def _former(stream: StreamId, user: str) -> str:
    return (
        f", who submitted the stream so far, and now it is declared to run as {user}: HDFS's superuser hands it on "
        f"with {_hand_over(stream, user)}, and {user} must be able to write the checkpoints as well"
    )


def _hand_over(stream: StreamId, user: str) -> str:
    # Without -R: whose a generation's application is, the owner of its claim tells.
    return (
        f"`hdfs dfs -chown {as_word(user)} {as_word(stream.folder)}` (without -R); "
        f"`kstream streams hand-over {stream.name} --to {as_word(user)}` tells what comes before it, and checks "
        "afterwards"
    )


@contextmanager
def in_own_folder(hdfs: Hdfs, stream: StreamId) -> Iterator[None]:
    """Write in the stream's folder. Raises Denied: with the way out, when the folder is another principal's."""

    def advice(_: str, user: str) -> str:
        return _former(stream, user)

    try:
        yield
    except Denied as denied:
        raise refused_by_owner(hdfs, stream.folder, denied, advice) from denied


def refused_by_owner(hdfs: Hdfs, folder: str, denied: Denied, advice: Callable[[str, str], str]) -> Denied:
    """Return the refusal of a write in this folder, with `advice` to its owner and to us if those are two users."""
    try:
        owner, user = hdfs.status(folder).owner, hdfs.user()
    except KstreamError:
        return denied
    if owner in {"", user}:
        return denied
    message = f"{denied.message.rstrip('.')}; {folder} belongs to {owner}{advice(owner, user)}"
    return Denied(message, tried=denied.tried, server=denied.server, principal=denied.principal)
