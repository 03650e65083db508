"""For each check: a cluster on which it finds something, with words of it, and one that refuses to answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.clusters.authors import OrderFile
from airflow_kstream.model.clusters.cluster_facts import (
    ClusterFacts,
    EffectiveConf,
    Impersonation,
    KeytabFacts,
    OpenWeb,
    OpenWebs,
    ServerClock,
    ServiceName,
    SparkClient,
    StopWay,
    StreamFacts,
)
from airflow_kstream.model.clusters.state_dir_rights import StateDirRights
from airflow_kstream.model.finding import Concern, Severity
from airflow_kstream.model.kerberos.keytab import FindingKind, KeytabFinding
from airflow_kstream.model.kerberos.ticket import Ticket
from airflow_kstream.model.known_faults import HadoopVersion
from tests.simulated.doctor_facts import (
    DAY,
    FLINK_STREAM,
    HOUR,
    IN_ORDER,
    KEYTAB_STREAM,
    NOW,
    REFUSED,
    TICKET_STREAM,
    driver,
    with_conf,
    with_state_dir,
    with_stream,
)
from tests.simulated.values import changed

ERROR, WARNING, NOTE = Severity
NO_STATE_DIR = replace(IN_ORDER, state_dir=REFUSED)
OLD = HadoopVersion("2.7.7")
_ATTEMPTS = "spark.yarn.maxAppAttempts"
assert isinstance(IN_ORDER.client, SparkClient)
_CLIENT = IN_ORDER.client


@dataclass(frozen=True)
class Case:
    """`broken` is a cluster on which the check finds something of this severity, with these words of the concern or of
    the finding; `mute` is one on which it can't be decided."""

    check: str
    broken: ClusterFacts
    severity: Severity
    words: str
    mute: ClusterFacts


def _ticket(**changes: object) -> ClusterFacts:
    ticket = IN_ORDER.kerberos.ticket
    assert isinstance(ticket, Ticket)
    return changed(IN_ORDER, ticket=replace(ticket, **changes))  # type: ignore[arg-type]


def _jars(**versions: str) -> ClusterFacts:
    jars = versions or {"spark-core": "2.4.0"}
    return with_stream(TICKET_STREAM, object_stores=("s3a",), driver=driver(HadoopVersion("3.5.0"), **jars))


def _not_recovering(stream: StreamFacts) -> ClusterFacts:
    own = driver(HadoopVersion("3.5.0"))
    return with_stream(stream, driver=replace(own, conf=EffectiveConf("the driver", {})))


def _two_resourcemanagers(**changes: object) -> ClusterFacts:
    ha = {"yarn__resourcemanager__ha__enabled": "true", "yarn__resourcemanager__ha__rm_ids": "rm1,rm2"}
    return changed(with_conf("resourcemanager", **ha), **changes)


def _keytabs(*keytabs: KeytabFacts) -> ClusterFacts:
    return changed(IN_ORDER, keytabs=keytabs)


def _finding(kind: FindingKind) -> KeytabFinding:
    return KeytabFinding(kind, Severity.ERROR, "the KDC has kvno 4, this keytab kvno 3", "get a new one")


NO_TICKET = changed(IN_ORDER, ticket=REFUSED)
NO_RM = changed(IN_ORDER, resourcemanager=REFUSED)
UNREAD = with_stream(TICKET_STREAM, conf=REFUSED)
UNREAD_KEYTAB = with_stream(KEYTAB_STREAM, conf=REFUSED)
CODED = changed(IN_ORDER, namenode_version=HadoopVersion("3.3.6"), coded_blocks=5)

CASES = (
    Case(
        "hdfs-9276",
        with_stream(KEYTAB_STREAM, driver=driver(HadoopVersion("2.8.1"))),
        ERROR,
        "it fails with InvalidToken from 2026-05-08 12:00 UTC on",
        with_stream(KEYTAB_STREAM, driver=driver(HadoopVersion("2.6.0-cdh5.16.2"))),
    ),
    Case(
        "token-end",
        with_stream(TICKET_STREAM, supervised=False),
        WARNING,
        "it fails from 2026-05-14 12:00 UTC on",
        with_stream(TICKET_STREAM, tokens_end=None),
    ),
    Case(
        "idle-connections",
        with_stream(TICKET_STREAM, supervised=False, pause=timedelta(seconds=40)),
        WARNING,
        "40s between its batches, 10s until they close: it fails from 2026-05-14 12:00 UTC on",
        with_stream(TICKET_STREAM, pause=timedelta(seconds=40), driver=REFUSED),
    ),
    Case(
        "renewal-retry",
        with_stream(KEYTAB_STREAM, setting=("spark.security.credentials.retryWait", "4h")),
        WARNING,
        "leaves it one try",
        UNREAD_KEYTAB,
    ),
    Case(
        "uncounted-tokens",
        with_stream(TICKET_STREAM, uncounted=("the Hive metastore",)),
        WARNING,
        "the end of its token of the Hive metastore is not known",
        replace(IN_ORDER, streams=REFUSED),
    ),
    Case(
        "impersonation",
        changed(
            with_stream(TICKET_STREAM, proxied="alice"),
            impersonations=(Impersonation("alice", "http://nn1", "User: watcher is not allowed to impersonate alice"),),
        ),
        ERROR,
        "its next submission is refused",
        changed(IN_ORDER, impersonations=REFUSED),
    ),
    Case(
        "yarn-3103",
        with_stream(KEYTAB_STREAM, driver=driver(HadoopVersion("2.6.0"))),
        ERROR,
        "its next reconnect may end it from 2026-05-08 12:00 UTC on",
        with_stream(KEYTAB_STREAM, driver=REFUSED),
    ),
    Case(
        "second-attempt",
        with_stream(TICKET_STREAM, setting=(_ATTEMPTS, None)),
        WARNING,
        "its second attempt will fail from 2026-05-14 12:00 UTC on",
        UNREAD,
    ),
    Case(
        "attempt-window",
        with_stream(KEYTAB_STREAM, setting=(_ATTEMPTS, "2")),
        WARNING,
        "2 failures end it, however far apart",
        UNREAD_KEYTAB,
    ),
    Case(
        "no-way-to-stop",
        changed(
            IN_ORDER, stops=StopWay("its web server wants no proof of who asks, and its RPC can't be used", works=False)
        ),
        ERROR,
        "nobody can kill its application",
        changed(IN_ORDER, stops=REFUSED),
    ),
    Case(
        "open-nodemanagers",
        changed(IN_ORDER, open_webs=OpenWebs(node=OpenWeb("http://nm1:8042"))),
        WARNING,
        "shown to nobody or to everybody",
        changed(IN_ORDER, open_webs=OpenWebs(node=REFUSED)),
    ),
    Case(
        "open-webhdfs",
        changed(IN_ORDER, open_webs=OpenWebs((OpenWeb("http://nn1:9870", "dr.who"),))),
        ERROR,
        "the owner of a claim or an order proves nothing",
        changed(IN_ORDER, open_webs=OpenWebs(REFUSED)),
    ),
    Case(
        "rm-privileges",
        with_conf("resourcemanager", yarn__resourcemanager__proxy_user_privileges__enabled="false"),
        WARNING,
        "its logs are lost if it ends from 2026-05-14 12:00 UTC on",
        NO_RM,
    ),
    Case(
        "rm-proxyuser",
        with_conf("namenode", hadoop__proxyuser__yarn__hosts=None),
        ERROR,
        "its logs are lost if it ends from 2026-05-14 12:00 UTC on",
        with_conf("namenode", hadoop__proxyuser__yarn__hosts="rm1.example.com"),
    ),
    Case(
        "log-aggregation",
        with_conf("nodemanager", yarn__log_aggregation_enable="false"),
        WARNING,
        "nobody can read why it ended",
        changed(IN_ORDER, nodemanager=REFUSED),
    ),
    Case(
        "rm-recovery",
        with_conf("resourcemanager", yarn__resourcemanager__recovery__enabled="false"),
        ERROR,
        "kills all streams",
        NO_RM,
    ),
    Case(
        "nm-recovery",
        with_conf("nodemanager", yarn__nodemanager__recovery__enabled="false"),
        WARNING,
        "ends the containers on it",
        with_conf("nodemanager", yarn__nodemanager__recovery__enabled=None),
    ),
    Case(
        "lifetime-limit",
        with_stream(KEYTAB_STREAM, supervised=False, limit_ends=NOW + DAY),
        WARNING,
        "YARN kills it from 2026-05-11 12:00 UTC on",
        with_stream(KEYTAB_STREAM, running=REFUSED),
    ),
    Case("yarn-acls", with_conf("resourcemanager", yarn__acl__enable="false"), WARNING, "every user", NO_RM),
    Case(
        "rm-addresses",
        _two_resourcemanagers(resourcemanagers=("http://rm1",)),
        ERROR,
        "the cluster has 2 ResourceManagers",
        NO_RM,
    ),
    Case(
        "client-rm-addresses",
        _two_resourcemanagers(),
        ERROR,
        "a failover of the ResourceManager ends it",
        _two_resourcemanagers(client=REFUSED),
    ),
    Case(
        "client-environment",
        replace(IN_ORDER, client=replace(_CLIENT, missing={"SPARK_MAJOR_VERSION": True})),
        WARNING,
        "SPARK_MAJOR_VERSION is set on this host, and no submission hands it on",
        replace(IN_ORDER, client=replace(_CLIENT, missing=REFUSED)),
    ),
    Case(
        "nn-addresses",
        changed(IN_ORDER, namenodes=("http://nn1",)),
        ERROR,
        "the nameservice has more NameNodes",
        changed(IN_ORDER, namenode=REFUSED),
    ),
    Case(
        "unbounded",
        replace(IN_ORDER, unbounded=Allow(secrets=("conn:orders",))),
        WARNING,
        "its declarations may use any keytab",
        replace(IN_ORDER, unbounded=REFUSED),
    ),
    Case(
        "plain-http",
        changed(IN_ORDER, namenodes=("https://nn1", "http://nn2"), nodemanager=REFUSED),
        NOTE,
        "http://nn2 are believed as the network delivers them",
        changed(IN_ORDER, nodemanager=REFUSED),
    ),
    Case(
        "lease-limit",
        changed(
            with_conf("namenode", dfs__namenode__lease_hard_limit_sec=None), namenode_version=HadoopVersion("2.8.5")
        ),
        WARNING,
        "stays open for 1h",
        with_conf("namenode", dfs__namenode__lease_hard_limit_sec=None),
    ),
    *(
        Case(
            jira,
            changed(IN_ORDER, namenode_version=HadoopVersion(version)),
            severity,
            words,
            changed(IN_ORDER, namenode_version=mute),
        )
        for jira, version, severity, words, mute in (
            ("hdfs-10763", "2.7.3", WARNING, "lose its lease", HadoopVersion("2.6.0-cdh5.16.2")),
            ("hdfs-11576", "2.9.0", WARNING, "begins the recovery again", REFUSED),
            ("hdfs-11817", "2.8.1", WARNING, "lease leak", REFUSED),
            ("hdfs-17430", "3.4.3", NOTE, "lost its power", REFUSED),
            ("hdfs-17861", "3.4.3", WARNING, "crash the standby", HadoopVersion("3.1.1.7.1.7.0-551")),
        )
    ),
    Case(
        "hdfs-17150",
        CODED,
        WARNING,
        "fewer internal blocks",
        changed(CODED, coded_blocks=REFUSED),
    ),
    Case(
        "hdfs-12070",
        changed(IN_ORDER, datanodes=(HadoopVersion("3.5.0"), OLD)),
        WARNING,
        "one replica that fails",
        changed(IN_ORDER, datanodes=REFUSED),
    ),
    Case(
        "hdfs-17358",
        changed(IN_ORDER, datanodes=(HadoopVersion("3.4.3"),), coded_blocks=5),
        WARNING,
        "recovered without end",
        changed(IN_ORDER, datanodes=REFUSED),
    ),
    Case(
        "hdfs-10549",
        with_stream(KEYTAB_STREAM, driver=driver(OLD)),
        WARNING,
        "a close() that fails leaves its file open",
        with_stream(KEYTAB_STREAM, driver=driver(HadoopVersion("2.6.0-cdh5.16.2"))),
    ),
    Case(
        "hdfs-14694",
        _not_recovering(KEYTAB_STREAM),
        NOTE,
        "a close() that fails leaves its file open",
        with_stream(KEYTAB_STREAM, driver=REFUSED),
    ),
    Case(
        "clock-skew",
        changed(IN_ORDER, clocks=(ServerClock("http://nn1", timedelta(minutes=-6)), IN_ORDER.kerberos.clocks[1])),
        ERROR,
        "clocks differ by 6m, and 5m are allowed",
        changed(IN_ORDER, krb5=REFUSED),
    ),
    Case(
        "ticket-end",
        changed(IN_ORDER, has_keytab=False),
        WARNING,
        "its renewals end at 2026-05-17 12:00 UTC",
        NO_TICKET,
    ),
    Case("ticket-life", _ticket(expiry=NOW + timedelta(minutes=4)), WARNING, "lives for 4m", NO_TICKET),
    Case(
        "state-dir-open",
        with_state_dir(rights=StateDirRights("/kstream", "supervisor", "kstream", "1777", parents_group="supergroup")),
        WARNING,
        "/kstream is open: everybody may create in it",
        NO_STATE_DIR,
    ),
    Case(
        "state-dir-strangers",
        with_state_dir(strangers={"orders.mallory": "mallory"}),
        WARNING,
        "/kstream/orders.mallory (mallory)",
        NO_STATE_DIR,
    ),
    Case(
        "stream-folder-open",
        with_state_dir(folder={"closed": False, "rights": "1777"}),
        WARNING,
        "others can write in its folder",
        NO_STATE_DIR,
    ),
    Case(
        "supervisors-stream",
        with_state_dir(folder={"user": "supervisor"}),
        WARNING,
        "can say everything that a supervisor can, for all streams",
        NO_STATE_DIR,
    ),
    Case(
        "supervisors-file",
        with_state_dir(names_mode="600"),
        WARNING,
        "not everybody may read /kstream/supervisors",
        NO_STATE_DIR,
    ),
    Case(
        "void-orders",
        with_state_dir(void_orders=(OrderFile("/kstream/orders.ops/freeze.000001.json", "freeze", 1, "ops", NOW),)),
        WARNING,
        "one on all streams, a freeze or its end, by ops of 2026-05-10 12:00 UTC",
        NO_STATE_DIR,
    ),
    Case("no-supervisor", replace(IN_ORDER, user="jane"), WARNING, "jane, the connection's principal", NO_STATE_DIR),
    Case(
        "long-listings",
        with_state_dir(cut="it has more than 20000 entries, of which these are not looked at: 7 of mallory"),
        WARNING,
        "more entries than anybody looks at",
        NO_STATE_DIR,
    ),
    Case("ticket-renewable", _ticket(renew_until=None), NOTE, "can't be renewed", NO_TICKET),
    Case("ticket-forwardable", _ticket(flags=frozenset({"initial"})), NOTE, "not forwardable", NO_TICKET),
    Case(
        "canonical-names",
        changed(IN_ORDER, services=(ServiceName("nn1", "host-17.cloud.example"),)),
        WARNING,
        "is requested for host-17.cloud.example",
        changed(IN_ORDER, services=REFUSED),
    ),
    Case(
        "keytabs",
        _keytabs(
            KeytabFacts(
                "s@R",
                "/s.keytab",
                (_finding(FindingKind.BEHIND),),
                endangered=(Concern("orders", "its driver gets no new tokens", NOW + HOUR),),
            )
        ),
        ERROR,
        "its driver gets no new tokens from 2026-05-10 13:00 UTC on",
        changed(IN_ORDER, keytabs=REFUSED),
    ),
    Case(
        "enctypes",
        _keytabs(KeytabFacts("s@R", "/s.keytab", (), (23,), ("orders",))),
        WARNING,
        "its next submission may not log in",
        changed(IN_ORDER, keytabs=REFUSED),
    ),
    Case("object-store-client", _jars(httpclient="4.3.2"), WARNING, "it uses s3a", _jars()),
    Case(
        "speculation",
        with_stream(KEYTAB_STREAM, setting=("spark.speculation", "true")),
        NOTE,
        "may be written twice",
        UNREAD_KEYTAB,
    ),
    Case(
        "staging-missing",
        with_stream(KEYTAB_STREAM, staged=False),
        ERROR,
        "it can't replace an executor",
        with_stream(KEYTAB_STREAM, staged=REFUSED),
    ),
    Case(
        "staging-left",
        with_stream(KEYTAB_STREAM, unused_staging=("/user/etl/.sparkStaging/application_1_0000",)),
        WARNING,
        "1 of its ended applications left one",
        with_stream(KEYTAB_STREAM, staged=REFUSED),
    ),
    Case(
        "staging-preserved",
        with_stream(KEYTAB_STREAM, setting=("spark.yarn.preserve.staging.files", "true")),
        WARNING,
        "its end leaves its files behind",
        UNREAD_KEYTAB,
    ),
    Case(
        "flink-retry",
        with_stream(FLINK_STREAM, setting=("security.delegation.tokens.renewal.retry.backoff", None)),
        NOTE,
        "the JobManager waits for 1h",
        with_stream(FLINK_STREAM, setting=("security.delegation.tokens.renewal.retry.backoff", "soon")),
    ),
    Case(
        "flink-renewer",
        with_stream(
            FLINK_STREAM,
            setting=("security.kerberos.token.provider.hadoopfs.renewer", None),
            issued=NOW - timedelta(hours=25),
        ),
        WARNING,
        "none of its TaskManagers can be replaced from 2026-05-10 11:00 UTC on",
        with_stream(FLINK_STREAM, conf=REFUSED),
    ),
    Case(
        "flink-checkpoints",
        with_stream(FLINK_STREAM, survives=False),
        WARNING,
        "its position is lost with it",
        with_stream(FLINK_STREAM, survives=REFUSED),
    ),
    Case(
        "flink-logs",
        with_stream(FLINK_STREAM, readable=False),
        WARNING,
        "nobody learns why it has no TaskManagers",
        with_stream(FLINK_STREAM, readable=REFUSED),
    ),
    Case(
        "flink-port",
        with_stream(FLINK_STREAM, setting=("rest.bind-port", "50100-50200")),
        WARNING,
        "its JobManager obeys everybody",
        with_stream(FLINK_STREAM, conf=REFUSED),
    ),
    Case(
        "flink-stop",
        with_stream(FLINK_STREAM, setting=("security.ssl.rest.enabled", "true")),
        NOTE,
        "each restart begins with its newest checkpoint",
        with_stream(FLINK_STREAM, conf=REFUSED),
    ),
    Case(
        "flink-recovery",
        with_stream(FLINK_STREAM, setting=("high-availability.type", "zookeeper")),
        WARNING,
        "it recovers itself, beside its supervisor",
        with_stream(FLINK_STREAM, conf=REFUSED),
    ),
    Case(
        "flink-shown-secrets",
        with_stream(FLINK_STREAM, setting=("fs.azure.sas", "https://etl:hunter2@store/x")),
        WARNING,
        "everybody on the cluster reads its secrets",
        with_stream(FLINK_STREAM, conf=REFUSED),
    ),
)
