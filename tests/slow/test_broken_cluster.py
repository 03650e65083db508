"""A cluster that is broken in many ways at once: the doctor finds each by its root, and each once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from getpass import getuser
from pathlib import Path
from unittest import mock

import pytest
from rich.console import Console

from airflow_kstream.clients.http import kerberos_session
from airflow_kstream.minicluster import Feature, Minicluster, MiniclusterConfig
from airflow_kstream.model.finding import DoctorReport
from airflow_kstream.model.streams.stream import KeytabCredentials, ProxyUserCredentials, StreamSpec
from airflow_kstream.supervise.clusters.connection import cluster_of, connection_fields
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.clusters.tokens import learn_lifetimes
from airflow_kstream.supervise.doctor.examination import examine_cluster
from airflow_kstream.views.doctor import findings_table, lines_of_report
from tests.live import sleepers
from tests.live.bring_up import bring_up
from tests.live.streams import await_that

pytestmark = pytest.mark.faults
BROKEN = (
    ("yarn-site.xml", "yarn.acl.enable", "false"),
    ("yarn-site.xml", "yarn.log-aggregation-enable", "false"),
    ("yarn-site.xml", "yarn.resourcemanager.work-preserving-recovery.enabled", "false"),
    ("hdfs-site.xml", "dfs.namenode.lease-hard-limit-sec", "7200"),
)
CONF = {
    "spark.speculation": "true",
    "spark.security.credentials.retryWait": "4h",
    "spark.yarn.preserve.staging.files": "true",
}
ROOTS = {
    "client-rm-addresses": "orders: a failover of the ResourceManager ends it",
    "impersonation:alice": "clicks: its next submission is refused",
    "keytabs:streamer@BROKEN.TEST open to others": "",
    "lease-limit": "",
    "log-aggregation": "",
    "nm-recovery": "",
    "nn-addresses": "",
    "renewal-retry": "orders: a KDC or NameNode that is away at its round leaves it one try",
    "rm-addresses:connection": "",
    "rm-privileges": "orders: its logs are lost if it ends from ",
    "rm-recovery:work-preserving": "",
    "speculation": "orders: a slow task's rows may be written twice",
    "staging-missing": "orders: it can't replace an executor",
    "staging-preserved": "orders: its end leaves its files behind",
    "supervisors-stream": "clicks: it speaks for all streams, as ",
    "ticket-forwardable": "",
    "unbounded": "",
    "yarn-acls": "",
    "plain-http": "",
    # The version's own.
    "hdfs-17430": "",
    "hdfs-17861": "",
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    features = frozenset({Feature.HA, Feature.RM_HA})
    root = tmp_path_factory.mktemp("broken")
    plan = MiniclusterConfig(root, features, realm="BROKEN.TEST", daemon_settings=BROKEN)
    minicluster = bring_up(plan)
    try:
        with mock.patch.dict(os.environ, KRB5_CONFIG=str(minicluster.krb5_conf)):
            yield minicluster
    finally:
        minicluster.down()


def connection(broken: Minicluster, folder: Path) -> dict[str, object]:
    """Return a connection that names one of two servers each, and files of this host that are wrong, too."""
    keytab, krb5, conf = folder / "streamer.keytab", folder / "krb5.conf", folder / "conf"
    keytab.write_bytes(broken.keytab("streamer").read_bytes())
    keytab.chmod(0o644)
    krb5.write_text(broken.krb5_conf.read_text().replace("forwardable = true", "forwardable = false"))
    shutil.copytree(broken.conf_dir, conf)
    site = conf / "yarn-site.xml"
    site.write_text(site.read_text().replace("yarn.resourcemanager.ha.rm-ids", "forgotten"))
    active = {"rm1": 0, "rm2": 1}[broken.active_resourcemanager()]
    namenode = {"nn1": 0, "nn2": 1}[broken.active_namenode()]
    return broken.connection() | {
        "keytab_path": str(keytab),
        "krb5_conf": str(krb5),
        "hadoop_conf_dir": str(conf),
        "resourcemanagers": broken.resourcemanagers[active],
        "namenodes": broken.namenodes[namenode],
    }


@pytest.fixture(scope="module")
def report(broken: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoctorReport]:
    fields = connection_fields("broken", connection(broken, tmp_path_factory.mktemp("connection")))
    with cluster_of("broken", fields) as cluster, open_session(cluster, cluster.watcher) as session:
        keytab = KeytabCredentials(session.identity.principal)
        orders = StreamSpec("orders", keytab, "/jobs/orders.py", (), conf=CONF)
        lifetimes = learn_lifetimes(session.hdfs, session.identity)
        stream = sleepers.claim(session, orders, lifetimes)
        clicks = replace(orders, name="clicks", credentials=ProxyUserCredentials("alice"), conf={})
        sleepers.claim(session, clicks, lifetimes)
        session.hdfs.make_folder(f"/user/{getuser()}/.sparkStaging")
        with closing(kerberos_session(session.identity, cluster.tls)) as http:
            sleeper = sleepers.submit(session.yarn.active(), http, stream)
        await_that(lambda: session.yarn.application(sleeper).alive, "it is accepted")
        try:
            yield examine_cluster(cluster)
        finally:
            session.yarn.kill(sleeper, "the test is over", timedelta(seconds=60))


def test_each_root_is_found_once_and_nothing_else(report: DoctorReport) -> None:
    console = Console(width=200)
    console.print(findings_table(report.findings))
    for line in lines_of_report(report):
        console.print(line, soft_wrap=True)
    assert [finding.id for finding in report.findings] == sorted(
        ROOTS, key=[finding.id for finding in report.findings].index
    )


@pytest.mark.parametrize("root", ROOTS)
def test_a_finding_names_its_streams_with_dates(report: DoctorReport, root: str) -> None:
    (finding,) = (one for one in report.findings if one.id == root)
    said = "; ".join(f"{concern.stream}: {concern.sentence}" for concern in finding.concerns)
    assert said.startswith(ROOTS[root]) if ROOTS[root] else not said


def test_what_the_cluster_hides_is_no_finding(report: DoctorReport) -> None:
    """An application that sleeps has no driver, which would show its version."""
    assert {one.check for one in report.undecided} == {"hdfs-9276", "yarn-3103", "hdfs-10549", "hdfs-14694"}
    assert {one.fact.sentence for one in report.undecided} == {"its driver could not be asked, because none runs"}
    assert {one.streams for one in report.undecided} == {("orders",)}
