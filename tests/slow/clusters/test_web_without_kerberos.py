"""A kerberized cluster whose web servers have no Kerberos, as many distributions leave it: commands go over RPC."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import requests

from airflow_kstream.minicluster import Minicluster, MiniclusterConfig
from airflow_kstream.minicluster.record import read_site
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.cluster_facts import OpenWeb
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.doctor.connection import ProbeOutcome, ProbeResult, check_connection
from airflow_kstream.supervise.doctor.server_facts import server_facts
from tests.live.bring_up import bring_up
from tests.live.realms import using
from tests.live.streams import await_that, cluster, rate_stream, submit_by_hand

pytestmark = pytest.mark.clusters

WITHOUT = {
    "hadoop.http.filter.initializers": "org.apache.hadoop.http.lib.StaticUserWebFilter",
    "hadoop.http.authentication.type": "simple",
    "hadoop.http.authentication.simple.anonymous.allowed": "true",
}
PATIENCE = timedelta(seconds=60)


@pytest.fixture(scope="module")
def open_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    """The ResourceManager alone: a NameNode without Kerberos on its web refuses this package WebHDFS."""
    minicluster = bring_up(MiniclusterConfig(tmp_path_factory.mktemp("web"), frozenset(), realm="WEB.TEST"))
    try:
        change(read_site(minicluster.root).folders.daemon_conf / "core-site.xml", WITHOUT)
        restart(minicluster, "resourcemanager")
        with using(str(minicluster.krb5_conf)):
            yield minicluster
    finally:
        minicluster.down()


def change(path: Path, settings: Mapping[str, str]) -> None:
    tree = ElementTree.parse(path)
    for entry in list(tree.getroot()):
        if entry.findtext("name") in settings:
            tree.getroot().remove(entry)
    for name, value in settings.items():
        entry = ElementTree.SubElement(tree.getroot(), "property")
        ElementTree.SubElement(entry, "name").text = name
        ElementTree.SubElement(entry, "value").text = value
    tree.write(path)


@pytest.fixture
def found(open_web: Minicluster) -> Iterator[Cluster]:
    with cluster(open_web) as found:
        yield found


def test_the_check_of_a_connection_says_so_and_names_the_way_that_works(found: Cluster) -> None:
    probes = {probe.name: probe for probe in check_connection(found)}
    asks = probes["SPNEGO and active ResourceManager"]
    assert asks.outcome is ProbeOutcome.WARNING
    assert "has not asked who we are" in asks.detail
    assert "applications are stopped over the RPC of " in way_of(probes).detail
    assert way_of(probes).outcome is ProbeOutcome.PASSED


def test_applications_are_stopped_over_rpc_and_only_with_its_address(open_web: Minicluster, found: Cluster) -> None:
    submit_by_hand(open_web, rate_stream("open-web", TicketCredentials()), "open-web")
    without = replace(found, hadoop_conf_dir=None)
    with open_session(found, found.watcher) as session, open_session(without, found.watcher) as alone:
        (app,) = session.yarn.applications("open-web")
        with pytest.raises(Denied, match=r"static user .*its RPC can't be used: connection .* needs a hadoop_conf_dir"):
            alone.yarn.kill(app.id, "a test", PATIENCE)
        with pytest.raises(Denied, match="its web server wants no proof of who asks"):
            alone.yarn.way_to_stop()
        assert session.yarn.application(app.id).alive
        # The static user sees no container, so there is none to signal either.
        assert not session.yarn.signal_driver(app.id)
        assert session.yarn.kill(app.id, "a test", PATIENCE).state is not ApplicationState.RUNNING


def test_without_the_address_the_check_of_a_connection_warns(found: Cluster) -> None:
    probes = {probe.name: probe for probe in check_connection(replace(found, hadoop_conf_dir=None))}
    assert way_of(probes).outcome is ProbeOutcome.WARNING
    assert "nobody can stop" in way_of(probes).detail


def test_a_nodemanager_shows_logs_to_everybody_and_the_check_warns_of_it(open_web: Minicluster, found: Cluster) -> None:
    """Its own filter for names stands behind the static user's, and leaves a caller without a name nobody."""
    restart(open_web, "nodemanager")
    submit_by_hand(open_web, rate_stream("open-logs", TicketCredentials()), "open-logs")
    with open_session(found, found.watcher) as session:
        (app,) = session.yarn.applications("open-logs")
        await_that(lambda: session.yarn.application(app.id).state is ApplicationState.RUNNING, "its driver runs")
        place = session.yarn.any_node()
        assert place
        # The ResourceManager names no container to its static user.
        web = f"http://{place.web}/ws/v1/node"
        driver = requests.get(f"{web}/apps/{app.id}", timeout=30).json()["app"]["containerids"][0]
        log = requests.get(f"{web}/containers/{driver}/logs/stderr?size=-100", timeout=30)
        assert "LogContents" in log.text, "without a login"
        session.yarn.kill(app.id, "a test", PATIENCE)
    nodes = {probe.name: probe for probe in check_connection(found)}["a NodeManager"]
    assert nodes.outcome is ProbeOutcome.WARNING
    assert "has not asked who we are: everybody on the network reads the logs" in nodes.detail
    assert "hadoop.http.authentication.type=kerberos" in nodes.detail


def test_a_namenode_that_believes_any_name_fails_the_check_and_the_doctor_finds_it(
    open_web: Minicluster, found: Cluster
) -> None:
    restart(open_web, "nn1")
    [namenode] = found.namenodes
    home = requests.get(f"{namenode}/webhdfs/v1/?op=GETHOMEDIRECTORY&user.name=hdfs", timeout=30)
    assert home.json() == {"Path": "/user/hdfs"}, "without a login"
    active = {probe.name: probe for probe in check_connection(found)}["active NameNode"]
    assert active.outcome is ProbeOutcome.FAILED
    assert "believes any name in a URL (user.name=hdfs is the superuser)" in active.detail
    with open_session(found, found.watcher) as session:
        webs = server_facts(session).open_webs
    assert webs.webhdfs == (OpenWeb(namenode),)
    assert isinstance(webs.node, OpenWeb)


def restart(minicluster: Minicluster, daemon: str) -> None:
    """Let it read the settings of the fixture, too."""
    minicluster.kill(daemon)
    minicluster.start(daemon)


def way_of(probes: dict[str, ProbeResult]) -> ProbeResult:
    return probes["way to stop applications"]
