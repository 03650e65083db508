"""From a stream's declaration to the words of one spark-submit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_kstream.model.clusters.cluster import ClientSettings, Cluster, Inherited
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.known_faults import HadoopVersion
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.installations import SparkInstallation
from airflow_kstream.model.streams.stream import KeytabCredentials, ProxyUserCredentials, StreamSpec, TicketCredentials
from airflow_kstream.model.streams.submission import SparkDefaults, Submission, SubmissionOrder
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.policy.streams.spark.spark_stream import Helpers, stream_submission
from tests.simulated.spark_homes import CLUSTER, DEFAULTS
from tests.simulated.yarn import STREAM, TICKET_SPEC

HELPERS = Helpers("/opt/kstream_driver.py", "/opt/kstream_tokens.py", "/opt/kstream_launcher.py")


def with_hadoop(version: str) -> SparkDefaults:
    return replace(DEFAULTS, installation=SparkInstallation(DEFAULTS.binary, hadoop=HadoopVersion(version)))


def planned(spec: StreamSpec, *, cluster: Cluster = CLUSTER, spark: SparkDefaults = DEFAULTS) -> Submission:
    return stream_submission(SubmissionOrder(cluster, spec, 3, "abc"), spark, HELPERS)


def confs(plan: Submission) -> dict[str, str]:
    pairs = [words for argument in plan.arguments if (words := argument.words)[0] == "--conf"]
    return dict(words[1].split("=", 1) for words in pairs)


def source_of(plan: Submission, word: str) -> str:
    return next(a.origin.source for a in plan.arguments if any(w == word or w.startswith(word) for w in a.words))


def value_after(plan: Submission, flag: str) -> str:
    argv = plan.argv()
    return argv[argv.index(flag) + 1]


def test_the_driver_runs_on_the_cluster_and_nobody_waits_for_it() -> None:
    plan = planned(TICKET_SPEC)
    assert plan.argv()[:5] == ("/opt/spark/bin/spark-submit", "--master", "yarn", "--deploy-mode", "cluster")
    assert confs(plan)["spark.yarn.submit.waitAppCompletion"] == "false"
    assert confs(plan)["spark.yarn.maxAppAttempts"] == "1"


def test_yarn_shows_what_people_call_the_stream_and_finds_it_by_its_name() -> None:
    plan = planned(replace(TICKET_SPEC, app_name="Orders.Stream v2"))
    assert value_after(plan, "--name") == "Orders.Stream v2"
    assert confs(plan)["spark.yarn.tags"] == confs(planned(TICKET_SPEC))["spark.yarn.tags"]
    [origin] = [argument.origin for argument in plan.arguments if argument.words[0] == "--name"]
    assert (origin.source, origin.why) == ("spec", "app_name")
    assert value_after(planned(TICKET_SPEC), "--name") == TICKET_SPEC.name


def test_a_plan_names_what_the_connection_adds_and_no_value_of_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK3_HOME", "/of/this/worker")
    added: dict[str, str | Inherited] = {"SPARK_MAJOR_VERSION": "3", "SPARK_HOME": Inherited("SPARK3_HOME")}
    plan = planned(TICKET_SPEC, cluster=replace(CLUSTER, client=ClientSettings(added)))
    assert plan.notes == (
        "the client's environment has SPARK_HOME as the worker's SPARK3_HOME: connection prod",
        "the client's environment has SPARK_MAJOR_VERSION=3: connection prod",
    )
    assert plan.argv() == planned(TICKET_SPEC).argv()
    assert planned(TICKET_SPEC).notes == ()


def test_the_python_of_a_job_is_the_declarations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/of/this/worker")
    assert not any("PYSPARK" in key for key in confs(planned(TICKET_SPEC)))
    said = confs(planned(replace(TICKET_SPEC, deploy=Deploy(environment={"PYSPARK_PYTHON": "./env/bin/python"}))))
    assert {key for key, value in said.items() if value == "./env/bin/python"} == {
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON",
        "spark.executorEnv.PYSPARK_PYTHON",
    }


def test_the_clusters_own_queue_is_for_streams_without_a_queue() -> None:
    cluster = replace(CLUSTER, spark_conf={"spark.yarn.queue": "shared"})
    plan = planned(TICKET_SPEC, cluster=cluster, spark=SparkDefaults())
    assert (value_after(plan, "--queue"), source_of(plan, "--queue")) == ("shared", "connection prod")
    assert "spark.yarn.queue" not in confs(plan)
    assert value_after(planned(TICKET_SPEC, cluster=cluster), "--queue") == "streams"
    mine = replace(TICKET_SPEC, deploy=Deploy(queue="mine"))
    assert value_after(planned(mine, cluster=cluster), "--queue") == "mine"


def test_an_application_carries_tags_of_its_stream_and_generation_and_the_users_own() -> None:
    spec = replace(TICKET_SPEC, conf={"spark.yarn.tags": "team-a"})
    tags = confs(planned(spec))["spark.yarn.tags"].split(",")
    assert tags == ["kstream", f"kstream-stream-{STREAM}", f"kstream-gen-{STREAM}-3", "team-a"]


def test_the_generations_fence_is_localised_with_the_files_of_the_spec() -> None:
    spec = replace(TICKET_SPEC, deploy=Deploy(files=("/etc/jaas.conf",)))
    assert value_after(planned(spec), "--files") == f"/etc/jaas.conf,hdfs://prod{STREAM.folder}/fence-000003-abc"


def test_the_spec_wins_over_the_connection_and_the_connection_over_the_default() -> None:
    spec = replace(TICKET_SPEC, conf={"spark.executor.memory": "4g"}, deploy=Deploy(queue="mine"))
    plan = planned(spec)
    assert confs(plan)["spark.executor.memory"] == "4g"
    assert source_of(plan, "spark.executor.memory") == "spec"
    assert source_of(plan, "spark.eventLog.enabled") == "connection prod"
    assert value_after(plan, "--queue") == "mine"
    assert value_after(planned(TICKET_SPEC), "--queue") == "streams"
    assert source_of(planned(TICKET_SPEC), "--queue") == "connection spark_prod"


def test_every_conf_that_the_user_did_not_set_has_a_reason() -> None:
    plan = planned(replace(TICKET_SPEC, credentials=KeytabCredentials("s@EXAMPLE.COM", "/s.keytab")))
    ours = [argument for argument in plan.arguments if argument.origin.source == "kstream"]
    assert len(ours) > 5
    assert all(argument.origin.why for argument in ours)


@pytest.mark.parametrize(
    ("credentials", "expected"),
    [
        (
            KeytabCredentials("s/edge@EXAMPLE.COM", "/s.keytab"),
            ("--principal", "s/edge@EXAMPLE.COM", "--keytab", "/s.keytab"),
        ),
        (ProxyUserCredentials("alice"), ("--proxy-user", "alice")),
        (TicketCredentials(), ()),
    ],
)
def test_each_way_of_authenticating_has_its_flags_and_no_others(
    credentials: KeytabCredentials | TicketCredentials | ProxyUserCredentials, expected: tuple[str, ...]
) -> None:
    words = planned(replace(TICKET_SPEC, credentials=credentials)).argv()
    assert tuple(word for word in words if word in expected) == expected
    others = {"--principal", "--keytab", "--proxy-user"} - set(expected)
    assert not others & set(words)


def test_a_secret_conf_is_neither_in_argv_nor_in_repr() -> None:
    spec = replace(TICKET_SPEC, conf={"spark.ssl.keyPassword": "hunter2"})
    plan = planned(spec)
    assert "hunter2" not in " ".join(plan.argv("/private/secret.properties"))
    assert "hunter2" not in repr(plan)
    assert "hunter2" not in repr(spec)
    assert plan.secret_conf == {"spark.ssl.keyPassword": "hunter2"}
    assert plan.argv("/private/secret.properties")[1:3] == ("--properties-file", "/private/secret.properties")


def test_what_is_kept_elsewhere_goes_the_private_way_whatever_its_name() -> None:
    spec = replace(TICKET_SPEC, conf={"spark.x.plain": SecretRef("conn:orders"), "spark.y": "1"})
    plan = planned(spec)
    assert plan.secret_conf == {"spark.x.plain": SecretRef("conn:orders")}
    assert "spark.x.plain=" not in " ".join(plan.argv())
    assert "conn:orders" not in " ".join(plan.argv())
    with pytest.raises(InvalidInput, match="conn:orders was not looked up"):
        plan.revealed()


def test_tags_that_refer_to_a_secret_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"conf takes spark\.yarn\.tags from a secret"):
        planned(replace(TICKET_SPEC, conf={"spark.yarn.tags": SecretRef("conn:orders")}))


def test_a_conf_that_the_protocol_owns_is_refused_in_a_connection_too() -> None:
    cluster = replace(CLUSTER, spark_conf={"spark.master": "local"})
    with pytest.raises(InvalidInput, match=r"spark_conf of connection prod sets spark\.master, .*: master is yarn"):
        planned(TICKET_SPEC, cluster=cluster)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        (
            "spark.yarn.maxAppAttempts",
            "4",
            "maxAppAttempts='4'; allowed is 1: the supervisor owns",
        ),
        ("spark.submit.deployMode", "client", "deploy mode is cluster"),
        ("spark.kerberos.keytab", "/x", "use credentials.keytab"),
        ("spark.kstream.generation", "9", "belongs to the supervisor"),
    ],
)
def test_a_conf_that_the_protocol_owns_is_refused_by_name(key: str, value: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        planned(replace(TICKET_SPEC, conf={key: value}))


def test_a_workaround_is_added_only_for_the_client_that_needs_it() -> None:
    key = "spark.hadoop.fs.hdfs.impl.disable.cache"
    assert confs(planned(TICKET_SPEC, spark=with_hadoop("2.7.7")))[key] == "true"
    assert key not in confs(planned(TICKET_SPEC, spark=with_hadoop("3.4.2")))


def test_checkpoints_on_another_filesystem_get_tokens_of_their_own() -> None:
    spec = replace(TICKET_SPEC, checkpoints=("hdfs://other/checkpoint", "hdfs://prod/checkpoint", "/checkpoint"))
    assert confs(planned(spec))["spark.kerberos.access.hadoopFileSystems"] == "hdfs://other"


def test_a_stream_acts_as_itself() -> None:
    own = replace(TICKET_SPEC, credentials=KeytabCredentials("s@EXAMPLE.COM", "/s.keytab"))
    assert identity_of(own, CLUSTER) == Identity("s@EXAMPLE.COM", keytab="/s.keytab")
    proxied = replace(TICKET_SPEC, credentials=ProxyUserCredentials("alice"))
    assert identity_of(proxied, CLUSTER) == replace(CLUSTER.watcher, do_as="alice")
    assert identity_of(TICKET_SPEC, CLUSTER) == CLUSTER.watcher


def test_a_ticket_for_another_principal_needs_its_own_keytab_or_cache() -> None:
    with pytest.raises(InvalidInput, match="needs a keytab or a cache"):
        identity_of(replace(TICKET_SPEC, credentials=TicketCredentials(principal="other@EXAMPLE.COM")), CLUSTER)
