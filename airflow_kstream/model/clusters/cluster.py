"""A kerberized cluster, as a connection describes it.

Its clients' environment is what the connection's owner adds to the little that each of them gets:

    {"client_environment": {"SPARK_MAJOR_VERSION": "3", "HADOOP_HOME": {"inherit": "HADOOP_HOME"}}}

A value is shown, and no place for a secret; what is inherited from the worker is shown by its name alone. A variable
can make a client load code (LD_PRELOAD, JAVA_TOOL_OPTIONS, SPARK_SUBMIT_OPTS), so no declaration has such a field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Discriminator, Tag
from pydantic_core import PydanticCustomError

from airflow_kstream.model.fields import STRICT, Argument, VariableName
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.secrets import secrets_in

if TYPE_CHECKING:
    from airflow_kstream.model.clusters.allow import Allow


_CONF_FOLDER = "it is the connection's hadoop_conf_dir"
_OTHERS = "it would submit with the credentials of somebody else"
# Spark's client copies these into its job's containers (yarn.Client.setupLaunchEnv).
_OF_THE_JOB = "Spark's client hands it on to the job; write it into deploy.environment of the declarations that need it"
# With what to use instead.
REFUSED = {
    "HADOOP_CONF_DIR": _CONF_FOLDER,
    "YARN_CONF_DIR": _CONF_FOLDER,
    "KRB5_CONFIG": "it is the connection's krb5_conf",
    "KRB5CCNAME": "each client gets a ticket cache of its own",
    "HADOOP_TOKEN": _OTHERS,
    "HADOOP_TOKEN_FILE_LOCATION": _OTHERS,
    "HADOOP_PROXY_USER": "use credentials: {mode: proxy-user} in a declaration",
    **dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "PYTHONHASHSEED"), _OF_THE_JOB),
}


@dataclass(frozen=True)
class Inherited:
    """The name of a variable of the worker. One that the worker lacks is not set."""

    __pydantic_config__ = STRICT

    inherit: VariableName


def _kind_of(value: object) -> str:
    return "<inherited>" if isinstance(value, Mapping | Inherited) else "<text>"


ClientValue = Annotated[
    Annotated[Argument, Tag("<text>")] | Annotated[Inherited, Tag("<inherited>")], Discriminator(_kind_of)
]


def _without_errors(variables: Mapping[str, str | Inherited]) -> Mapping[str, str | Inherited]:
    if message := "; ".join(_errors(variables)):
        raise PydanticCustomError("conf", "{wrong}", {"wrong": message})
    return variables


def _errors(variables: Mapping[str, str | Inherited]) -> Iterator[str]:
    for name, value in variables.items():
        if name in REFUSED:
            yield f"sets {name}, which it may not: {REFUSED[name]}"
        elif isinstance(value, str) and any(secrets_in(name, value)):
            yield f'holds a secret in {name}, and is shown; inherit it from the worker: {{"inherit": "{name}"}}'


ClientEnvironment = Annotated[Mapping[VariableName, ClientValue], AfterValidator(_without_errors)]


@dataclass(frozen=True)
class ClientSettings:
    """The settings of a connection's clients beside their conf folder.

    `proxy_user_privileges` is whether the ResourceManager makes tokens of its own for the logs of applications that
    outlive theirs (yarn.resourcemanager.proxy-user-privileges.enabled, YARN-2704), as far as the conf folder tells.
    `flink_homes` are the folders of the Flinks on each host, by their names in declarations.
    """

    environment: Mapping[str, str | Inherited] = field(default_factory=dict)
    proxy_user_privileges: bool = False
    flink_homes: Mapping[str, str] = field(default_factory=dict)
    flink_conf: Mapping[str, str] = field(default_factory=dict, repr=False)


def shown_variables(variables: Mapping[str, str | Inherited]) -> Iterator[str]:
    """Yield each variable as a plan shows it: what is inherited without its value."""
    for name, value in sorted(variables.items()):
        yield f"{name}={value}" if isinstance(value, str) else f"{name} as the worker's {value.inherit}"


@dataclass(frozen=True)
class Tls:
    """The TLS settings. Verification is always on; `ca` is the file of a private authority, None for the system's."""

    ca: str | None = None

    @property
    def verify(self) -> str | bool:
        return self.ca or True


@dataclass(frozen=True)
class Cluster:
    """The servers of a cluster and the identity that watches them.

    `resourcemanagers` and `namenodes` are base URLs of their web addresses, all members of an HA pair.
    `state_dir` is an absolute HDFS path outside every checkpoint. `watcher` should be a supervisor of it; to look, it
    needs only the right to view. `allow` bounds what declarations may use beside what the connection has, None for no
    bound.
    """

    name: str
    resourcemanagers: tuple[str, ...]
    namenodes: tuple[str, ...]
    default_fs: str
    watcher: Identity
    state_dir: str
    hadoop_conf_dir: str | None = None
    krb5_conf: str | None = None
    tls: Tls = Tls()
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    client: ClientSettings = field(default_factory=ClientSettings)
    allow: Allow | None = None

    @property
    def flink_conf(self) -> Mapping[str, str]:
        return self.client.flink_conf
