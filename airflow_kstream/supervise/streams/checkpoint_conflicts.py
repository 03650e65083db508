"""Other streams that declare the same checkpoint."""

from __future__ import annotations

from collections.abc import Callable

from airflow_kstream.model.errors import Conflict, Denied, InvalidInput
from airflow_kstream.model.generation import Claim, DesiredState, StreamId
from airflow_kstream.model.hdfs_path import plain_path
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.state_folder import StreamFolder


def require_exclusive_checkpoint(session: ClusterSession, spec: StreamSpec, tell: Callable[[str], None]) -> None:
    """Raise Conflict when another stream of this state_dir, not wanted stopped, has one of the spec's checkpoints.

    Its silence proves nothing: it may be between two generations. One whose claim can't be read is told of and keeps
    nobody from submitting: who moves a checkpoint is seen by its movement, too.
    """
    state_dir = session.cluster.state_dir
    ours = {plain_path(path) for path in spec.checkpoints}
    for folder in session.hdfs.list(state_dir):
        other = StreamId(folder.name.rpartition("-")[0], state_dir)
        if not folder.is_folder or str(other) != folder.name or other.name == spec.name:
            continue
        files = StreamFolder(session.hdfs, other)
        names = files.names()
        claim = _readable(files, names, tell)
        shared = ours & {plain_path(path) for path in claim.spec.checkpoints} if claim else set()
        if shared and files.desired(names).state is not DesiredState.STOPPED:
            raise Conflict(f"{shared.pop()} is the checkpoint of stream {other.name}", tried=f"submit {spec.name}")


def _readable(files: StreamFolder, names: frozenset[str], tell: Callable[[str], None]) -> Claim | None:
    try:
        return files.claim(names)
    except (InvalidInput, Denied) as error:
        tell(f"whether that stream shares a checkpoint is not known: {error}")
        return None
