"""A stream: a named long-running job that should always be running, declared once."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from airflow_kstream.model.durations import Duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.field_errors import explain_error
from airflow_kstream.model.identity import split_principal
from airflow_kstream.model.secrets import masked

_STRICT = ConfigDict(extra="forbid")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?")


@dataclass(frozen=True)
class KeytabCredentials:
    """The job logs in by itself and makes its own new tokens (Spark's `--principal/--keytab`)."""

    __pydantic_config__ = _STRICT

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

    __pydantic_config__ = _STRICT

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

    __pydantic_config__ = _STRICT

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

    __pydantic_config__ = _STRICT

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
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RestartPolicy:
    """Every duration and ratio of watching and restarting. The defaults suit a cluster with 7-day tokens.

    A restart is planned at `plan_ratio` of a generation's life, earlier by up to `jitter_ratio` of it so that a
    fleet doesn't restart at once; from `force_margin` before the horizon it happens whatever preflight says.
    """

    __pydantic_config__ = _STRICT

    plan_ratio: float = 0.75
    jitter_ratio: float = 0.10
    force_margin: Duration = timedelta(hours=1)
    max_age: Duration | None = None
    marker_grace: Duration = timedelta(minutes=3)
    quiescent_wait: Duration = timedelta(minutes=2)
    signal_grace: Duration = timedelta(minutes=1)
    kill_wait: Duration = timedelta(minutes=2)
    silence: Duration = timedelta(seconds=30)
    submit_timeout: Duration = timedelta(minutes=5)
    submit_ttl: Duration = timedelta(minutes=10)
    start_timeout: Duration = timedelta(minutes=10)
    recovery_wait: Duration = timedelta(minutes=2)
    adopt_margin: Duration = timedelta(minutes=2)
    stall_floor: Duration = timedelta(minutes=10)
    stall_factor: float = 4.0
    look_every: Duration = timedelta(seconds=2)
    watch_every: Duration = timedelta(seconds=15)

    def __post_init__(self) -> None:
        if not 0 < self.plan_ratio < 1:
            raise InvalidInput(f"restart.plan_ratio is {self.plan_ratio}; allowed is a number between 0 and 1")
        if not 0 <= self.jitter_ratio < self.plan_ratio:
            raise InvalidInput(f"restart.jitter_ratio is {self.jitter_ratio}; allowed is 0 up to plan_ratio")


@dataclass(frozen=True)
class StreamSpec:
    """The declaration. `checkpoints` are the folders that Structured Streaming queries of this job write.

    Two specs with one `name` on one `state_dir` are one stream.
    """

    __pydantic_config__ = _STRICT

    name: str
    credentials: StreamCredentials
    application: str
    checkpoints: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    deploy: Deploy = Deploy()
    restart: RestartPolicy = RestartPolicy()
    on_change: OnChange = OnChange.REPORT

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidInput(f"name is {self.name!r}; allowed are 1 to 50 of a-z, 0-9 and -, no - at the ends")
        for checkpoint in self.checkpoints:
            if not checkpoint.startswith(("/", "hdfs://")):
                raise InvalidInput(f"checkpoints has {checkpoint!r}; allowed are absolute HDFS paths or hdfs:// URIs")

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> StreamSpec:
        """Build from plain data. Raise InvalidInput that names every wrong field and what is allowed there."""
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
        return {key: _plain(value) for key, value in asdict(self).items()}

    def to_masked_mapping(self) -> dict[str, Any]:
        """As `to_mapping`, for everybody's eyes."""
        plain = self.to_mapping()
        plain["conf"] = masked(plain["conf"])
        plain["deploy"]["environment"] = masked(plain["deploy"]["environment"])
        return plain

    def fingerprint(self) -> str:
        """The same for specs that would submit the same job; restart policy and on_change don't count."""
        submitted = {k: v for k, v in self.to_mapping().items() if k not in {"restart", "on_change"}}
        return hashlib.sha256(json.dumps(submitted, sort_keys=True).encode()).hexdigest()[:16]


def differences(declared: StreamSpec, running: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields, dotted, in which a declared spec would submit another job than the one that runs."""
    ours, theirs = _leaves(declared.to_masked_mapping()), _leaves(running)
    changed = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    return tuple(key for key in changed if not key.startswith(("restart.", "on_change")))


_SPEC: TypeAdapter[StreamSpec] = TypeAdapter(StreamSpec)

_TAGGED: dict[str, type[Any]] = {
    "keytab": KeytabCredentials,
    "ticket": TicketCredentials,
    "proxy-user": ProxyUserCredentials,
}
_OWNERS: dict[str, type[Any]] = {"deploy": Deploy, "restart": RestartPolicy, **_TAGGED}


def _complaint(detail: dict[str, Any]) -> str:
    where = tuple(part for part in detail["loc"] if part not in _TAGGED)
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


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.3f}".rstrip("0").rstrip(".") + "s"
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, StrEnum) else value


def _leaves(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {prefix: value}
    found: dict[str, Any] = {}
    for key, item in value.items():
        found |= _leaves(item, f"{prefix}.{key}" if prefix else str(key))
    return found
