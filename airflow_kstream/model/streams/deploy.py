"""The options of each engine's client: its queue, its resources, and what it ships beside the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from airflow_kstream.model.fields import (
    STRICT,
    ConfValue,
    Count,
    FewGenerations,
    FileName,
    HdfsFolder,
    HdfsPath,
    Memory,
    PortRange,
    SparkBinary,
    VariableName,
    Word,
)

# Options of spark-submit whose confs do: one place for a setting, which `allow` and a claim's fingerprint know.
IN_CONF = {
    "packages": "use conf spark.jars.packages: the worker downloads them for each submission, so that `local_files` of "
    "the connection's `allow` has to name them",
    "repositories": "use conf spark.jars.repositories: the worker downloads from there, so that `local_files` of the "
    "connection's `allow` has to name them",
    "exclude_packages": "use conf spark.jars.excludes",
    "driver_class_path": "use conf spark.driver.extraClassPath: it is a path on the cluster's nodes",
    "properties_file": "write its lines under conf, and its secrets as {secret: ...}: no claim has what a file of the "
    "worker holds, and a restart would not know it",
}
_FLINKS_OWN = (
    *("flink", "parallelism", "slots", "jobmanager_memory", "taskmanager_memory", "lib_dirs", "rest_ports"),
    *("savepoints", "outputs"),
)
INSTEAD = {**IN_CONF, **dict.fromkeys(_FLINKS_OWN, "it is a field of engine: flink")}


@dataclass(frozen=True)
class ClientOptions:
    """The options that the client of every engine has; unset means the connection's or the engine's own default."""

    __pydantic_config__ = STRICT

    queue: Word | None = None
    main_class: Word | None = None
    jars: tuple[FileName, ...] = ()
    files: tuple[FileName, ...] = ()
    environment: Mapping[VariableName, ConfValue] = field(default_factory=dict)

    @property
    def shipped(self) -> tuple[str, ...]:
        """Return the names of the files that the client ships beside the application."""
        return (*self.files, *self.jars)


@dataclass(frozen=True)
class Deploy(ClientOptions):
    """The options of Spark's client; unset means the connection's or Spark's own default.

    `queue` is YARN's. `driver_memory`, `driver_cores`, `executor_memory` and `executor_cores` are the sizes of the
    driver and of each executor, and `executors` is how many of those there are. `main_class` is the one that a jar
    begins with. `jars`, `files`, `py_files` and `archives` go with the job, as by the options of `spark-submit` with
    these names. `environment` has variables for the driver and the executors, never for the client. `spark_submit` is
    the client's name: on a host with several Sparks, each stream has its own.

    Example::

        Deploy(queue="streams", executors=4, executor_memory="4g", environment={"TZ": "UTC"})
    """

    __pydantic_config__ = STRICT
    __instead__ = INSTEAD

    driver_memory: Memory | None = None
    driver_cores: Count | None = None
    executor_memory: Memory | None = None
    executor_cores: Count | None = None
    executors: Count | None = None
    py_files: tuple[FileName, ...] = ()
    archives: tuple[FileName, ...] = ()
    spark_submit: SparkBinary | None = None

    @property
    def shipped(self) -> tuple[str, ...]:
        return (*self.files, *self.jars, *self.py_files, *self.archives)


@dataclass(frozen=True)
class FlinkDeploy(ClientOptions):
    """The options of Flink's client; unset means the connection's or Flink's own default.

    `flink` names one of the connection's `flink_homes`, and may be left out where there is only one. `queue` is YARN's.
    `parallelism` is the job's, and `slots` is how much of that each TaskManager takes. `jobmanager_memory` and
    `taskmanager_memory` are the sizes of their whole processes. `main_class` is the one that the jar begins with.
    `jars` and `files` go with the job, and `environment` has variables for its processes, never for the client.
    `lib_dirs` are folders on HDFS that hold Flink's own jars; where everybody may read them, no container needs a token
    for them.
    `rest_ports` is the range from which the JobManager takes its port, for a firewall to open: a stop then doesn't
    depend on its marker alone.

    Example::

        FlinkDeploy(flink="1.20", queue="streams", parallelism=4, slots=2, taskmanager_memory="4g")
    """

    __pydantic_config__ = STRICT

    flink: Word | None = None
    parallelism: Count | None = None
    slots: Count | None = None
    jobmanager_memory: Memory | None = None
    taskmanager_memory: Memory | None = None
    lib_dirs: tuple[HdfsFolder, ...] = ()
    rest_ports: PortRange | None = None


class SavepointFormat(StrEnum):
    """The form of a savepoint: `native` is quick, `canonical` lets the next job have another state backend."""

    NATIVE = "native"
    CANONICAL = "canonical"


@dataclass(frozen=True)
class Savepoints:
    """The savepoints of planned stops. They lie in `folder`, by default in that of the checkpoints; the newest `keep`
    of them stay, and `format` is the form of those that are made on the JobManager's port: a stop by marker makes
    native ones.

    Example::

        Savepoints(folder="/flink/orders-savepoints", keep=5)
    """

    __pydantic_config__ = STRICT

    folder: HdfsPath | None = None
    format: SavepointFormat = SavepointFormat.NATIVE
    keep: FewGenerations = 3
