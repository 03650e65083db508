"""A dry run prints every word with its reason and its source, and touches nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.stream import KeytabCredentials, StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import StopPolicy
from airflow_kstream.model.streams.submission import SparkDefaults
from airflow_kstream.supervise.streams.checkpoint.adopt import adopt
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.restart.dry_run import explained
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.streams.restart.submit import preflight
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from tests.simulated.servers import ONE_WEEK, SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.spark_homes import CLUSTER, DEFAULTS
from tests.simulated.yarn import TICKET_SPEC, application

ENGINE = SparkEngine(lambda: DEFAULTS)


def test_each_word_has_its_source_and_ours_have_their_reasons() -> None:
    """The cluster's addresses lead nowhere: any request to a server would fail here."""
    spec = replace(
        TICKET_SPEC, credentials=KeytabCredentials("s@EXAMPLE.COM", "/s.keytab"), conf={"spark.executor.memory": "4g"}
    )
    lines = str(explained(CLUSTER, spec, ENGINE)).splitlines()
    assert "# as s@EXAMPLE.COM; generation 0 and NONCE stand for the claim's own" in lines
    assert any("--principal s@EXAMPLE.COM --keytab /s.keytab  # spec: credentials" in line for line in lines)
    assert "  --conf spark.executor.memory=4g  # spec" in lines
    assert "  --queue streams  # connection spark_prod: queue" in lines
    assert any("spark.yarn.maxAppAttempts=1  # kstream: the supervisor owns restarts" in line for line in lines)


def test_a_secret_is_named_but_not_shown() -> None:
    """A connection may hold one in clear: Airflow encrypts it."""
    shown = str(explained(replace(CLUSTER, spark_conf={"spark.ssl.keyPassword": "hunter2"}), TICKET_SPEC, ENGINE))
    assert "hunter2" not in shown
    assert "spark.ssl.keyPassword=***" in shown


def test_a_secret_is_named_by_its_place_and_not_looked_up() -> None:
    """The place does not exist."""
    deploy = Deploy(environment={"DB_PASSWORD": SecretRef("conn:orders")})
    shown = str(explained(CLUSTER, replace(TICKET_SPEC, deploy=deploy), ENGINE))
    for key in ("spark.yarn.appMasterEnv.DB_PASSWORD", "spark.executorEnv.DB_PASSWORD"):
        assert f"{key}=***  # conn:orders, looked up right before the submission" in shown


def test_the_keytabs_copy_is_looked_for_where_spark_puts_it() -> None:
    app, staged = application(1, ApplicationState.FINISHED), {"spark.yarn.stagingDir": "/staging/"}
    assert list(ENGINE.leftovers(app, CLUSTER, TICKET_SPEC)) == ["/user/streamer/.sparkStaging/application_1_0001"]
    assert list(ENGINE.leftovers(app, CLUSTER, replace(TICKET_SPEC, conf=staged))) == [
        "/staging/streamer/.sparkStaging/application_1_0001",
        "/staging/.sparkStaging/application_1_0001",
    ]


def test_a_host_without_a_client_shows_every_word_and_first_what_is_missing() -> None:
    """DEFAULTS names a spark-submit that does not exist."""
    shown = str(explained(CLUSTER, TICKET_SPEC, ENGINE))
    assert shown.startswith("# blocked: can't be submitted from here: this host has no Spark client: spark-submit:")
    assert f"--name {TICKET_SPEC.name}" in shown


def test_a_host_without_a_client_refuses_a_submission_and_still_observes_the_stream() -> None:
    run = StreamRun(session_of(SimHdfs(clock := SimClock()), SimYarn(clock)), TICKET_SPEC, ENGINE)
    with pytest.raises(InvalidInput, match="this host has no Spark client"):
        preflight(run)
    assert observe(replace(run, spec=replace(TICKET_SPEC, checkpoints=()))).claim is None


def test_the_connection_of_the_client_is_read_once_and_only_for_a_submission() -> None:
    asked: list[SparkDefaults] = []

    def given() -> SparkDefaults:
        asked.append(DEFAULTS)
        return DEFAULTS

    engine = engine_of(TICKET_SPEC, given)
    engine.renewal_ratio(CLUSTER, TICKET_SPEC)
    assert not asked
    for _ in range(2):
        explained(CLUSTER, TICKET_SPEC, engine)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (replace(TICKET_SPEC, name="Orders"), "name is 'Orders'; allowed is 1 to 50 of a-z"),
        (replace(TICKET_SPEC, conf={"spark.master": "local"}), r"conf sets spark\.master, .*: master is yarn"),
        (replace(TICKET_SPEC, conf={"spark.ssl.keyPassword": "hunter2"}), "keyPassword: a secret in clear"),
        (replace(TICKET_SPEC, arguments=("--password", "hunter2")), "--password: a secret in clear"),
        (replace(TICKET_SPEC, deploy=Deploy(executors=0)), r"deploy\.executors is 0; allowed is a whole number from 1"),
        (replace(TICKET_SPEC, stop=StopPolicy(silence=-ONE_WEEK)), r"stop\.silence"),
    ],
)
def test_a_spec_that_was_built_in_python_is_refused_as_if_it_were_read(spec: StreamSpec, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as planned:
        explained(CLUSTER, spec, ENGINE)
    with pytest.raises(InvalidInput) as read:
        StreamSpec.from_mapping(spec.to_mapping())
    assert str(planned.value) == str(read.value)
    assert "hunter2" not in str(planned.value)
    run = StreamRun(session_of(SimHdfs(clock := SimClock()), SimYarn(clock)), spec, ENGINE)
    for refused in (Reconciler(run).run, Reconciler(run).plan, lambda: adopt(run, "application_1_0001")):
        with pytest.raises(InvalidInput, match=says):
            refused()


def test_a_checkpoint_that_cannot_be_watched_is_refused_before_any_output() -> None:
    spec = replace(TICKET_SPEC, checkpoints=("hdfs://elsewhere/a/c",))
    with pytest.raises(InvalidInput, match="hdfs://elsewhere/a/c lies on hdfs://elsewhere; allowed is hdfs://prod"):
        explained(CLUSTER, spec, ENGINE)


def test_a_refresh_says_what_it_costs_an_absence_and_what_the_network_sees() -> None:
    spec = replace(TICKET_SPEC, credentials=TicketCredentials(refresh=True), arguments=("--fast",))
    shown = str(explained(CLUSTER, spec, ENGINE))
    assert "for 50% of a renew interval then, where planned restarts leave 25% of a max-lifetime" in shown
    assert "# pushed tokens cross the network in clear: WebHDFS without TLS takes their file" in shown
    assert "kstream_launcher.py orders.py --fast  # kstream: the job itself, which kstream_launcher.py runs" in shown
    assert "kstream_tokens.py" in shown
    assert "spark.kstream.tokens=1" in shown


def test_a_refresh_of_a_job_in_java_says_that_it_does_nothing() -> None:
    spec = replace(TICKET_SPEC, credentials=TicketCredentials(refresh=True), application="/opt/orders.jar")
    shown = str(explained(CLUSTER, spec, ENGINE))
    assert "# its tokens are not refreshed, because only PySpark jobs are served yet" in shown
    assert "`kstream tokens push`" in shown
    assert "kstream_launcher" not in shown


def test_without_a_refresh_nothing_of_it_is_shown() -> None:
    shown = str(explained(CLUSTER, TICKET_SPEC, ENGINE))
    assert not [word for word in ("refreshed", "kstream_tokens", "kstream_launcher") if word in shown]
