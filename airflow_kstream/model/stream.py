"""A stream: a named long-running job that should always be running, declared once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from airflow_kstream.model.durations import written_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.field_errors import explain_error
from airflow_kstream.model.identity import split_principal
from airflow_kstream.model.secrets import SecretRef, Value, require_no_literals
from airflow_kstream.model.stream_policies import (
    STRICT,
    HeartbeatPolicy,
    RestartPolicy,
    StopPolicy,
    SubmitPolicy,
    WatchPolicy,
)

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?")


@dataclass(frozen=True)
class KeytabCredentials:
    """The job logs in by itself and makes its own new tokens (Spark's `--principal/--keytab`)."""

    __pydantic_config__ = STRICT

    principal: str
    keytab: str
    mode: Literal["keytab"] = "keytab"

    renews_itself = True

    def __post_init__(self) -> None:
        split_principal(self.principal)


@dataclass(frozen=True)
class TicketCredentials:
    """The job gets tokens once, from a ticket at submission; `principal` and `keytab` default to the connection's.

    `cache` names an existing ticket cache to copy instead.
    """

    __pydantic_config__ = STRICT

    principal: str | None = None
    keytab: str | None = None
    cache: str | None = None
    mode: Literal["ticket"] = "ticket"

    renews_itself = False

    def __post_init__(self) -> None:
        if self.principal is not None:
            split_principal(self.principal)


@dataclass(frozen=True)
class ProxyUserCredentials:
    """The connection's principal submits for `user`; the job gets tokens once, at submission."""

    __pydantic_config__ = STRICT

    user: str
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

    queue: str | None = None
    driver_memory: str | None = None
    driver_cores: int | None = None
    executor_memory: str | None = None
    executor_cores: int | None = None
    executors: int | None = None
    main_class: str | None = None
    jars: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    py_files: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    environment: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class StreamSpec:
    """The declaration. `checkpoints` are the folders that Structured Streaming queries of this job write.

    It holds no secret, so it can be kept and shown anywhere: `conf` and `deploy.environment` refer to where one is
    kept, as in `spark.ssl.keyPassword: {secret: conn:orders}`.

    Two specs with one `name` on one `state_dir` are one stream.
    """

    __pydantic_config__ = STRICT

    name: str
    credentials: StreamCredentials
    application: str
    checkpoints: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    conf: Mapping[str, Value] = field(default_factory=dict, repr=False)
    deploy: Deploy = Deploy()
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    stop: StopPolicy = field(default_factory=StopPolicy)
    submit: SubmitPolicy = field(default_factory=SubmitPolicy)
    heartbeat: HeartbeatPolicy = field(default_factory=HeartbeatPolicy)
    watch: WatchPolicy = field(default_factory=WatchPolicy)
    on_change: OnChange = OnChange.REPORT

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidInput(f"name is {self.name!r}; allowed are 1 to 50 of a-z, 0-9 and -, no - at the ends")
        for checkpoint in self.checkpoints:
            if not checkpoint.startswith(("/", "hdfs://")):
                raise InvalidInput(f"checkpoints has {checkpoint!r}; allowed are absolute HDFS paths or hdfs:// URIs")

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> StreamSpec:
        """Build from plain data that somebody wrote.

        Raises InvalidInput: it names every wrong field and what is allowed there, and what holds a secret in clear.
        """
        spec = cls.from_persisted(given)
        require_no_literals(spec.conf, spec.deploy.environment, spec.arguments)
        return spec

    @classmethod
    def from_persisted(cls, given: Mapping[str, Any]) -> StreamSpec:
        """Build from plain data that was accepted once. Raises InvalidInput: it can't be read."""
        try:
            return _SPEC.validate_python(dict(given))
        except ValidationError as error:
            raise InvalidInput("; ".join(_complaint(dict(detail)) for detail in error.errors())) from None

    @classmethod
    def from_yaml(cls, text: str) -> StreamSpec:
        """Build from one YAML document."""
        try:
            given = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InvalidInput(f"not YAML: {error}") from None
        if not isinstance(given, dict):
            raise InvalidInput("a stream is a mapping of fields, such as name, credentials and application")
        return cls.from_mapping(given)

    def to_mapping(self) -> dict[str, Any]:
        """Plain data that `from_mapping` takes back; durations as text."""
        return {key: plain(value) for key, value in asdict(self).items()}

    @property
    def plain_conf(self) -> dict[str, str]:
        """The conf without what is kept elsewhere: none of that decides anything here."""
        return {key: value for key, value in self.conf.items() if isinstance(value, str)}


_SPEC: TypeAdapter[StreamSpec] = TypeAdapter(StreamSpec)

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
_TAGS = {*CREDENTIALS, "text", "reference"}
_OWNERS: dict[str, type[Any]] = {"deploy": Deploy, **POLICIES, **CREDENTIALS}


def _complaint(detail: dict[str, Any]) -> str:
    where = tuple(part for part in detail["loc"] if part not in _TAGS)
    name = ".".join(str(part) for part in where)
    if detail["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        allowed = ", ".join(sorted(_allowed(detail["loc"])))
        return f"{name} is not a field of a stream; allowed here: {allowed}"
    if detail["type"] in {"missing", "missing_argument"}:
        return f"{name} is missing"
    return f"{name}: {explain_error(detail)}"


def _allowed(loc: tuple[str | int, ...]) -> list[str]:
    owner = _OWNERS.get(str(loc[-2]), StreamSpec) if len(loc) > 1 else StreamSpec
    return [field.name for field in fields(owner)]


def plain(value: Any) -> Any:
    """Plain data of a field's value."""
    if isinstance(value, timedelta):
        return written_duration(value)
    if isinstance(value, SecretRef):
        return {"secret": value.secret}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.value if isinstance(value, StrEnum) else value
