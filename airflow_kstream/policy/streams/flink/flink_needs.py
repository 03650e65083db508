"""What a Flink application needs of the cluster: lower bounds, from the settings that decide it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from math import ceil

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.queue import Needs, Size
from airflow_kstream.model.streams.flink_conf import (
    JOB_MANAGER,
    PARALLELISM,
    QUEUE,
    SLOTS,
    TASK_MANAGER,
    flink_duration,
)
from airflow_kstream.model.streams.stream import FlinkStreamSpec
from airflow_kstream.policy.streams.flink.flink_submission import on_hdfs

# Flink's own words for units of memory (MemorySize), and YARN's default for one container.
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:b|i?bytes?|ibibytes?)?", re.IGNORECASE)
_MIB = {"": 1 / 1024**2, "k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}


def flink_needs(cluster: Cluster, spec: FlinkStreamSpec) -> Needs:
    """Return the needs of the next generation: with fewer slots than its parallelism, no task of it runs."""
    deploy, conf = spec.deploy, {**cluster.flink_conf, **spec.plain_conf}
    queue = deploy.queue or conf.get(QUEUE, "")
    job_manager = Size(_mib(deploy.jobmanager_memory or conf.get(JOB_MANAGER, "")))
    task_manager = Size(_mib(deploy.taskmanager_memory or conf.get(TASK_MANAGER, "")))
    number = ceil(_number(deploy.parallelism, conf, PARALLELISM) / _number(deploy.slots, conf, SLOTS))
    return Needs(
        queue=queue or "default",
        declared=bool(queue),
        containers={"JobManager": job_manager, "TaskManager": task_manager},
        numbers={"TaskManager": number} if number > 1 else {},
        files=tuple(
            _on(cluster.default_fs, (spec.application, *deploy.shipped, *on_hdfs(deploy.lib_dirs, cluster.default_fs)))
        ),
        # YarnClusterDescriptor: "exceeds the maximum number of virtual cores 0 available in the Yarn Cluster".
        nodes=True,
    )


def heartbeat_timeout(conf: Mapping[str, str]) -> timedelta:
    """Return how long a TaskManager goes on without its JobManager: 50 s by Flink's default (heartbeat.timeout)."""
    return flink_duration(conf.get("heartbeat.timeout", "")) or timedelta(seconds=50)


def _number(declared: int | None, conf: Mapping[str, str], key: str) -> int:
    told = conf.get(key, "1")
    return declared or (int(told) if told.isdecimal() and int(told) else 1)


def _mib(text: str) -> int | None:
    match = _SIZE.fullmatch(text.strip())
    return int(int(match[1]) * _MIB[match[2].lower()]) if match else None


def _on(default_fs: str, names: tuple[str, ...]) -> Iterator[str]:
    ours = (f"{default_fs.rstrip('/')}/", "hdfs:///")
    yield from (name for name in names if name.startswith(ours))
