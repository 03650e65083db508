"""Other streams that declare the same checkpoint."""

from __future__ import annotations

from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.generation import StreamId, Wish
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.supervise.access import Access
from airflow_kstream.supervise.folder import StreamFolder


def refuse_a_shared_checkpoint(access: Access, spec: StreamSpec) -> None:
    """Raise Conflict when another stream of this state_dir, not wanted stopped, has one of the spec's checkpoints.

    Its silence proves nothing: it may be between two generations.
    """
    state_dir = access.cluster.state_dir
    ours = {_plain(path) for path in spec.checkpoints}
    for folder in access.hdfs.list(state_dir):
        other = StreamId(folder.name.rpartition("-")[0], state_dir)
        if not folder.is_folder or str(other) != folder.name or other.name == spec.name:
            continue
        files = StreamFolder(access.hdfs, other)
        names = files.names()
        claim = files.claim(names)
        shared = ours & {_plain(path) for path in claim.spec.checkpoints} if claim else set()
        if shared and files.desired(names).wish is not Wish.STOPPED:
            raise Conflict(f"{shared.pop()} is the checkpoint of stream {other.name}", tried=f"submit {spec.name}")


def _plain(path: str) -> str:
    return "/" + path.split("/", 3)[3].rstrip("/") if path.startswith("hdfs://") else path.rstrip("/")
