"""What the doctor knows of a cluster: each fact as somebody said it, or the reason why it could not be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.clusters.authors import OrderFile, Supervisors
from airflow_kstream.model.clusters.state_dir_rights import StateDirRights
from airflow_kstream.model.finding import Concern, NotChecked
from airflow_kstream.model.kerberos.keytab import KeytabFinding
from airflow_kstream.model.kerberos.ticket import Ticket
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.known_faults import HadoopVersion

T = TypeVar("T")
_NO_DRIVER = NotChecked("its driver", "none runs")
_BOOLEANS = {"true": True, "false": False}
_UNITS = {"ms": 0.001, "": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


class NotKnown(Exception):
    """A fact that a check needs and that could not be asked. It ends that check, or that check of one stream."""

    def __init__(self, fact: NotChecked) -> None:
        super().__init__(fact.sentence)
        self.fact = fact


def known(fact: T | NotChecked) -> T:
    """Return the fact. Raises NotKnown: when it could not be asked."""
    if isinstance(fact, NotChecked):
        raise NotKnown(fact)
    return fact


@dataclass(frozen=True)
class Property:
    """A property of a configuration. `origin` is the file that set it: `yarn-site.xml`, `core-default.xml`."""

    value: str
    origin: str


@dataclass(frozen=True)
class EffectiveConf:
    """The configuration that a program runs with, its version's own defaults included, as `server` said it."""

    server: str
    properties: Mapping[str, Property] = field(repr=False)

    def get(self, key: str) -> str | None:
        """Return the value; None if the program has none, neither set nor as a default in a file of its version."""
        found = self.properties.get(key)
        return found.value.strip() if found else None

    def need(self, key: str) -> str:
        """Return the value. Raises NotKnown: when nothing says it; its default may lie in the program's code."""
        value = self.get(key)
        if value is None:
            raise NotKnown(
                NotChecked(key, f"{self.server} does not tell it: its version has no default for it in a file")
            )
        return value

    def is_true(self, key: str) -> bool:
        """Return whether the value is true. Raises NotKnown: when it is not a word for yes or no, or nothing says it.

        Hadoop takes a default of its code for any other word (Configuration.getBoolean), which is not known here.
        """
        value = self.need(key)
        if value.lower() not in _BOOLEANS:
            raise NotKnown(NotChecked(key, f"{self.server} says {value!r}, which is neither true nor false"))
        return _BOOLEANS[value.lower()]

    def duration(self, key: str, unit: str = "ms") -> timedelta:
        """Return a duration as Hadoop reads it: a number of `unit`, or a number with a unit of its own."""
        return _duration(self.need(key), unit, key, self.server)

    def said(self, *keys: str) -> str:
        """Return the values of the keys with their origins, as a proof."""
        return f"{self.server}: {', '.join(map(self._said, keys))}"

    def _said(self, key: str) -> str:
        found = self.properties.get(key)
        return f"{key}={found.value.strip()} ({found.origin})" if found else f"no {key}"


def _duration(text: str, unit: str, key: str, server: str) -> timedelta:
    number = text.rstrip("smhd")
    try:
        return timedelta(seconds=float(number) * _UNITS[text[len(number) :] or unit])
    except (ValueError, KeyError):
        raise NotKnown(NotChecked(key, f"{server} says {text!r}, which is not a duration")) from None


@dataclass(frozen=True)
class SparkClient:
    """The Spark client of this host, with which it submits. `binary` is its spark-submit, `hadoop` the version of the
    Hadoop client in its jars.

    `conf` is the connection's conf folder, which jobs take with them. `defaults` are the confs of its
    spark-defaults.conf. `missing` are the variables that its script reads and does not get, each with whether this host
    has it.
    """

    binary: str
    hadoop: HadoopVersion | NotChecked
    conf: EffectiveConf | NotChecked
    defaults: Mapping[str, str] = field(default_factory=dict, repr=False)
    missing: Mapping[str, bool] | NotChecked = field(default_factory=dict)


@dataclass(frozen=True)
class DriverFacts:
    """A running driver as it shows itself: its Spark properties, its effective Hadoop configuration and its jars.

    `jars` are the versions of what is on its class path, `hadoop` that of the Hadoop client among them.
    """

    application: str
    properties: Mapping[str, str] = field(repr=False)
    conf: EffectiveConf | NotChecked
    jars: Mapping[str, str] = field(repr=False)
    hadoop: HadoopVersion | NotChecked


@dataclass(frozen=True)
class ServerClock:
    """The clock of a server, as far as it was ahead of this host's; behind if negative."""

    server: str
    ahead: timedelta


@dataclass(frozen=True)
class ServiceName:
    """The service for which libkrb5 requests a ticket when it speaks to `host`: it may have resolved another name."""

    host: str
    requested: str


@dataclass(frozen=True)
class Impersonation:
    """The answer of `server` to a request for `user`: empty `refusal` if it was granted."""

    user: str
    server: str
    refusal: str = ""


@dataclass(frozen=True)
class KeytabFacts:
    """A keytab of this host: what its own check found, the enctypes of its newest keys, and the streams that use it.

    `endangered` are those that get no new tokens for what was found, each from when on.
    """

    principal: str
    path: str
    findings: tuple[KeytabFinding, ...]
    enctypes: tuple[int, ...] = ()
    streams: tuple[str, ...] = ()
    endangered: tuple[Concern, ...] = ()


@dataclass(frozen=True)
class StreamCredentials:
    """The credentials of a running stream."""

    renews_itself: bool = False
    """Whether it has a keytab."""
    refreshed: bool = False
    """Whether fresh tokens are pushed to it."""
    tokens_end: datetime | None = None
    """When its credentials end; None if they don't or that is not known."""
    issued: datetime | None = None
    """The earliest time at which those of its launch can have been issued; None if it is not known."""
    launch_tokens_end: datetime | None = None
    """When those of its launch do, which its logs and its ApplicationMaster's next attempt need."""
    uncounted: tuple[str, ...] = ()
    """The services whose tokens no horizon counts."""


@dataclass(frozen=True)
class StreamConf:
    """The configuration that a stream runs with."""

    conf: Mapping[str, str] | NotChecked = field(default_factory=dict, repr=False)
    """What it runs with, or was submitted with if its `driver` could not be asked."""
    conf_from: str = ""
    """Which of the two it is."""
    driver: DriverFacts | NotChecked = _NO_DRIVER
    object_stores: tuple[str, ...] = ()
    """Those that its conf and its arguments name."""
    engine: str = "spark"
    """Whose the conf is."""
    survives: bool | NotChecked = True
    """Whether its checkpoints outlive it."""
    readable: bool | NotChecked = True
    """Whether the connection's principal may read the logs of its containers."""


@dataclass(frozen=True)
class StagingFacts:
    """The staging folders of a stream."""

    staged: bool | NotChecked = True
    """Whether that of its application is there."""
    unused_staging: tuple[str, ...] = ()
    """Those of its ended applications."""


@dataclass(frozen=True)
class StreamFacts:
    """A stream, or an application that is none, as far as its claim, its folder and YARN tell."""

    name: str
    running: str | NotChecked = ""
    """Its application, empty if none runs."""
    supervised: bool = True
    """False for an application that nobody claimed."""
    held: bool = False
    """Whether a person wants nobody to restart it."""
    user: str = ""
    """Whom it runs as in YARN."""
    proxied: str = ""
    """The user for whom it is submitted, empty if nobody acts for another."""
    started: datetime | None = None
    limit_ends: datetime | None = None
    """When YARN's lifetime limit ends it."""
    pause: timedelta | None = None
    """The longest usual time between its batches."""
    credentials: StreamCredentials = StreamCredentials()
    job: StreamConf = field(default_factory=StreamConf)
    staging: StagingFacts = StagingFacts()

    @property
    def runs(self) -> bool:
        """Return whether it has an application that lives. Raises NotKnown: when that could not be asked."""
        return bool(known(self.running))

    @property
    def restarted(self) -> bool:
        """Return whether somebody restarts it before its credentials end."""
        return self.supervised and not self.held

    @property
    def replaced(self) -> bool:
        """Return whether it gets other tokens before those that it has end. A held stream is pushed none."""
        return self.credentials.renews_itself or (self.credentials.refreshed and not self.held)

    @property
    def hadoop(self) -> HadoopVersion:
        """Return the version of its Hadoop client. Raises NotKnown: when its driver doesn't tell."""
        return known(known(self.job.driver).hadoop)

    @property
    def hadoop_conf(self) -> EffectiveConf:
        """Return the Hadoop configuration of its driver. Raises NotKnown: when its driver doesn't tell."""
        return known(known(self.job.driver).conf)

    def setting(self, key: str) -> str | None:
        """Return the conf's value, None if it is not set. Raises NotKnown: when its conf could not be asked."""
        value = known(self.job.conf).get(key)
        return value.strip() if value is not None else None


@dataclass(frozen=True)
class StreamFolderFacts:
    """A stream's folder in state_dir. `closed`: nobody but its owner can write in it; `rights` are in words.

    `user` is whom HDFS takes the stream for, as the owner of its newest claim; empty if it has none. `strangers` are
    files of others who may not speak there, with their owners. `cut` tells what of it is not looked at.
    """

    stream: str
    path: str
    owner: str
    rights: str
    closed: bool
    user: str = ""
    strangers: Mapping[str, str] = field(default_factory=dict)
    cut: str = ""


@dataclass(frozen=True)
class StateDirFacts:
    """The connection's state_dir: its rights, who speaks there, and the streams' folders.

    `strangers` are entries of those who have no business there, with their owners. `cut` tells what of it is not looked
    at. `names_mode` is the mode of the file that names supervisors, empty without one. `void_orders` are newer than
    those that count, of authors who may not say them.
    """

    rights: StateDirRights
    supervisors: Supervisors
    folders: tuple[StreamFolderFacts, ...] = ()
    strangers: Mapping[str, str] = field(default_factory=dict)
    cut: str = ""
    names_mode: str = ""
    void_orders: tuple[OrderFile, ...] = ()


@dataclass(frozen=True)
class NamedServers:
    """The addresses that the connection names."""

    resourcemanagers: tuple[str, ...]
    namenodes: tuple[str, ...]
    nameservice: str


@dataclass(frozen=True)
class StopWay:
    """The way in which the connection's principal can stop an application, or in `words` why it has none."""

    words: str
    works: bool = True


@dataclass(frozen=True)
class OpenWeb:
    """A web server that wants no proof of who asks. `user` is whom WebHDFS takes everybody for; empty if for nobody."""

    server: str
    user: str = ""


@dataclass(frozen=True)
class OpenWebs:
    """The NameNodes whose WebHDFS is open, and a NodeManager as a sample, None if it is not."""

    webhdfs: tuple[OpenWeb, ...] | NotChecked = ()
    node: OpenWeb | NotChecked | None = None


@dataclass(frozen=True)
class ServerConfs:
    """The configurations of servers; `nodemanager` is one of them, as a sample."""

    namenode: EffectiveConf | NotChecked
    resourcemanager: EffectiveConf | NotChecked
    nodemanager: EffectiveConf | NotChecked


@dataclass(frozen=True)
class HdfsFacts:
    """The versions of HDFS, and the lifetimes of its tokens."""

    namenode_version: HadoopVersion | NotChecked
    datanodes: tuple[HadoopVersion, ...] | NotChecked
    """The versions of the DataNodes."""
    coded_blocks: int | NotChecked
    """How many erasure-coded block groups there are."""
    lifetimes: TokenLifetimes | NotChecked


@dataclass(frozen=True)
class KerberosFacts:
    """Kerberos as this host has it."""

    clocks: tuple[ServerClock, ...]
    services: tuple[ServiceName, ...] | NotChecked
    ticket: Ticket | NotChecked
    has_keytab: bool
    krb5: Mapping[str, str] | NotChecked
    """The section `[libdefaults]` of krb5.conf."""
    impersonations: tuple[Impersonation, ...] | NotChecked
    keytabs: tuple[KeytabFacts, ...] | NotChecked


@dataclass(frozen=True)
class ClusterFacts:
    """Everything that the checks may need. Times of streams are the cluster's."""

    now: datetime
    """This host's time."""
    named: NamedServers
    confs: ServerConfs
    hdfs: HdfsFacts
    kerberos: KerberosFacts
    client: SparkClient | NotChecked
    streams: tuple[StreamFacts, ...] | NotChecked
    state_dir: StateDirFacts | NotChecked
    user: str | NotChecked = ""
    """The short name of the watching principal."""
    stops: StopWay | NotChecked = StopWay("over REST")
    open_webs: OpenWebs = OpenWebs()
    unbounded: Allow | NotChecked | None = None
    """What the streams use beside what the connection has; None for a connection that bounds them with `allow`."""
