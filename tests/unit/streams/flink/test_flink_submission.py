"""From a stream's declaration to the configuration of one generation, and to the few words of Flink's client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from airflow_kstream.model.clusters.cluster import ClientSettings, Cluster
from airflow_kstream.model.clusters.queue import Queue, Queues, Size
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.deploy import FlinkDeploy, SavepointFormat, Savepoints
from airflow_kstream.model.streams.flink_job import flink_job_id
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.installations import FlinkInstallation
from airflow_kstream.model.streams.resume import NOTHING, ResumePoint
from airflow_kstream.model.streams.stream import FlinkStreamSpec, KeytabCredentials, ProxyUserCredentials
from airflow_kstream.model.streams.submission import Submission, SubmissionOrder
from airflow_kstream.policy.streams.flink.flink_needs import flink_needs, heartbeat_timeout
from airflow_kstream.policy.streams.flink.flink_submission import flink_submission
from airflow_kstream.policy.streams.restart.watchable import queue_obstacle
from airflow_kstream.supervise.streams.restart.dry_run import explained
from tests.simulated.flink import FLINK, FLINK_SPEC, SimFlink
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs, SimYarn

KEYTAB = KeytabCredentials("orders@EXAMPLE.COM", keytab="/etc/orders.keytab")
DEPLOYED = FlinkDeploy(
    queue="streams",
    main_class="com.example.Orders",
    jars=("/opt/udf.jar",),
    files=("/opt/orders.conf",),
    environment={"TZ": "UTC"},
    parallelism=4,
    slots=2,
    jobmanager_memory="1600m",
    taskmanager_memory="4g",
    lib_dirs=("/flink/lib", "hdfs:///flink/plugins"),
    rest_ports="50100-50200",
)


def with_conf(conf: Mapping[str, str]) -> Cluster:
    return replace(CLUSTER, client=ClientSettings(flink_conf=conf))


def planned(
    spec: FlinkStreamSpec = FLINK_SPEC,
    *,
    cluster: Cluster = CLUSTER,
    client: FlinkInstallation = FLINK,
    resume: ResumePoint | None = NOTHING,
) -> Submission:
    return flink_submission(SubmissionOrder(cluster, spec, 3, "abc", resume), client)


def settings(plan: Submission) -> dict[str, str]:
    return {key: str(setting.value) for key, setting in plan.settings.items()}


def test_the_clients_words_name_the_job_and_nothing_else() -> None:
    """Options after `-s` are not the client's own configuration any longer."""
    plan = planned(replace(FLINK_SPEC, deploy=DEPLOYED, arguments=("--topic", "orders"), credentials=KEYTAB))
    assert plan.argv() == (
        *("/opt/flink/bin/flink", "run-application", "-c", "com.example.Orders"),
        *("hdfs:///apps/orders.jar", "--topic", "orders"),
    )


@pytest.mark.parametrize(
    ("version", "verb", "obstacle"),
    [
        ((1, 20, 3), "run-application", ""),
        ((2, 1, 1), "run", ""),
        ((1, 19, 2), "run-application", "/opt/flink is Flink 1.19.2; supported are 1.20 and 2.x"),
        ((3, 0), "run-application", "/opt/flink is Flink 3.0; supported are 1.20 and 2.x"),
    ],
)
def test_the_word_that_starts_an_application_is_its_versions(
    version: tuple[int, ...], verb: str, obstacle: str
) -> None:
    plan = planned(client=replace(FLINK, version=version))
    assert (plan.argv()[1], plan.obstacle) == (verb, obstacle)


def test_each_generation_has_a_job_of_its_own_that_is_known_before() -> None:
    told = settings(planned())
    job = flink_job_id(StreamId("orders", "/kstream"), 3, "abc")
    assert told["$internal.pipeline.job-id"] == job
    assert len(job) == 32
    assert int(job, 16) != int(flink_job_id(StreamId("orders", "/kstream"), 4, "abc"), 16)


def test_an_application_is_found_fenced_and_run_once() -> None:
    told = settings(planned(replace(FLINK_SPEC, conf={**FLINK_SPEC.conf, "yarn.tags": "team-a"}, deploy=DEPLOYED)))
    stream = StreamId("orders", "/kstream")
    assert told["yarn.tags"] == f"kstream,{stream.tag},{stream.generation_tag(3)},team-a"
    assert told["yarn.application-attempts"] == "1"
    assert told["yarn.ship-files"].split(";") == [
        *("/opt/orders.conf", "/opt/udf.jar"),
        f"hdfs://simulated{stream.folder}/fence-000003-abc",
        "/opt/kstream-flink.jar",
    ]


def test_checkpoints_lie_on_the_clusters_filesystem_and_stay() -> None:
    told = settings(planned())
    assert told["execution.checkpointing.dir"] == "hdfs://simulated/flink/orders"
    assert told["execution.checkpointing.savepoint-dir"] == "hdfs://simulated/flink/orders/savepoints"
    assert told["execution.checkpointing.externalized-checkpoint-retention"] == "RETAIN_ON_CANCELLATION"
    assert told["execution.checkpointing.num-retained"] == "3"
    elsewhere = replace(
        FLINK_SPEC, checkpoints=("hdfs://simulated/flink/orders/",), savepoints=Savepoints("/flink/saved")
    )
    assert settings(planned(elsewhere))["execution.checkpointing.dir"] == "hdfs://simulated/flink/orders"
    assert settings(planned(elsewhere))["execution.checkpointing.savepoint-dir"] == "hdfs://simulated/flink/saved"


def test_a_generation_begins_where_its_claim_says() -> None:
    told = settings(planned(resume=ResumePoint("/flink/orders/x/chk-7", 7, made_by=2)))
    assert told["execution.state-recovery.path"] == "hdfs://simulated/flink/orders/x/chk-7"
    assert told["execution.state-recovery.claim-mode"] == "NO_CLAIM"
    assert "execution.state-recovery.ignore-unclaimed-state" not in told
    dropping = settings(planned(resume=ResumePoint("/x", 7, drops_unmapped=True)))
    assert dropping["execution.state-recovery.ignore-unclaimed-state"] == "true"
    assert not [key for key in settings(planned()) if key.startswith("execution.state-recovery")]


def test_tokens_of_new_taskmanagers_can_be_renewed() -> None:
    told = settings(planned())
    assert told["security.kerberos.token.provider.hadoopfs.renewer"] == "rm/_HOST@EXAMPLE.COM"
    assert told["security.delegation.tokens.renewal.retry.backoff"] == "10 min"
    slower = planned(replace(FLINK_SPEC, conf={"security.delegation.tokens.renewal.retry.backoff": "5 min"}))
    assert settings(slower)["security.delegation.tokens.renewal.retry.backoff"] == "5 min"


def test_a_job_with_a_keytab_uses_nobodys_ticket() -> None:
    told = settings(planned(replace(FLINK_SPEC, credentials=KEYTAB)))
    assert told["security.kerberos.login.keytab"] == "/etc/orders.keytab"
    assert told["security.kerberos.login.principal"] == "orders@EXAMPLE.COM"
    assert told["security.kerberos.login.use-ticket-cache"] == "false"


def test_a_proxied_user_gets_tokens_that_are_made_for_it() -> None:
    plan = planned(replace(FLINK_SPEC, credentials=ProxyUserCredentials("alice")))
    assert plan.launched_as is not None
    assert plan.launched_as.do_as == "alice"
    assert settings(plan)["security.delegation.tokens.enabled"] == "false"
    command = settings(plan)["yarn.container-start-command-template"]
    assert "-Dsecurity.delegation.tokens.enabled=true" in command
    assert planned().launched_as is None


def test_a_declaration_wins_over_its_connection_and_the_protocol_over_both() -> None:
    cluster = with_conf({"taskmanager.memory.process.size": "2g", "state.backend.type": "hashmap", "a.b": "c"})
    conf = {"state.backend.type": "rocksdb"}
    told = planned(replace(FLINK_SPEC, conf=conf, deploy=DEPLOYED), cluster=cluster).settings
    sources = {key: (told[key].value, told[key].origin.source) for key in ("state.backend.type", "a.b")}
    assert sources == {"state.backend.type": ("rocksdb", "spec"), "a.b": ("c", "connection simulated")}
    assert told["taskmanager.memory.process.size"].value == "4g"
    assert told["yarn.provided.lib.dirs"].value == "hdfs://simulated/flink/lib;hdfs:///flink/plugins"
    assert told["parallelism.default"].value == "4"
    assert told["rest.bind-port"].value == "50100-50200"
    assert told["containerized.taskmanager.env.TZ"].value == told["containerized.master.env.TZ"].value == "UTC"


def test_java_gets_what_its_flink_needs() -> None:
    told = planned(client=replace(FLINK, java={"env.java.opts.all": "--add-opens=a"})).settings["env.java.opts.all"]
    assert (told.value, told.origin.source) == ("--add-opens=a", "/opt/flink/conf")


@pytest.mark.parametrize(
    ("spec", "cluster", "why"),
    [
        ({"conf": {"high-availability.type": "zookeeper"}}, CLUSTER, "sets high-availability.type"),
        (
            {"deploy": FlinkDeploy(environment={"PLAIN": SecretRef("conn:orders")})},
            CLUSTER,
            "takes PLAIN from a secret",
        ),
        ({}, with_conf({"yarn.application-attempts": "2"}), "sets yarn.application-attempts"),
    ],
)
def test_what_belongs_to_the_supervisor_is_refused_again(spec: dict[str, Any], cluster: Cluster, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        planned(replace(FLINK_SPEC, **spec), cluster=cluster)


def test_secrets_are_in_no_line_that_anybody_sees() -> None:
    conf = {"s3.secret-key": SecretRef("conn:orders")}
    spec, cluster = replace(FLINK_SPEC, conf=conf), with_conf({"s3.other.password": "hunter2"})
    plan = planned(spec, cluster=cluster)
    assert set(plan.secret_conf) == {"s3.secret-key", "s3.other.password"}
    assert not set(plan.secret_conf) & set(plan.settings)
    shown = str(explained(cluster, spec, SimFlink(SimHdfs(SimClock()), SimYarn(SimClock()))))
    assert "hunter2" not in shown + repr(plan)
    assert "s3.secret-key=***  # conn:orders, looked up right before the submission" in shown


def test_a_plan_shows_each_line_with_its_source_and_its_reason() -> None:
    shown = str(explained(CLUSTER, FLINK_SPEC, SimFlink(SimHdfs(SimClock()), SimYarn(SimClock()))))
    assert "execution.target: yarn-application  # kstream: each stream is an application of its own" in shown
    assert "execution.checkpointing.interval: 30s  # spec" in shown
    assert "yarn.application.name: orders  # spec: name" in shown
    assert "of /opt/flink/conf only env.java.opts.* count" in shown


def notes(conf: dict[str, str], connection: dict[str, str] | None = None, resume: ResumePoint | None = None) -> str:
    plan = planned(replace(FLINK_SPEC, conf=conf), cluster=with_conf(connection or {}), resume=resume)
    return "\n".join(plan.notes)


def test_a_submission_knows_where_it_begins() -> None:
    assert "it begins with" not in notes({}, resume=NOTHING)


@pytest.mark.parametrize(("generation", "follows", "waits"), [(0, True, True), (1, False, True), (2, True, False)])
def test_a_plan_says_where_its_generation_begins(generation: int, follows: bool, waits: bool) -> None:
    """The first one waits for a person. Where nobody knows its number, it may be that one or a later one."""
    engine = SimFlink(SimHdfs(SimClock()), SimYarn(SimClock()))
    said = "\n".join(explained(CLUSTER, FLINK_SPEC, engine, generation).notes)
    assert ("it begins with what the generation before it left" in said) is follows
    assert ("it waits for a person's word, unless one was said: `kstream streams start orders" in said) is waits
    assert ("generation 0" in said) is (generation == 0)


def test_a_plan_notes_that_nothing_sets_the_interval_of_checkpoints() -> None:
    interval = {"execution.checkpointing.interval": "30s"}
    lacks = "unless the job sets one itself, it makes no checkpoints"
    assert lacks in notes({})
    assert lacks not in notes(interval) + notes({}, interval)


def test_a_plan_notes_that_tls_keeps_a_job_from_its_marker() -> None:
    fails = "the jar that stops the job at its marker speaks no TLS"
    assert fails in notes({}, {"security.ssl.rest.enabled": "true"})
    assert fails not in notes({"security.ssl.rest.enabled": "false"})


def test_a_plan_notes_what_kind_of_savepoint_a_stop_makes() -> None:
    plan = planned(replace(FLINK_SPEC, savepoints=Savepoints(format=SavepointFormat.CANONICAL)))
    assert "the jar that stops the job at its marker makes native savepoints" in "; ".join(plan.notes)
    assert "native savepoints" not in notes({})


def test_a_plan_names_a_filesystem_that_the_jobs_tokens_miss() -> None:
    spec = replace(FLINK_SPEC, arguments=("--from", "hdfs://other/a", "--to=hdfs://simulated/b;hdfs:///c"))
    known = replace(spec, conf={"security.kerberos.access.hadoopFileSystems": "hdfs://other"})
    assert "arguments name hdfs://other, and the job gets no token of it" in "; ".join(planned(spec).notes)
    assert "gets no token" not in "; ".join(planned(known).notes)


def test_a_plan_names_all_that_this_host_lacks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CLASSPATH", raising=False)
    plan = explained(CLUSTER, FLINK_SPEC, SimFlink(SimHdfs(SimClock()), SimYarn(SimClock())))
    blocked = "\n".join(plan.blocked)
    for lacks in ("has none in flink_homes", "needs HADOOP_CLASSPATH"):
        assert lacks in blocked


def test_a_job_without_a_driver_names_its_own_process() -> None:
    spec = replace(FLINK_SPEC, credentials=ProxyUserCredentials("alice", refresh=True))
    shown = str(explained(CLUSTER, spec, SimFlink(SimHdfs(SimClock()), SimYarn(SimClock()))))
    assert "and its JobManager confirms them" in shown
    assert "driver" not in shown


def test_a_queue_needs_room_for_all_slots() -> None:
    needs = flink_needs(CLUSTER, replace(FLINK_SPEC, deploy=replace(DEPLOYED, parallelism=5)))
    sizes = {name: size.memory for name, size in needs.containers.items()}
    assert (sizes, needs.numbers) == ({"JobManager": 1600, "TaskManager": 4096}, {"TaskManager": 3})
    assert (needs.queue, needs.declared) == ("streams", True)
    assert needs.files == ("hdfs:///apps/orders.jar", "hdfs://simulated/flink/lib", "hdfs:///flink/plugins")
    usual = flink_needs(with_conf({"jobmanager.memory.process.size": "1 gb"}), FLINK_SPEC)
    assert {name: size.memory for name, size in usual.containers.items()} == {"JobManager": 1024, "TaskManager": None}
    assert (usual.queue, usual.declared) == ("default", False)


@pytest.mark.parametrize(
    ("parallelism", "says"),
    [
        (2, "its JobManager and one TaskManager need 5696 MiB, and queue root.streams never has more than 4095 MiB"),
        (512, "its JobManager and 256 TaskManagers need 1050176 MiB, and queue root.streams never has more"),
    ],
)
def test_a_queue_without_room_tells_how_many_containers_it_lacks(parallelism: int, says: str) -> None:
    small = Queue("root.streams", most=Size(4095), largest=Size(4095))
    needs = flink_needs(CLUSTER, replace(FLINK_SPEC, deploy=replace(DEPLOYED, parallelism=parallelism)))
    obstacle = queue_obstacle(Queues((small,), complete=True), needs)
    assert says in obstacle
    assert obstacle.count("TaskManager needs 4096 MiB") == 1
    assert len(obstacle) < 250


@pytest.mark.parametrize(("text", "seconds"), [("50 s", 50), ("80000", 80), ("2 min", 120), ("", 50), ("soon", 50)])
def test_taskmanagers_go_on_without_their_jobmanager_for_a_heartbeats_timeout(text: str, seconds: int) -> None:
    assert heartbeat_timeout({"heartbeat.timeout": text} if text else {}).total_seconds() == seconds


@pytest.mark.parametrize(
    "conf",
    [
        *(
            {key: "$(id)"}
            for key in ("env.java.opts", "env.java.opts.all", "env.java.opts.client", "env_java-opts/client")
        ),
        {"env.java.home": "/tmp/java"},
        {"env.ssh.opts": "-o ProxyCommand=id"},
        {"taskmanager.host": "a\nenv.java.opts.client: $(id)"},
        {"security.kerberos.krb5-conf.path": "/etc/neighbour.keytab"},
        {"yarn.flink-dist-jar": "/etc/neighbour.keytab"},
        *({f"env.{name}.dir": "/srv/neighbour"} for name in ("log", "pid", "hadoop.conf", "yarn.conf")),
        *({f"fs.hdfs.{name}": "/srv/neighbour"} for name in ("hadoopconf", "hdfsdefault", "hdfssite")),
        {"yarn.properties-file.location": "/srv/neighbour"},
        *(
            {"yarn.staging-directory": place}
            for place in ("file:///srv", "FILE:/srv", " file:///srv", "srv", "s3a://b/c")
        ),
        {"flink.hadoop.fs.default.name": "file:///"},
    ],
    ids=str,
)
def test_a_declaration_runs_nothing_on_a_worker_and_ships_nothing_of_it(conf: dict[str, str]) -> None:
    """config.sh greps the client's options and evaluates them; what it may ship is judged by `allow`."""
    with pytest.raises(InvalidInput):
        planned(replace(FLINK_SPEC, conf=conf))


def test_options_of_a_jobs_own_processes_are_the_declarations() -> None:
    conf = {"env.java.opts.jobmanager": "-Da=b", "env.java.opts.taskmanager": "-Da=b"}
    assert conf.items() <= settings(planned(replace(FLINK_SPEC, conf={**FLINK_SPEC.conf, **conf}))).items()


@pytest.mark.parametrize(
    "deploy",
    [
        FlinkDeploy(files=("hdfs:///a;/etc/neighbour.keytab",)),
        FlinkDeploy(jars=("hdfs:///a.jar;/etc/neighbour.keytab",)),
        FlinkDeploy(environment={"A": "b\nenv.java.opts.client: $(id)"}),
    ],
    ids=str,
)
def test_one_file_is_one_file_and_one_variable_one_line(deploy: FlinkDeploy) -> None:
    with pytest.raises(InvalidInput, match=r"semicolon|line break"):
        planned(replace(FLINK_SPEC, deploy=deploy))
