"""The doctor where nobody answers: it concludes nothing, and no look fails for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.clusters.cluster_facts import OpenWeb
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.policy.doctor.checks import CHECKS
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.doctor.connection import _probes
from airflow_kstream.supervise.doctor.examination import cluster_facts, foretell
from airflow_kstream.supervise.doctor.server_facts import server_facts
from tests.commands import ran
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs
from tests.simulated.spark_homes import SparkHome
from tests.simulated.strange_servers import Answer, introduction, said, serving

AWAY = replace(CLUSTER, resourcemanagers=("http://127.0.0.1:1",), namenodes=("http://127.0.0.1:1",))


@contextmanager
def away(hdfs: SimHdfs, *namenodes: str) -> Iterator[ClusterSession]:
    """Open a session with this HDFS, and no other server but these NameNodes' web servers, of which one is away."""
    cluster = replace(AWAY, namenodes=(*namenodes, *AWAY.namenodes))
    with open_session(cluster, cluster.watcher) as session:
        yield ClusterSession(cluster, cluster.watcher, cast(Hdfs, hdfs), session.yarn, session.kafka)


def test_servers_that_are_away_leave_everything_undecided_and_the_command_fails(
    cluster_file: Path, tmp_path: Path
) -> None:
    client = SparkHome(tmp_path / "spark").made().submit
    result = ran("doctor", "--cluster", str(cluster_file), "--json", "--spark-submit", client)
    assert result.code == 1
    undecided = {one["check"]: one["fact"] for one in result.data["undecided"]}
    found = {one["check"] for one in result.data["findings"]}
    assert {*undecided, *found, "canonical-names", "client-environment", "enctypes", "kdc"} == {
        row.id for row in CHECKS
    }
    assert result.data["blind"] is True
    assert "http://localhost:1" in undecided["rm-privileges"]["why"]
    ids = [one["id"] for one in result.data["findings"]]
    # By what the connection itself says.
    assert ids == ["keytabs:watcher@EXAMPLE.COM unreadable", "plain-http"]


def test_what_could_not_be_asked_is_shown_with_its_reason(cluster_file: Path) -> None:
    result = ran("doctor", "--cluster", str(cluster_file))
    assert "could not be asked, because" in result.words


def test_a_connection_works_with_one_of_two_namenodes() -> None:
    kerberos = Answer(401, headers={"WWW-Authenticate": "Negotiate"})
    with serving({"": kerberos}) as server, away(SimHdfs(SimClock()), server.address) as session:
        assert _probes()["active NameNode"](session) == f"one of {server.address}, http://127.0.0.1:1 is active"


def test_one_namenode_without_proof_fails_the_check_with_the_other_away() -> None:
    everybody = said({"Path": "/user/dr.who"})
    with (
        serving({"": everybody}) as server,
        away(SimHdfs(SimClock()), server.address) as session,
        pytest.raises(Denied, match=r"everybody is dr\.who there"),
    ):
        _probes()["active NameNode"](session)


def test_one_listing_of_nodes_finds_the_nodemanager_of_all_facts() -> None:
    with serving(
        {"/conf": said({"properties": []}), "/ws/v1/node/info": said({"nodeInfo": {"id": "nm1:8041"}})}
    ) as server:
        node = {"id": "nm1:8041", "nodeHTTPAddress": server.address.removeprefix("http://")}
        server.script |= {"/info": introduction(), "/nodes": said({"nodes": {"node": [node]}})}
        cluster = replace(AWAY, resourcemanagers=(server.address,))
        with open_session(cluster, cluster.watcher) as session:
            assert server_facts(session).open_webs.node == OpenWeb(server.address)
        assert sum("/cluster/nodes" in each for each in server.requests) == 1


def test_no_defect_of_an_examination_reaches_a_look(caplog: pytest.LogCaptureFixture) -> None:
    with away(SimHdfs(SimClock())) as session, caplog.at_level(logging.WARNING):
        assert foretell(replace(session, yarn=cast(ResourceManager, None))) == {}
    assert "could not be examined" in caplog.text
    assert "AttributeError" in caplog.text


def test_of_a_stream_that_was_never_claimed_a_look_foretells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with away(SimHdfs(SimClock())) as session, caplog.at_level(logging.WARNING):
        assert foretell(session, "nobody") == {}
    assert "could not be examined" not in caplog.text


def test_a_look_lists_nobodys_orders_to_tell_how_a_state_dir_is_set_up() -> None:
    """It comes often, and of each stream."""
    hdfs, requests = SimHdfs(SimClock()), list[str]()
    hdfs.write(f"{CLUSTER.state_dir}/orders.ops/freeze.000001.json", "")
    hdfs.owners[f"{CLUSTER.state_dir}/orders.ops"] = "ops"
    hdfs.at_request = lambda request, path: requests.append(path)
    with away(hdfs) as session:
        assert isinstance(cluster_facts(session, tries_keys=False).state_dir, NotChecked)
    assert CLUSTER.state_dir in requests
    assert not [path for path in requests if "orders.ops" in path]
