"""Facts of a cluster in order, with what a minicluster's servers said, and ways to change one thing in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow_kstream.model.clusters.authors import Supervisors
from airflow_kstream.model.clusters.cluster_facts import (
    ClusterFacts,
    DriverFacts,
    EffectiveConf,
    HdfsFacts,
    KerberosFacts,
    KeytabFacts,
    NamedServers,
    Property,
    ServerClock,
    ServerConfs,
    ServiceName,
    SparkClient,
    StateDirFacts,
    StreamConf,
    StreamCredentials,
    StreamFacts,
    StreamFolderFacts,
)
from airflow_kstream.model.clusters.state_dir_rights import StateDirRights
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.model.kerberos.ticket import Ticket
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.known_faults import HadoopVersion
from airflow_kstream.model.streams.stream import EngineName
from tests.simulated.values import changed

NOW = datetime(2026, 5, 10, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
# As the servers of a minicluster told it; tests/contract/test_server_conf.py compares it with what they tell now.
SERVED: dict[str, dict[str, list[str]]] = json.loads(Path(__file__).with_name("served.json").read_text())
REFUSED = NotChecked(
    "the configuration", "read its configuration on http://server: it answered 403", "a place in its acl"
)
_IDLE = "ipc.client.connection.maxidletime"
_RECOVER = "dfs.client.write.recover.lease.on.close.exception"


def _changed(properties: Mapping[str, Property], changes: Mapping[str, str | None]) -> dict[str, Property]:
    """Return the properties with changes: `__` stands for a dot in a key and `_` for a hyphen, None takes it away."""
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in changes.items()}
    kept = {key: one for key, one in properties.items() if key not in named}
    return kept | {key: Property(value, "site.xml") for key, value in named.items() if value is not None}


def conf(server: str, **changes: str | None) -> EffectiveConf:
    """Return what the server said, with changes."""
    properties = {key: Property(value, origin) for key, (value, origin) in SERVED[server].items()}
    return EffectiveConf(f"http://{server}", _changed(properties, changes))


def driver(hadoop: HadoopVersion | NotChecked, **jars: str) -> DriverFacts:
    """Return a driver with this version, and by default a recent HTTP client."""
    properties = {_IDLE: "10000", _RECOVER: "true"}
    conf = EffectiveConf("the driver", {key: Property(value, "its environment") for key, value in properties.items()})
    return DriverFacts("application_1_0001", {}, conf, jars or {"httpclient": "4.5.14"}, hadoop)


KEYTAB_STREAM = StreamFacts(
    name="orders",
    running="application_1_0001",
    user="etl",
    credentials=StreamCredentials(renews_itself=True, launch_tokens_end=NOW + 4 * DAY),
    started=NOW - 3 * DAY,
    job=StreamConf(
        conf={"spark.yarn.maxAppAttempts": "1", "spark.security.credentials.retryWait": "10m"},
        conf_from="its declaration",
        driver=driver(HadoopVersion("3.5.0")),
    ),
)
TICKET_STREAM = changed(
    KEYTAB_STREAM, name="clicks", running="application_1_0002", renews_itself=False, tokens_end=NOW + 4 * DAY
)
FLINK_STREAM = replace(
    KEYTAB_STREAM,
    job=StreamConf(
        conf={
            "security.delegation.tokens.renewal.retry.backoff": "10 min",
            "security.kerberos.token.provider.hadoopfs.renewer": "rm/_HOST@R",
            "s3.secret-key": "******",
        },
        conf_from="the JobManager of application_1_0001",
        engine=EngineName.FLINK,
    ),
)
PRIVILEGED = ServerConfs(
    namenode=conf("namenode", hadoop__proxyuser__yarn__hosts="*", hadoop__proxyuser__yarn__groups="*"),
    resourcemanager=conf("resourcemanager", yarn__resourcemanager__proxy_user_privileges__enabled="true"),
    nodemanager=conf("nodemanager", yarn__nodemanager__recovery__enabled="true", yarn__http__policy="HTTPS_ONLY"),
)
IN_ORDER = ClusterFacts(
    now=NOW,
    named=NamedServers(
        resourcemanagers=("https://rm1", "https://rm2"), namenodes=("https://nn1", "https://nn2"), nameservice="kstream"
    ),
    hdfs=HdfsFacts(
        namenode_version=HadoopVersion("3.5.0"),
        datanodes=(HadoopVersion("3.5.0"),),
        coded_blocks=0,
        lifetimes=TokenLifetimes(DAY, 7 * DAY),
    ),
    kerberos=KerberosFacts(
        clocks=(ServerClock("http://nn1", timedelta()), ServerClock("http://rm1", timedelta(seconds=2))),
        services=(ServiceName("nn1", "nn1"), ServiceName("rm1", "rm1")),
        ticket=Ticket(
            "w@R", "krbtgt/R@R", NOW, NOW + 10 * HOUR, NOW + 7 * DAY, frozenset({"forwardable", "renewable"}), "aes", 1
        ),
        has_keytab=True,
        krb5={"forwardable": "true", "renew_lifetime": "7d"},
        impersonations=(),
        keytabs=(KeytabFacts("w@R", "/w.keytab", (), (17, 18)),),
    ),
    client=SparkClient("/spark/bin/spark-submit", HadoopVersion("3.5.0"), EffectiveConf("/conf", {})),
    streams=(KEYTAB_STREAM,),
    state_dir=StateDirFacts(
        StateDirRights("/kstream", "supervisor", "kstream", "1775", parents_group="supergroup"),
        Supervisors("hdfs", "supervisor"),
        (StreamFolderFacts("orders", "/kstream/orders-0badcafe", "etl", "755", closed=True, user="etl"),),
    ),
    user="supervisor",
    confs=PRIVILEGED,
)


def with_stream(stream: StreamFacts, *, setting: tuple[str, str | None] | None = None, **changes: Any) -> ClusterFacts:
    """Return the cluster with this stream alone, changed; `setting` is a conf that it has, or has no longer."""
    other = changed(stream, **changes)
    if setting and not isinstance(other.job.conf, NotChecked):
        key, value = setting
        others = {name: value for name, value in other.job.conf.items() if name != key}
        other = changed(other, conf=others | ({key: value} if value is not None else {}))
    return replace(IN_ORDER, streams=(other,))


def with_state_dir(*, folder: Mapping[str, Any] | None = None, **changes: Any) -> ClusterFacts:
    """Return the cluster with another state_dir; `folder` are changes of the stream's folder in it."""
    before = IN_ORDER.state_dir
    assert isinstance(before, StateDirFacts)
    folders = tuple(replace(each, **(folder or {})) for each in before.folders)
    return replace(IN_ORDER, state_dir=replace(before, folders=folders, **changes))


def with_conf(server: str, **changes: str | None) -> ClusterFacts:
    """Return the cluster with other properties of one server."""
    before: EffectiveConf = getattr(IN_ORDER.confs, server)
    return changed(IN_ORDER, **{server: EffectiveConf(before.server, _changed(before.properties, changes))})
