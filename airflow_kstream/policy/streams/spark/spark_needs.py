"""What a Spark application needs of the cluster, as lower bounds; and whether its settings limit what a batch reads.

With such a limit, a batch that was planned after a moment can lack what had arrived before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from airflow_kstream.model.clusters.queue import Needs, Size
from airflow_kstream.model.streams.spark_conf import QUEUE
from airflow_kstream.model.streams.stream import StreamSpec

# maxOffsetsPerTrigger (Kafka), maxFilesPerTrigger, maxBytesPerTrigger, maxEventsPerTrigger and their like, and
# streaming-max-rows-per-micro-batch (Iceberg); however a job spells an option of its own: --max-offsets-per-trigger.
# A minimum holds back the records below it: a later batch of another source then lacks them.
_LIMIT = re.compile(r"(?:max|min)[-_.]?[a-z]+[-_.]?per[-_.]?(?:trigger|micro[-_.]?batch|batch)", re.IGNORECASE)

_SIZE = re.compile(r"(\d+)([kmgtp]?)b?", re.IGNORECASE)
_MIB = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024**2, "p": 1024**3}
# org.apache.spark.deploy.yarn: ResourceRequestHelper and Client; the factor is 0.1 unless somebody sets it, and the
# least overhead can be set since Spark 4.
_LEAST_OVERHEAD, _OVERHEAD = 384, 0.1
_LABELS = ("spark.yarn.am.nodeLabelExpression", "spark.yarn.executor.nodeLabelExpression")
_PATTERN = set("*?[{")
# A setting's value, from wherever it comes; empty if nothing sets it.
Setting = Callable[[str], str]


def spark_needs(spec: StreamSpec, setting: Setting, queue_of_client: str | None, default_fs: str) -> Needs:
    """Return the needs of the next generation. Files on other filesystems, and patterns, are the client's business."""
    deploy = spec.deploy
    queue = deploy.queue or queue_of_client or setting(QUEUE)
    driver = Size(_memory("driver", deploy.driver_memory, setting), _cores("driver", deploy.driver_cores, setting))
    executor = Size(
        _memory("executor", deploy.executor_memory, setting, _executors_more(spec.application, setting)),
        _cores("executor", deploy.executor_cores, setting),
    )
    named = (spec.application, *deploy.jars, *deploy.py_files, *deploy.files, *deploy.archives)
    return Needs(
        queue=queue or "default",
        declared=bool(queue),
        # With one executor a stream goes on, if slowly, whatever it declares or may ask for later.
        containers={"driver": driver, "executor": executor},
        labelled=any(map(setting, _LABELS)),
        files=tuple(_on(default_fs, named)),
        # PySpark jobs are shipped with the helper that obeys the marker.
        stops_itself=spec.application.endswith(".py"),
    )


def layered_setting(*layers: Mapping[str, str], default: Setting) -> Setting:
    """Return the value of the first layer that sets it, else what `default` says."""

    def setting(key: str) -> str:
        return next((layer[key] for layer in layers if key in layer), None) or default(key)

    return setting


def _memory(role: str, declared: str | None, setting: Setting, more: Iterable[int | None] = ()) -> int | None:
    """Return the MiB of a container: heap, overhead and more. None if one can't be read, which spark-submit tells."""
    heap = _mib(str(declared or setting(f"spark.{role}.memory") or "1g"))
    parts = [heap, None if heap is None else _overhead(role, heap, setting), *more]
    return None if None in parts else sum(part for part in parts if part is not None)


def _overhead(role: str, heap: int, setting: Setting) -> int | None:
    if told := setting(f"spark.{role}.memoryOverhead"):
        return _mib(told)
    least = setting(f"spark.{role}.minMemoryOverhead")
    # A lower factor than usual would make less of it.
    share = 0 if setting(f"spark.{role}.memoryOverheadFactor") else int(_OVERHEAD * heap)
    lowest = _mib(least) if least else _LEAST_OVERHEAD
    return None if lowest is None else max(lowest, share)


def _executors_more(application: str, setting: Setting) -> Iterator[int | None]:
    if application.endswith(".py"):
        yield _mib(setting("spark.executor.pyspark.memory") or "0")
    if setting("spark.memory.offHeap.enabled").lower() == "true":
        # In bytes, unless it has a unit.
        size = setting("spark.memory.offHeap.size") or "0"
        yield _mib(f"{int(size) // 1024}k" if size.isdecimal() else size)


def _cores(role: str, declared: int | None, setting: Setting) -> int | None:
    told = str(declared or setting(f"spark.{role}.cores") or 1).strip()
    return int(told) if told.isdecimal() else None


def _mib(text: str) -> int | None:
    match = _SIZE.fullmatch(text.strip())
    return int(int(match[1]) * _MIB[match[2].lower()]) if match else None


def _on(default_fs: str, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        path = name.partition("#")[0]
        ours = path.startswith((f"{default_fs.rstrip('/')}/", "hdfs:///"))
        if ours and not _PATTERN & set(path):
            yield path


def limited(spec: StreamSpec, *, beside_kafka: bool = False) -> str:
    """Return why a later batch proves nothing of the stream, with the way out; empty if it does.

    Where brokers are declared, offsets prove it of Kafka's topics; `beside_kafka` asks for the query's other sources.
    What the job's own code sets is not known.
    """
    limits = list(dict.fromkeys(_limits(spec)))
    if not limits or (spec.kafka.bootstrap_servers and not beside_kafka):
        return ""
    way_out = "declare `kafka: {bootstrap_servers: ...}`, whose offsets prove it"
    if spec.kafka.bootstrap_servers:
        way_out = "nothing else proves it of what it reads beside Kafka"
    return (
        f"{spec.name} limits what a batch reads ({', '.join(limits)}), so that a batch that is planned after a moment "
        f"can lack what had arrived before it; {way_out}"
    )


def _limits(spec: StreamSpec) -> Iterator[str]:
    settings = {**spec.plain_conf, **spec.deploy.environment}
    places = (*spec.arguments, *(f"{name}={value}" for name, value in settings.items()))
    for text in places:
        # An argument may hold anything: what is shown is the option's name alone.
        yield from _LIMIT.findall(text)
