"""A stream: a named long-running job that should always be running, declared once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from airflow_kstream.model.airflow_options import AirflowOptions, NotifyPolicy, require_notifier, require_notifiers
from airflow_kstream.model.clusters.hdfs_path import is_below, plain_path
from airflow_kstream.model.declared import IF_MISSING, read, written
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import (
    NO_CHECKPOINT,
    STRICT,
    ApplicationFile,
    AppName,
    Argument,
    Checkpoints,
    HdfsPath,
    JarFile,
    LocalPath,
    Principal,
    StreamName,
    TicketCacheName,
    UserName,
)
from airflow_kstream.model.secrets import require_no_literals
from airflow_kstream.model.streams.deploy import INSTEAD, Deploy, FlinkDeploy, Savepoints
from airflow_kstream.model.streams.flink_conf import FlinkConf, files_in_flink_conf
from airflow_kstream.model.streams.spark_conf import SparkConf, files_in_conf
from airflow_kstream.model.streams.stream_policies import (
    FailurePolicy,
    HeartbeatPolicy,
    KafkaPolicy,
    RefreshPolicy,
    RestartPolicy,
    StopPolicy,
    SubmitPolicy,
    WatchPolicy,
)
from airflow_kstream.model.yaml_text import read_mapping

_CHECKPOINTS_ARE_MISSING = (
    f"give the folders on HDFS that the job's queries write, or {NO_CHECKPOINT!r} for a job that writes none: "
    "then nothing shows its progress, or that somebody else writes"
)

# Of a FileSink (OutputStreamBasedPartFileWriter), whatever the prefix of its part files is.
_PART_FILE = ".*.inprogress.*"
# The folder of the checkpoints and, in it, each job's, whose name is its id.
_OF_JOBS = re.compile(r"$|/[0-9a-f]{32}(/|$)")


@dataclass(frozen=True)
class KeytabCredentials:
    """A keytab that the job has, `mode: keytab`: it logs in and gets new tokens by itself (Spark's
    `--principal/--keytab`).

    Without `keytab` it is the connection's own, which may lie in the connection as base64; `principal` is then the
    connection's, too.

    Example::

        KeytabCredentials("orders@EXAMPLE.COM", keytab="/etc/keytabs/orders.keytab")
    """

    __pydantic_config__ = STRICT

    principal: Principal
    keytab: LocalPath | None = None
    mode: Literal["keytab"] = "keytab"

    renews_itself = True
    refresh = False


@dataclass(frozen=True)
class TicketCredentials:
    """A ticket at submission, `mode: ticket`: the job gets tokens once.

    `principal` and `keytab` default to the connection's. `cache` names an existing ticket cache to copy instead. With
    `refresh` its tokens are replaced from outside while it runs, so that they never end.

    Example::

        TicketCredentials(principal="orders@EXAMPLE.COM", keytab="/etc/keytabs/orders.keytab", refresh=True)
    """

    __pydantic_config__ = STRICT

    principal: Principal | None = None
    keytab: LocalPath | None = None
    cache: TicketCacheName | None = None
    refresh: bool = False
    mode: Literal["ticket"] = "ticket"

    renews_itself = False


@dataclass(frozen=True)
class ProxyUserCredentials:
    """A submission for `user` by the connection's principal, `mode: proxy-user`: the job gets tokens once.

    With `refresh` they are replaced from outside while it runs, so that they never end.

    Example::

        ProxyUserCredentials("orders", refresh=True)
    """

    __pydantic_config__ = STRICT

    user: UserName
    refresh: bool = False
    mode: Literal["proxy-user"] = "proxy-user"

    renews_itself = False


StreamCredentials = Annotated[KeytabCredentials | TicketCredentials | ProxyUserCredentials, Field(discriminator="mode")]


class EngineName(StrEnum):
    """The program that runs a stream."""

    SPARK = "spark"
    FLINK = "flink"


class OnChange(StrEnum):
    """The reaction to a declared spec that differs from the running one.

    Example::

        StreamSpec("orders", TicketCredentials(), "/opt/jobs/orders.py", ("/data/orders",), on_change=OnChange.RESTART)
    """

    REPORT = "report"
    RESTART = "restart"


@dataclass(frozen=True)
class StreamSpec:
    """The declaration of a stream, in Python or in YAML.

    Example::

        spec = StreamSpec(
            name="orders",
            credentials=TicketCredentials(),
            application="hdfs:///apps/orders.py",
            checkpoints=("/checkpoints/orders",),
            conf={"spark.ssl.keyPassword": SecretRef("conn:orders")},
        )
        same = StreamSpec.from_yaml('''
        name: orders
        credentials: {mode: ticket}
        application: hdfs:///apps/orders.py
        checkpoints: [/checkpoints/orders]
        conf: {spark.ssl.keyPassword: {secret: "conn:orders"}}
        ''')

    `checkpoints` are the folders that the job's Structured Streaming queries write; `none` in YAML, or an empty tuple,
    says that it writes none, so that its progress is not watched and no other writer is noticed. `conf` are settings of
    Spark's. It and `deploy.environment` refer to secrets and contain none, so that a spec can be kept and shown
    anywhere. Two specs with the same `name` on the same `state_dir` are one stream; its `app_name` is what YARN, pages
    and messages show in place of that. `credentials` are how its job authenticates, by their `mode`. `application` is a
    file on HDFS or, as a path without a scheme, on the host that submits, and `arguments` are its own. `airflow` is for
    the shipped DAGs alone: in a DAG of your own, give the operator Airflow's own arguments.

    The constructor checks nothing, because a claim may hold what only an earlier version accepted. `checked` does.
    """

    __pydantic_config__ = STRICT
    __instead__ = INSTEAD

    name: StreamName
    credentials: StreamCredentials
    application: ApplicationFile
    checkpoints: Checkpoints = field(metadata={IF_MISSING: _CHECKPOINTS_ARE_MISSING})
    arguments: tuple[Argument, ...] = ()
    conf: SparkConf = field(default_factory=dict, repr=False)
    deploy: Deploy = field(default_factory=Deploy)
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    refresh: RefreshPolicy = field(default_factory=RefreshPolicy)
    failure: FailurePolicy = field(default_factory=FailurePolicy)
    stop: StopPolicy = field(default_factory=StopPolicy)
    submit: SubmitPolicy = field(default_factory=SubmitPolicy)
    heartbeat: HeartbeatPolicy = field(default_factory=HeartbeatPolicy)
    watch: WatchPolicy = field(default_factory=WatchPolicy)
    notify: NotifyPolicy = field(default_factory=NotifyPolicy)
    kafka: KafkaPolicy = field(default_factory=KafkaPolicy)
    on_change: OnChange = OnChange.REPORT
    airflow: AirflowOptions = field(default_factory=AirflowOptions)
    app_name: AppName | None = None
    engine: EngineName = EngineName.SPARK

    @classmethod
    def from_mapping(cls, declaration: Mapping[str, Any]) -> StreamSpec:
        """Build a spec of the engine that it names from plain data that a person wrote.

        Raises InvalidInput: when a field is wrong or holds a secret in clear. It names all such fields and the values
        allowed.
        """
        spec = read(spec_of(declaration.get("engine")), declaration)
        _require_runnable(spec)
        require_no_literals(spec.conf, spec.deploy.environment, spec.arguments)
        require_notifier(spec.notify, "notify.")
        require_notifiers(spec.airflow)
        return spec

    @classmethod
    def from_yaml(cls, text: str) -> StreamSpec:
        """Build a spec from one YAML document. Raises InvalidInput: as `from_mapping`, or when it is not YAML."""
        return cls.from_mapping(read_mapping(text))

    def checked(self) -> StreamSpec:
        """Return this spec as `from_mapping` reads it.

        Raises InvalidInput: as `from_mapping`, in the same words.
        """
        return StreamSpec.from_mapping(self.to_mapping())

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data that `from_mapping` accepts; durations as text."""
        return dict(written(self))

    @property
    def takes_tokens(self) -> bool:
        """Return whether its job takes fresh tokens while it runs: the driver's part is Python, and Flink's a jar."""
        return self.engine is EngineName.FLINK or self.application.endswith(".py")

    @property
    def part_files(self) -> tuple[tuple[str, str], ...]:
        """Return the folders in which its job opens part files, each with the pattern of their names."""
        return ()

    @property
    def own_folders(self) -> Mapping[str, str]:
        """Return the folders on HDFS beside its checkpoints that hold its states, by the names of their fields."""
        return {}

    @property
    def files_in_conf(self) -> tuple[str, ...]:
        """Return the names of files that the client ships or loads by the conf, and of what viewfs mounts."""
        return tuple(files_in_conf(self.plain_conf))

    @property
    def plain_conf(self) -> dict[str, str]:
        """Return the conf without references to secrets: no decision here depends on those."""
        return {key: value for key, value in self.conf.items() if isinstance(value, str)}


@dataclass(frozen=True)
class FlinkStreamSpec(StreamSpec):
    """The declaration of a stream that Flink runs, in application mode on YARN.

    `checkpoints` is one folder, below which each generation has one of its own, named by its job's id. `outputs` are
    folders that the job's file sinks write, and nobody else all the time: a part file that stays open there is this
    stream's, and they must be silent before a generation counts as dead that no NodeManager tells of. `conf` are
    settings of Flink's. `application` is a jar on HDFS or, as a path without a scheme, on the host that submits.
    PyFlink and SQL jobs are refused, and so is Flink's own high availability: attempts and recovery are the
    supervisor's.

    Example::

        spec = FlinkStreamSpec(
            name="orders",
            credentials=KeytabCredentials("orders@EXAMPLE.COM", keytab="/etc/keytabs/orders.keytab"),
            application="hdfs:///apps/orders.jar",
            checkpoints=("/flink/orders",),
            conf={"execution.checkpointing.interval": "30s"},
            deploy=FlinkDeploy(parallelism=4, slots=2, taskmanager_memory="4g"),
            outputs=("/data/orders",),
        )
    """

    application: JarFile
    conf: FlinkConf = field(default_factory=dict, repr=False)
    # Only an engine's own rooms read more of `deploy` than `ClientOptions` has.
    deploy: FlinkDeploy = field(default_factory=FlinkDeploy)  # type: ignore[assignment]
    engine: EngineName = EngineName.FLINK
    savepoints: Savepoints = field(default_factory=Savepoints)
    outputs: tuple[HdfsPath, ...] = ()

    @property
    def part_files(self) -> tuple[tuple[str, str], ...]:
        return tuple((path, _PART_FILE) for path in self.outputs)

    @property
    def own_folders(self) -> Mapping[str, str]:
        return {"savepoints.folder": self.savepoints.folder} if self.savepoints.folder else {}

    @property
    def files_in_conf(self) -> tuple[str, ...]:
        return (*files_in_flink_conf(self.plain_conf), *super().files_in_conf)


def _require_runnable(spec: StreamSpec) -> None:
    if spec.restart.for_new_taskmanagers and not isinstance(spec, FlinkStreamSpec):
        raise InvalidInput(f"restart.for_new_taskmanagers: remove it; it is for engine {EngineName.FLINK} alone")
    if isinstance(spec, FlinkStreamSpec) and (faults := tuple(_flink_faults(spec))):
        raise InvalidInput("; ".join(faults), faults=list(faults))


def _flink_faults(spec: FlinkStreamSpec) -> Iterator[str]:
    if spec.engine is not EngineName.FLINK:
        yield f"engine is {spec.engine}; allowed is {EngineName.FLINK}"
    if len(spec.checkpoints) != 1:
        yield "checkpoints: allowed is one folder, below which each generation has one of its own"
    yield from _misplaced(spec)
    if spec.kafka != KafkaPolicy():
        yield "kafka: remove it; checkpoints alone show the progress of a Flink job"


def _misplaced(spec: FlinkStreamSpec) -> Iterator[str]:
    """Yield what would be deleted with the states of old generations, or mistaken for one."""
    saved = spec.savepoints.folder and plain_path(spec.savepoints.folder)
    if saved == "/":
        yield "savepoints.folder is /; allowed is a folder: the root holds everything"
    for checkpoint in map(plain_path, spec.checkpoints):
        if saved and is_below(checkpoint, saved) and _OF_JOBS.match(saved.removeprefix(checkpoint)):
            yield (
                f"savepoints.folder is {saved}; allowed is a folder apart from those of jobs in {checkpoint}: those "
                "are closed and deleted with their checkpoints"
            )
        for output in spec.outputs:
            if is_below(checkpoint, plain_path(output)):
                yield f"outputs: {output} lies in the checkpoints {checkpoint}, which are deleted as they grow old"


# By the engine's name.
SPECS: dict[EngineName, type[StreamSpec]] = {EngineName.SPARK: StreamSpec, EngineName.FLINK: FlinkStreamSpec}


def spec_of(engine: object) -> type[StreamSpec]:
    """Return the kind of declaration for an engine's name; for what is none, the one whose reader refuses it."""
    return next((spec for name, spec in SPECS.items() if name == engine), StreamSpec)


def require_named_after(name: object, stem: str) -> None:
    """Check the name in a file of a folder of declarations. Raises InvalidInput: when it is not the file's own."""
    if name != stem:
        raise InvalidInput(f"it declares {name!r}; the file's name is the stream's name")


# By their mode.
CREDENTIALS: dict[str, type[Any]] = {
    "keytab": KeytabCredentials,
    "ticket": TicketCredentials,
    "proxy-user": ProxyUserCredentials,
}
# These concern the supervisor and not the job: each field may be missing, or differ from the running spec.
POLICIES: dict[str, type[Any]] = {
    "restart": RestartPolicy,
    "refresh": RefreshPolicy,
    "failure": FailurePolicy,
    "stop": StopPolicy,
    "submit": SubmitPolicy,
    "heartbeat": HeartbeatPolicy,
    "watch": WatchPolicy,
    "notify": NotifyPolicy,
    "kafka": KafkaPolicy,
}
