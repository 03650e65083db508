"""Checks of a stream's declaration before anything is done for it: by itself, and against its cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.spark_conf import misplaced_staging
from airflow_kstream.model.streams.stream import StreamSpec

_CHECKPOINT = re.compile(r"(?P<filesystem>hdfs://[^/]*)?(?P<path>/.*)")


def require_submittable(spec: StreamSpec, cluster: Cluster) -> None:
    """Check the declaration as if it had just been read: one that was built in Python never was.

    Raises InvalidInput: when `StreamSpec.from_mapping` would refuse it, or as `require_watchable`, or when the staging
    folder is on another filesystem, or a folder of its states and `state_dir` lie in one another.
    """
    spec.checked()
    require_watchable(spec, cluster)
    for name, folder in spec.own_folders.items():
        if _overlap(folder, cluster.state_dir):
            raise InvalidInput(
                f"{name}: {folder} and the connection's state_dir {cluster.state_dir} lie in one another",
                tried=f"check {spec.name} against {cluster.name}",
            )
    for error in misplaced_staging(spec.conf, cluster):
        raise InvalidInput(error, tried=f"check {spec.name} against {cluster.name}")


def require_watchable(spec: StreamSpec, cluster: Cluster) -> None:
    """Check the checkpoints against the cluster's filesystem and `state_dir`, before anything is touched.

    Raises InvalidInput: when one is on another filesystem, where silence and heartbeat would look at a wrong path; when
    one is, contains or lies in `state_dir`, which `cleanup` of either would destroy; when one is declared twice.
    """
    if errors := "; ".join(_errors(spec, cluster)):
        raise InvalidInput(f"checkpoints: {errors}", tried=f"check {spec.name} against {cluster.name}")


def is_watchable(checkpoint: str, cluster: Cluster) -> bool:
    """Return True if it is on the filesystem whose NameNodes we ask. A claim may name another, which was ours.

    Its path without the filesystem would be a folder of ours that has nothing to do with it.
    """
    return _split(checkpoint)[0] in {"", "hdfs://", cluster.default_fs.rstrip("/")}


def _errors(spec: StreamSpec, cluster: Cluster) -> Iterator[str]:
    earlier: dict[str, str] = {}
    for checkpoint in spec.checkpoints:
        filesystem, path = _split(checkpoint)
        if not is_watchable(checkpoint, cluster):
            yield f"{checkpoint} lies on {filesystem}; allowed is {cluster.default_fs}, which {cluster.name} watches"
            continue
        if _overlap(path, cluster.state_dir):
            yield f"{checkpoint} and the connection's state_dir {cluster.state_dir} lie in one another"
        yield from (
            f"{checkpoint} and {other} lie in one another"
            for other_path, other in earlier.items()
            if _overlap(path, other_path)
        )
        earlier[path] = checkpoint


def _split(checkpoint: str) -> tuple[str, str]:
    match = _CHECKPOINT.fullmatch(checkpoint)
    return (match["filesystem"] or "", match["path"].rstrip("/") or "/") if match else ("", checkpoint)


def _overlap(one: str, other: str) -> bool:
    shorter, longer = sorted((one.rstrip("/") + "/", other.rstrip("/") + "/"), key=len)
    return longer.startswith(shorter)
