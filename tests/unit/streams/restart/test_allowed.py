"""A connection bounds what its declarations use: principals, proxied users, secrets, local files, notifiers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_kstream.model.airflow_options import AirflowOptions, NotifyPolicy
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.stream import (
    KeytabCredentials,
    ProxyUserCredentials,
    StreamCredentials,
    StreamSpec,
    TicketCredentials,
)
from airflow_kstream.model.streams.stream_policies import KafkaPolicy
from airflow_kstream.policy.streams.restart.allowed import needs, not_covered, notifier_needs, refusals, words
from airflow_kstream.supervise.clusters.connection import connection_fields
from tests.simulated.flink import FLINK_SPEC

FREE = Cluster("prod", ("http://rm:1",), ("http://nn:1",), "hdfs://ns", Identity("own@R", "/own.keytab"), "/kstream")
STRICT = replace(FREE, allow=Allow())
PLAIN = StreamSpec("orders", TicketCredentials(), "hdfs:///apps/orders.py", checkpoints=("/cp/orders",))
SLACK = "airflow.providers.slack.notifications.slack.SlackNotifier"


def bounded(**patterns: Any) -> Cluster:
    return replace(FREE, allow=Allow(**patterns))


def with_files(*names: str) -> StreamSpec:
    return replace(PLAIN, deploy=Deploy(files=names))


def test_what_the_connection_has_itself_needs_no_word() -> None:
    for credentials in (
        TicketCredentials(),
        TicketCredentials("own@R", refresh=True),
        KeytabCredentials("own@R"),
        KeytabCredentials("own@R", "/own.keytab"),
    ):
        assert not refusals(replace(PLAIN, credentials=credentials), STRICT)


def test_a_connection_without_a_bound_refuses_nothing() -> None:
    risky = replace(PLAIN, credentials=ProxyUserCredentials("hdfs"), application="/etc/x.py")
    assert not refusals(risky, FREE)
    assert refusals(risky, STRICT).to_json() == {"proxy_users": ["hdfs"], "local_files": ["/etc/x.py"]}


@pytest.mark.parametrize(
    ("credentials", "needed"),
    [
        (ProxyUserCredentials("alice"), {"proxy_users": ["alice"]}),
        (KeytabCredentials("etl@R", "/k//etl.keytab"), {"principals": ["etl@R"], "local_files": ["/k/etl.keytab"]}),
        (TicketCredentials("etl@R", cache="FILE:/run/etl"), {"principals": ["etl@R"], "local_files": ["/run/etl"]}),
        (TicketCredentials("etl@R", cache="KCM:0"), {"principals": ["etl@R"], "local_files": ["KCM:0"]}),
        (TicketCredentials(keytab="/k/other.keytab"), {"local_files": ["/k/other.keytab"]}),
    ],
)
def test_credentials_need_their_user_and_their_files(credentials: StreamCredentials, needed: dict[str, Any]) -> None:
    assert needs(replace(PLAIN, credentials=credentials), FREE).to_json() == needed


def test_every_reference_to_a_secret_is_needed_by_its_place() -> None:
    spec = replace(
        PLAIN,
        conf={"spark.a": SecretRef("conn:streams_orders"), "spark.b": SecretRef("file:/run/../proc/self/environ")},
        deploy=Deploy(environment={"KEY": SecretRef("env:AIRFLOW__CORE__FERNET_KEY"), "PLAIN": "text"}),
    )
    all_of_them = ("conn:streams_orders", "env:AIRFLOW__CORE__FERNET_KEY", "file:/proc/self/environ")
    assert needs(spec, FREE).secrets == all_of_them
    assert refusals(spec, bounded(secrets=("conn:streams_*", "var:*"))).secrets == all_of_them[1:]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("/opt/jobs/lib.jar#lib", "/opt/jobs/lib.jar"),
        ("/opt/jobs/../../etc/passwd", "/etc/passwd"),
        ("//etc/passwd", "/etc/passwd"),
        ("file:/etc/passwd", "/etc/passwd"),
        ("FILE:///etc/passwd", "/etc/passwd"),
        ("file://localhost/etc/passwd#x", "/etc/passwd"),
        ("local:/opt/lib.jar", "/opt/lib.jar"),
        ("har:///opt/a.har/b", "har:///opt/a.har/b"),
        ("http://169.254.169.254/latest", "http://169.254.169.254/latest"),
        ("jobs/orders.py", "jobs/orders.py"),
    ],
)
def test_a_file_that_the_client_takes_from_its_host_is_needed_by_its_path(name: str, path: str) -> None:
    assert needs(with_files(name), FREE).local_files == (path,)


@pytest.mark.parametrize("name", ["hdfs:///apps/a.jar", "s3a://bucket/a.jar", "viewfs://cluster/a.jar"])
def test_a_file_that_lies_elsewhere_is_not_the_hosts(name: str) -> None:
    assert not needs(with_files(name), FREE)


def test_each_place_of_a_declaration_that_names_files_counts() -> None:
    spec = replace(
        PLAIN,
        application="/a.py",
        deploy=Deploy(jars=("/b.jar",), files=("/c",), py_files=("/d.py",), archives=("/e.zip",)),
        conf={"spark.yarn.dist.files": "/f,hdfs:///g", "spark.jars.packages": "org.x:y:1", "spark.a": "/h"},
    )
    assert needs(spec, FREE).local_files == ("/a.py", "/b.jar", "/c", "/d.py", "/e.zip", "/f", "org.x:y:1")


def test_a_mount_of_the_host_is_needed_like_its_files() -> None:
    link = "spark.hadoop.fs.viewfs.mounttable.x.link./etc"
    assert needs(replace(PLAIN, conf={link: "file:///etc"}), FREE).local_files == ("/etc",)
    assert not needs(replace(PLAIN, conf={link: "hdfs://ns/etc"}), FREE)


def test_where_the_client_downloads_everything_no_jar_lies_elsewhere() -> None:
    spec = replace(PLAIN, conf={"spark.yarn.dist.forceDownloadSchemes": "*"})
    assert needs(spec, FREE).local_files == ("hdfs:///apps/orders.py",)


@pytest.mark.parametrize("key", ["spark.hadoop.fs.hdfs.impl", "spark.hadoop.fs.AbstractFileSystem.HDFS.impl"])
def test_a_scheme_that_is_given_another_meaning_lies_nowhere_else(key: str) -> None:
    spec = replace(PLAIN, conf={key: "org.apache.hadoop.fs.RawLocalFileSystem"}, deploy=Deploy(files=("s3a://b/x",)))
    assert needs(spec, FREE).local_files == ("hdfs:///apps/orders.py",)


def test_each_target_of_a_mount_is_judged() -> None:
    link = "spark.hadoop.fs.viewfs.mounttable.x.linkNfly../e"
    spec = replace(PLAIN, conf={link: "hdfs://ns/none, file:///etc"})
    assert needs(spec, FREE).local_files == ("/etc",)


@pytest.mark.parametrize("value", ["${env:AWS_SECRET}", "x${env.AWS_SECRET}"])
def test_a_variable_that_the_client_puts_into_a_conf_is_a_secret(value: str) -> None:
    assert needs(replace(PLAIN, conf={"spark.a": value}), FREE).secrets == ("env:AWS_SECRET",)


@pytest.mark.parametrize("name", ["streams_a/../../prod/db", "streams_a%2Fdb", "streams_a\n", "streams_{{ x }}"])
def test_a_secret_that_may_be_another_place_is_covered_by_its_own_text_alone(name: str) -> None:
    spec = replace(PLAIN, conf={"spark.a": SecretRef(f"conn:{name}")})
    assert refusals(spec, bounded(secrets=("conn:streams_*",)))
    assert not refusals(spec, bounded(secrets=(f"conn:{name}",)))


@pytest.mark.parametrize(
    ("key", "value", "needed"),
    [
        ("net.topology.script.file.name", "/tmp/x.sh", "/tmp/x.sh"),
        ("hadoop.security.credential.provider.path", "jceks://file/etc/x", "jceks://file/etc/x"),
        ("hadoop.token.files", "/run/neighbour/tokens", "/run/neighbour/tokens"),
    ],
)
def test_what_hadoops_client_runs_and_reads_is_a_file_of_the_worker(key: str, value: str, needed: str) -> None:
    assert needs(replace(PLAIN, conf={f"spark.hadoop.{key}": value}), FREE).local_files == (needed,)
    assert needs(replace(FLINK_SPEC, conf={f"flink.hadoop.{key}": value}), FREE).local_files == (needed,)


@pytest.mark.parametrize("key", ["io.tmp.dirs", "taskmanager.tmp.dirs", "security.ssl.rest.keystore"])
def test_what_flinks_client_reads_and_writes_is_a_file_of_the_worker(key: str) -> None:
    assert needs(replace(FLINK_SPEC, conf={key: "/srv/neighbour"}), FREE).local_files == ("/srv/neighbour",)


def test_a_staging_folder_of_flinks_lies_on_hdfs_and_needs_nothing_of_a_worker() -> None:
    for folder in ("/staging", "hdfs:///staging", "hdfs://ns/staging"):
        assert not needs(replace(FLINK_SPEC, conf={"yarn.staging-directory": folder}), FREE)


def test_each_broker_is_needed() -> None:
    spec = replace(PLAIN, kafka=KafkaPolicy("b1:9092, b2:9092"))
    assert needs(spec, FREE).brokers == ("b1:9092", "b2:9092")
    assert refusals(spec, bounded(brokers=("b1:*",))).to_json() == {"brokers": ["b2:9092"]}


def test_what_a_notifiers_arguments_reach_is_needed_like_all_else() -> None:
    kwargs = {"smtp_conn_id": "mail", "files": ["/etc/passwd"], "base_url": "http://evil/", "text": "/x", "to": "a@b"}
    spec = replace(PLAIN, notify=NotifyPolicy(SLACK, kwargs))
    needed = {
        "secrets": ["conn:mail"],
        "local_files": ["/etc/passwd"],
        "notifiers": [SLACK],
        "servers": ["http://evil"],
    }
    assert needs(spec, FREE).to_json() == needed


@pytest.mark.parametrize(
    ("kwargs", "needed"),
    [
        ({"template": "/etc/passwd"}, {"local_files": ["/etc/passwd"]}),
        ({"hook_params": {"files": {"a": "/etc/passwd"}}}, {"local_files": ["/etc/passwd"]}),
        ({"files": [["/etc/passwd"]]}, {"local_files": ["/etc/passwd"]}),
        ({"hook_params": {"proxy": "http://evil:3128"}}, {"servers": ["http://evil:3128"]}),
        ({"hook_params": {"slack_conn_id": "x"}}, {"secrets": ["conn:x"]}),
        ({"host": "mail.example.com"}, {"servers": ["mail.example.com"]}),
        ({"server": "[::1]:25"}, {"servers": ["[::1]:25"]}),
    ],
)
def test_arguments_within_arguments_of_a_notifier_count_too(kwargs: Any, needed: Any) -> None:
    assert notifier_needs(NotifyPolicy(SLACK, kwargs)).to_json() == {"notifiers": [SLACK], **needed}


def test_of_a_webhook_only_its_server_is_named_for_the_rest_is_a_secret() -> None:
    notify = NotifyPolicy(SLACK, {"webhook_url": "https://me:s3cret@hooks.example.com/services/s3cret?k=s3cret"})
    missing = not_covered(Allow(notifiers=(SLACK,)), notifier_needs(notify))
    assert missing.to_json() == {"servers": ["https://hooks.example.com"]}
    assert not not_covered(Allow(notifiers=(SLACK,), servers=("https://*.example.com",)), notifier_needs(notify))


@pytest.mark.parametrize(
    "address", ["{{ 'evil/' }}.example.com", "https://evil\\@.example.com", "https://[evil.example.com", "//", "\udc80"]
)
def test_an_ambiguous_address_is_allowed_by_its_own_hash_alone(address: str) -> None:
    needed = notifier_needs(NotifyPolicy(SLACK, {"url": address}))
    assert not_covered(Allow(notifiers=(SLACK,), servers=("*.example.com", "https://*")), needed)
    assert not not_covered(Allow(notifiers=(SLACK,), servers=needed.servers), needed)


@pytest.mark.parametrize(
    ("pattern", "path", "allowed"),
    [
        ("/opt/jobs/", "/opt/jobs/a/b.py", True),
        ("/opt/jobs/", "/opt/jobs-of-others/b.py", False),
        ("/opt/jobs/", "/opt/jobs", False),
        ("/opt/jobs", "/opt/jobs/a.py", False),
        ("/opt/jobs/a.py", "/opt/jobs/a.py", True),
        ("/opt/*/lib/", "/opt/x/lib/a.jar", True),
        ("/opt/*.jar", "/opt/a.jar", True),
        ("/opt/*.jar", "/opt/a.jar.key", False),
        ("/opt/a.jar", "/opt/aXjar", False),
        ("/opt/jobs/", "/opt/jobs/%2e%2e/etc", False),
        ("/opt/jobs/", "/opt/jobs/{a,/etc}", False),
        ("/opt/jobs/*", "/opt/jobs/*", True),
    ],
)
def test_a_pattern_of_paths(pattern: str, path: str, allowed: bool) -> None:
    assert bool(refusals(with_files(path), bounded(local_files=(pattern,)))) is not allowed


def test_a_path_is_judged_by_where_it_leads_on_this_host() -> None:
    links = {"/opt/jobs/link": "/etc/passwd", "/run/secret": "/proc/self/environ"}
    spec = replace(with_files("/opt/jobs/link", "/opt/jobs/a"), conf={"spark.a": SecretRef("file:/run/secret")})
    cluster = bounded(local_files=("/opt/jobs/",), secrets=("file:/run/",))
    missing = refusals(spec, cluster, real=lambda path: links.get(path, path))
    assert missing.to_json() == {"secrets": ["file:/proc/self/environ"], "local_files": ["/etc/passwd"]}


def test_of_a_secret_that_kubernetes_mounts_the_folder_is_to_be_allowed() -> None:
    def real(path: str) -> str:
        folder, _, name = path.rpartition("/")
        return f"{folder}/..2026_11_28_17_00_00.1234567/{name}"

    spec = replace(with_files("/etc/k/a", "/etc/k/b"), conf={"spark.a": SecretRef("file:/run/s/key")})
    missing = refusals(spec, STRICT, real=real)
    assert missing.to_json() == {"secrets": ["file:/run/s/"], "local_files": ["/etc/k/"]}
    assert not refusals(spec, replace(FREE, allow=missing), real=real)


def test_what_the_running_generation_has_is_never_refused() -> None:
    running = replace(with_files("/etc/a"), credentials=KeytabCredentials("etl@R", "/k/etl.keytab"))
    assert not refusals(running, STRICT, running)
    edited = replace(running, arguments=("--fast",), conf={"spark.a": SecretRef("env:KEY")})
    assert refusals(edited, STRICT, running).to_json() == {"secrets": ["env:KEY"]}
    assert refusals(edited, STRICT, running=None).principals == ("etl@R",)


def test_the_lines_of_a_refusal_allow_it() -> None:
    spec = replace(
        with_files("/opt/a.jar", "har:///x/y"),
        credentials=KeytabCredentials("etl@R", "/k/etl.keytab"),
        conf={"spark.a": SecretRef("conn:x"), "spark.b": SecretRef("file:/run/x")},
        notify=NotifyPolicy(SLACK),
    )
    lines = refusals(spec, STRICT)
    fields = connection_fields(
        "prod", {"principal": "own@R", "keytab_path": "/own.keytab", "state_dir": "/k", "allow": lines.to_json()}
    )
    assert fields.allow == lines
    assert not refusals(spec, replace(FREE, allow=fields.allow))
    said = words(lines, "prod")
    assert "connection prod does not allow principals: etl@R; secrets: conn:x, file:/run/x" in said
    assert '"principals": ["etl@R"]' in said


def test_all_notifiers_of_a_declaration_count() -> None:
    options = AirflowOptions(notify=NotifyPolicy("a.B"), callbacks={"on_failure": NotifyPolicy("c.D")})
    spec = replace(PLAIN, notify=NotifyPolicy(SLACK), airflow=options)
    assert needs(spec, FREE).notifiers == ("a.B", SLACK, "c.D")
    assert refusals(spec, bounded(notifiers=("airflow.providers.slack.*",))).notifiers == ("a.B", "c.D")


@pytest.mark.parametrize(
    ("allow", "refusal"),
    [
        ({"principal": ["a@R"]}, r"allow\.principal: there is no such field.*principals"),
        ({"principals": "a@R"}, r"allow\.principals is .*; allowed is a list"),
        ({"principals": ["etl"]}, r"allow\.principals.*primary\[/instance\]@REALM"),
        ({"secrets": ["streams_*"]}, r"allow\.secrets.*conn:, var:, env: or file:"),
        ({"local_files": ["opt/jobs/"]}, r"allow\.local_files.*an absolute path"),
        ({"local_files": ["/opt/../etc/"]}, r"allow\.local_files.*without '\.\.'"),
        (["a@R"], r"allow is a list"),
    ],
)
def test_a_bound_that_can_not_be_meant_is_refused(allow: Any, refusal: str) -> None:
    given = {"principal": "own@R", "keytab_path": "/own.keytab", "state_dir": "/k", "allow": allow}
    with pytest.raises(InvalidInput, match=refusal):
        connection_fields("prod", given)


def test_an_empty_bound_is_one_and_an_empty_field_is_none() -> None:
    given = {"principal": "own@R", "keytab_path": "/own.keytab", "state_dir": "/k"}
    assert connection_fields("prod", {**given, "allow": {}}).allow == Allow()
    assert connection_fields("prod", {**given, "allow": None}).allow is None
    assert connection_fields("prod", given).allow is None
