"""What a Spark application needs of the cluster: lower bounds, from the settings that decide it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from airflow_kstream.model.queue import Needs
from airflow_kstream.model.spark_conf import QUEUE
from airflow_kstream.model.stream import StreamSpec

_SIZE = re.compile(r"(\d+)([kmgtp]?)b?", re.IGNORECASE)
_MIB = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024**2, "p": 1024**3}
# org.apache.spark.deploy.yarn: ResourceRequestHelper and Client; the factor is 0.1 unless somebody sets it.
_LEAST_OVERHEAD, _OVERHEAD = 384, 0.1
_PATTERN = set("*?[{")
# A setting's value, from wherever it comes; empty if nothing sets it.
Setting = Callable[[str], str]


def spark_needs(spec: StreamSpec, setting: Setting, queue_of_client: str | None, default_fs: str) -> Needs:
    """Return the needs of the next generation. Files on other filesystems, and patterns, are the client's business."""
    deploy = spec.deploy
    queue = deploy.queue or queue_of_client or setting(QUEUE)
    sizes = {
        "driver": _container("driver", deploy.driver_memory, setting),
        "executor": _container("executor", deploy.executor_memory, setting),
    }
    named = (spec.application, *deploy.jars, *deploy.py_files, *deploy.files, *deploy.archives)
    return Needs(
        queue=queue or "default",
        declared=bool(queue),
        containers={name: size for name, size in sizes.items() if size is not None},
        files=tuple(_on(default_fs, named)),
    )


def layered_setting(*layers: Mapping[str, str], default: Setting) -> Setting:
    """Return the value of the first layer that sets it, else what `default` says."""

    def setting(key: str) -> str:
        return next((layer[key] for layer in layers if key in layer), None) or default(key)

    return setting


def _container(role: str, declared: str | None, setting: Setting) -> int | None:
    """Return the MiB of a container: heap and overhead. None if a size can't be read: spark-submit says so itself."""
    heap = _mib(str(declared or setting(f"spark.{role}.memory") or "1g"))
    told = setting(f"spark.{role}.memoryOverhead")
    overhead = _mib(told) if told else max(_LEAST_OVERHEAD, int(_OVERHEAD * heap)) if heap else None
    # A lower factor than usual would make less of it.
    if setting(f"spark.{role}.memoryOverheadFactor") and not told:
        overhead = _LEAST_OVERHEAD
    return heap + overhead if heap and overhead is not None else None


def _mib(text: str) -> int | None:
    match = _SIZE.fullmatch(text.strip())
    return int(int(match[1]) * _MIB[match[2].lower()]) if match else None


def _on(default_fs: str, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        path = name.partition("#")[0]
        ours = path.startswith((f"{default_fs.rstrip('/')}/", "hdfs:///"))
        if ours and not _PATTERN & set(path):
            yield path
