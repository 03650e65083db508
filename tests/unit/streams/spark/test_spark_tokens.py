"""Which confs name a service whose tokens the horizon does not count, and who is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.stream import KeytabCredentials, ProxyUserCredentials, StreamSpec
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.policy.streams.spark.spark_tokens import uncounted_tokens
from airflow_kstream.supervise.streams.restart.dry_run import explained
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from airflow_kstream.views.streams import streams_table
from airflow_kstream.views.tables import lines
from tests.simulated.life import SPEC, Life
from tests.simulated.spark_homes import CLUSTER, DEFAULTS
from tests.simulated.yarn import TICKET_SPEC

HIVE, KAFKA = "the Hive metastore", "Kafka's delegation tokens"
QUORUM, SERVERS = "spark.hadoop.hbase.zookeeper.quorum", "spark.kafka.clusters.main.auth.bootstrap.servers"
FILESYSTEMS = "spark.kerberos.access.hadoopFileSystems"
NAMED: tuple[tuple[dict[str, str], list[str]], ...] = (
    ({}, []),
    ({"spark.sql.catalogImplementation": "hive"}, [HIVE]),
    ({"spark.sql.catalogImplementation": "in-memory"}, []),
    ({"spark.hadoop.hive.metastore.uris": "thrift://hms:9083"}, [HIVE]),
    ({"spark.hive.metastore.uris": "thrift://hms:9083"}, [HIVE]),
    ({"spark.hadoop.hive.metastore.uris": " "}, []),
    ({"spark.sql.catalogImplementation": "hive", "spark.security.credentials.hive.enabled": "False"}, []),
    ({"spark.sql.catalogImplementation": "hive", "spark.security.credentials.hbase.enabled": "false"}, [HIVE]),
    ({QUORUM: "zk1"}, ["HBase"]),
    ({"spark.hadoop.hbase.security.authentication": "kerberos"}, ["HBase"]),
    ({"spark.hadoop.hbase.security.authentication": "simple"}, []),
    ({SERVERS: "kafka1:9093"}, [KAFKA]),
    ({SERVERS: "kafka1:9093", "spark.security.credentials.kafka.enabled": "false"}, []),
    ({"spark.kafka.consumer.cache.timeout": "5m"}, []),
    ({"spark.hadoop.hadoop.security.key.provider.path": "kms://https@kms:9600/kms"}, ["a KMS"]),
    ({"spark.hadoop.hadoop.security.key.provider.path": "jceks://file/keys"}, []),
    ({FILESYSTEMS: "hdfs://here/"}, []),
    ({FILESYSTEMS: "hdfs://here, hdfs://there/,hdfs://there"}, ["hdfs://there"]),
    ({"spark.yarn.access.namenodes": "hdfs://there"}, ["hdfs://there"]),
    ({"spark.sql.catalogImplementation": "hive", FILESYSTEMS: "hdfs://there"}, [HIVE, "hdfs://there"]),
)


def named(spec: StreamSpec, connection: dict[str, str] | None = None) -> list[str]:
    return [each.service for each in uncounted_tokens(spec, connection or {}, "hdfs://here")]


@pytest.mark.parametrize(("conf", "services"), NAMED)
def test_a_service_is_named_by_the_confs_with_which_spark_gets_its_tokens(
    conf: dict[str, str], services: list[str]
) -> None:
    assert named(replace(TICKET_SPEC, conf=conf)) == services
    assert named(replace(TICKET_SPEC, credentials=ProxyUserCredentials("ann"), conf=conf)) == services
    assert named(TICKET_SPEC, conf) == services, "a connection's confs are its streams'"


def test_what_is_declared_counts_before_the_connection() -> None:
    spec = replace(TICKET_SPEC, conf={"spark.sql.catalogImplementation": "in-memory", "spark.x": SecretRef("env:X")})
    assert named(spec, {"spark.sql.catalogImplementation": "hive"}) == []


def test_a_job_that_makes_its_own_tokens_or_has_a_limit_is_not_warned_of() -> None:
    conf = {"spark.sql.catalogImplementation": "hive", FILESYSTEMS: "hdfs://there"}
    assert named(replace(TICKET_SPEC, credentials=KeytabCredentials("s@EXAMPLE.COM", "/s.keytab"), conf=conf)) == []
    assert named(replace(TICKET_SPEC, restart=RestartPolicy(max_age=timedelta(hours=20)), conf=conf)) == []


def test_a_plan_says_which_end_is_not_counted_and_what_to_declare() -> None:
    spec = replace(TICKET_SPEC, conf={"spark.sql.catalogImplementation": "hive"})
    shown = str(explained(CLUSTER, spec, SparkEngine(lambda: DEFAULTS))).splitlines()
    (warning,) = (line for line in shown if "the Hive metastore" in line)
    assert warning.startswith("# its conf names the Hive metastore, and the horizon does not count")
    assert "a day after its issue" in warning
    assert warning.endswith("restart.max_age sets a limit")
    assert "does not count" not in str(explained(CLUSTER, TICKET_SPEC, SparkEngine(lambda: DEFAULTS)))


def test_a_horizon_is_shown_with_what_it_does_not_count(life: Life) -> None:
    """As it was submitted: what was declared since is the next generation's."""
    life.run = replace(life.run, spec=replace(SPEC, conf={"fake.service": "a vault"}))
    life.begin()
    verdict = life.watch()
    assert verdict.to_json()["uncounted"] == ["a vault"]
    table = " ".join(" ".join(lines(streams_table({"orders": verdict}))).split())
    assert "not counted" in table
    life.run = replace(life.run, spec=SPEC)
    assert life.watch().credentials.uncounted == ("a vault",)


def test_a_horizon_that_counts_all_there_is_has_no_more_words(life: Life) -> None:
    assert life.watch().credentials.uncounted == (), "nothing was ever submitted"
    life.begin()
    verdict = life.watch()
    assert (verdict.credentials.uncounted, verdict.to_json()["uncounted"]) == ((), [])
    assert "not counted" not in " ".join(lines(streams_table({"orders": verdict})))
