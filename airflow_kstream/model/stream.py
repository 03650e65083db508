"""A stream: a named long-running job that should always be running, declared once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from airflow_kstream.model.declared import read, read_persisted, written
from airflow_kstream.model.fields import (
    ApplicationFile,
    Argument,
    Checkpoints,
    Count,
    FileName,
    LocalPath,
    Memory,
    Principal,
    StreamName,
    TicketCacheName,
    UserName,
    VariableName,
    Word,
)
from airflow_kstream.model.secrets import Value, require_no_literals
from airflow_kstream.model.spark_conf import SparkConf
from airflow_kstream.model.stream_policies import (
    STRICT,
    HeartbeatPolicy,
    RestartPolicy,
    StopPolicy,
    SubmitPolicy,
    WatchPolicy,
)
from airflow_kstream.model.yaml_text import read_mapping


@dataclass(frozen=True)
class KeytabCredentials:
    """The job logs in by itself and makes its own new tokens (Spark's `--principal/--keytab`)."""

    __pydantic_config__ = STRICT

    principal: Principal
    keytab: LocalPath
    mode: Literal["keytab"] = "keytab"

    renews_itself = True


@dataclass(frozen=True)
class TicketCredentials:
    """The job gets tokens once, from a ticket at submission; `principal` and `keytab` default to the connection's.

    `cache` names an existing ticket cache to copy instead.
    """

    __pydantic_config__ = STRICT

    principal: Principal | None = None
    keytab: LocalPath | None = None
    cache: TicketCacheName | None = None
    mode: Literal["ticket"] = "ticket"

    renews_itself = False


@dataclass(frozen=True)
class ProxyUserCredentials:
    """The connection's principal submits for `user`; the job gets tokens once, at submission."""

    __pydantic_config__ = STRICT

    user: UserName
    mode: Literal["proxy-user"] = "proxy-user"

    renews_itself = False


StreamCredentials = Annotated[KeytabCredentials | TicketCredentials | ProxyUserCredentials, Field(discriminator="mode")]


class OnChange(StrEnum):
    """What to do when the declared spec differs from the one that runs."""

    REPORT = "report"
    RESTART = "restart"


@dataclass(frozen=True)
class Deploy:
    """What `spark-submit` takes beside the application; unset means the connection's or Spark's own default."""

    __pydantic_config__ = STRICT

    queue: Word | None = None
    driver_memory: Memory | None = None
    driver_cores: Count | None = None
    executor_memory: Memory | None = None
    executor_cores: Count | None = None
    executors: Count | None = None
    main_class: Word | None = None
    jars: tuple[FileName, ...] = ()
    files: tuple[FileName, ...] = ()
    py_files: tuple[FileName, ...] = ()
    archives: tuple[FileName, ...] = ()
    environment: Mapping[VariableName, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class StreamSpec:
    """The declaration. `checkpoints` are the folders that Structured Streaming queries of this job write.

    It holds no secret, so it can be kept and shown anywhere: `conf` and `deploy.environment` refer to where one is
    kept, as in `spark.ssl.keyPassword: {secret: conn:orders}`.

    Two specs with one `name` on one `state_dir` are one stream.
    """

    __pydantic_config__ = STRICT

    name: StreamName
    credentials: StreamCredentials
    application: ApplicationFile
    checkpoints: Checkpoints = ()
    arguments: tuple[Argument, ...] = ()
    conf: SparkConf = field(default_factory=dict, repr=False)
    deploy: Deploy = Deploy()
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    stop: StopPolicy = field(default_factory=StopPolicy)
    submit: SubmitPolicy = field(default_factory=SubmitPolicy)
    heartbeat: HeartbeatPolicy = field(default_factory=HeartbeatPolicy)
    watch: WatchPolicy = field(default_factory=WatchPolicy)
    on_change: OnChange = OnChange.REPORT

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> StreamSpec:
        """Build from plain data that somebody wrote.

        Raises InvalidInput: it names every wrong field and what is allowed there, and what holds a secret in clear.
        """
        spec = read(StreamSpec, given)
        require_no_literals(spec.conf, spec.deploy.environment, spec.arguments)
        return spec

    @classmethod
    def from_persisted(cls, given: Mapping[str, Any]) -> StreamSpec:
        """Build from plain data that was accepted once. Raises InvalidInput: it can't be read."""
        return read_persisted(StreamSpec, given)

    @classmethod
    def from_yaml(cls, text: str) -> StreamSpec:
        """Build from one YAML document. Raises InvalidInput: also for what is no YAML."""
        return cls.from_mapping(read_mapping(text))

    def to_mapping(self) -> dict[str, Any]:
        """Plain data that `from_mapping` takes back; durations as text."""
        return dict(written(self))

    @property
    def plain_conf(self) -> dict[str, str]:
        """The conf without what is kept elsewhere: none of that decides anything here."""
        return {key: value for key, value in self.conf.items() if isinstance(value, str)}


# By their mode.
CREDENTIALS: dict[str, type[Any]] = {
    "keytab": KeytabCredentials,
    "ticket": TicketCredentials,
    "proxy-user": ProxyUserCredentials,
}
# What rules the supervisor and not the job: each field may be missing, or differ from what runs.
POLICIES: dict[str, type[Any]] = {
    "restart": RestartPolicy,
    "stop": StopPolicy,
    "submit": SubmitPolicy,
    "heartbeat": HeartbeatPolicy,
    "watch": WatchPolicy,
}
