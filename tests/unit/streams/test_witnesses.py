"""What NodeManagers say of an ended application, from a web server on loopback that answers as Hadoop 3.4's does.

Simulated because a real NodeManager can't be brought to most of these answers: that it has just restarted, that a
container outlives its application by minutes, a proxy in front of it. The answers are those of NMWebServices.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from airflow_kstream.clients.yarn import ContainerPlace
from airflow_kstream.model.application import ApplicationState
from airflow_kstream.model.containers import Containers, NodeVerdict
from airflow_kstream.model.contract import stopped_marker
from airflow_kstream.model.errors import Denied, NotFound, Unavailable
from airflow_kstream.model.generation import Desired, DesiredState
from airflow_kstream.model.observation import Observation
from airflow_kstream.supervise.streams.witnesses import Witnesses
from tests.unit.simulated_yarn import START, TICKET_SPEC, SimulatedYarn, application, claim_of
from tests.unit.streams.simulated_servers import SimClock, SimHdfs, SimYarn, session_of

APP = "application_1_0001"
CONTAINER = "container_1_0001_01_000001"
UNKNOWN = {
    "RemoteException": {
        "exception": "NotFoundException",
        "message": f"java.lang.Exception: app with id {APP} not found",
        "javaClassName": "org.apache.hadoop.yarn.webapp.NotFoundException",
    }
}
# The clock of this NodeManager is five minutes ahead of everybody's.
NOW = START + timedelta(hours=3, minutes=5)


class _NodeManager(BaseHTTPRequestHandler):
    app: ClassVar[tuple[int, Any]] = (404, UNKNOWN)
    uptime = timedelta(days=30)
    page = False

    def do_GET(self) -> None:
        started = {"nodeInfo": {"nmStartupTime": int((NOW - self.uptime).timestamp() * 1000)}}
        status, body = self.app if "/apps/" in self.path else (200, started)
        text = b"<html>not found</html>" if self.page else json.dumps(body).encode()
        self.send_response_only(status)
        for _ in range(2):
            # As Hadoop: once by its own filter, once by Jetty.
            self.send_header("Date", format_datetime(NOW, usegmt=True))
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: object) -> None:
        """Tests are silent."""


@dataclass
class Yarn(SimYarn):
    """A ResourceManager that knows where containers are."""

    place: ContainerPlace | None = None
    others: frozenset[ContainerPlace] = frozenset()
    state: str | None = "RUNNING"
    refuses: list[str] = field(default_factory=list)

    def driver_place(self, application_id: str) -> ContainerPlace | None:
        if self.refuses:
            raise Denied("no")
        return self.place

    def live_places(self, application_id: str) -> frozenset[ContainerPlace]:
        if self.refuses:
            raise Unavailable("away")
        return self.others

    def node_state(self, node: str) -> str:
        if self.state is None:
            raise NotFound(node)
        return self.state

    def time_since(self, moment: datetime) -> timedelta:
        return START + timedelta(hours=3) - moment


@pytest.fixture
def nodemanager() -> Iterator[str]:
    web = ThreadingHTTPServer(("127.0.0.1", 0), _NodeManager)
    thread = threading.Thread(target=web.serve_forever)
    thread.start()
    yield f"127.0.0.1:{web.server_port}"
    web.shutdown()
    thread.join()
    web.server_close()


@pytest.fixture
def yarn(nodemanager: str) -> Yarn:
    return Yarn(SimClock(), place=ContainerPlace("node1:45454", nodemanager))


def dead(*files: str) -> Observation:
    world = SimulatedYarn(now=START + timedelta(hours=3), files=set(files))
    world.claims = {1: claim_of(TICKET_SPEC, 1, START)}
    world.applications = [(1, application(1, ApplicationState.FAILED, finished=START + timedelta(hours=2)))]
    return replace(world.look(), containers=None)


def witnesses(yarn: Yarn) -> Witnesses:
    return Witnesses(session_of(SimHdfs(yarn.clock), yarn))


def found(yarn: Yarn) -> Containers:
    containers = witnesses(yarn).asked(dead()).containers
    assert containers is not None
    return containers


def answer(monkeypatch: pytest.MonkeyPatch, status: int, state: str = "", containers: Any = None) -> None:
    monkeypatch.setattr(_NodeManager, "app", (status, {"app": {"id": APP, "state": state, "containerids": containers}}))


def test_an_application_that_its_node_has_forgotten_is_complete_there(yarn: Yarn) -> None:
    """ApplicationImpl leaves the node's list when its containers are done and its logs are handled."""
    assert found(yarn).driver.verdict is NodeVerdict.COMPLETE
    assert not found(yarn).complete, "nobody knows where its executors were"


@pytest.mark.parametrize("state", ["FINISHING_CONTAINERS_WAIT", "APPLICATION_RESOURCES_CLEANINGUP", "FINISHED"])
def test_one_that_is_finishing_is_complete_when_no_container_is_left(
    yarn: Yarn, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    answer(monkeypatch, 200, state, [CONTAINER])
    assert found(yarn).driver.verdict is NodeVerdict.LIVE
    assert CONTAINER in str(found(yarn).driver)
    answer(monkeypatch, 200, state, CONTAINER)
    assert found(yarn).driver.verdict is NodeVerdict.LIVE, "a list of one, as old JSON writers write it"
    answer(monkeypatch, 200, state, [])
    assert found(yarn).driver.verdict is NodeVerdict.COMPLETE


def test_a_node_that_has_not_heard_of_the_end_is_no_proof_of_it(yarn: Yarn, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, 200, "RUNNING", [])
    assert found(yarn).driver.verdict is NodeVerdict.LIVE


@pytest.mark.parametrize("uptime", [timedelta(minutes=1), timedelta(hours=2, minutes=59), timedelta(hours=3)])
def test_a_nodemanager_younger_than_the_application_proves_nothing(
    yarn: Yarn, monkeypatch: pytest.MonkeyPatch, uptime: timedelta
) -> None:
    """A killed one leaves its containers alone, and its successor does not know them: faults.md, B."""
    monkeypatch.setattr(_NodeManager, "uptime", uptime)
    assert found(yarn).driver.verdict is NodeVerdict.RESTARTED


def test_ages_are_each_measured_by_one_servers_clock(yarn: Yarn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its clock is ahead by five minutes: by the two clocks it would have started after the application."""
    monkeypatch.setattr(_NodeManager, "uptime", timedelta(hours=3, minutes=1))
    assert found(yarn).driver.verdict is NodeVerdict.COMPLETE


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        ("RUNNING", NodeVerdict.UNREACHABLE),
        ("UNHEALTHY", NodeVerdict.UNREACHABLE),
        ("LOST", NodeVerdict.LOST),
        ("DECOMMISSIONED", NodeVerdict.LOST),
        (None, NodeVerdict.LOST),
    ],
)
@pytest.mark.parametrize("status", [401, 403, 500, 302, 200])
def test_a_nodemanager_that_gives_no_answer_is_unreachable_or_lost(
    yarn: Yarn, monkeypatch: pytest.MonkeyPatch, status: int, state: str | None, verdict: NodeVerdict
) -> None:
    monkeypatch.setattr(_NodeManager, "app", (status, {}))
    yarn.state = state
    assert found(yarn).driver.verdict is verdict


def test_a_proxys_404_is_not_a_nodemanagers(yarn: Yarn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_NodeManager, "page", True)
    assert found(yarn).driver.verdict is NodeVerdict.UNREACHABLE


def test_the_nodes_of_executors_that_were_seen_alive_answer_too(yarn: Yarn, monkeypatch: pytest.MonkeyPatch) -> None:
    assert yarn.place is not None
    gone = ContainerPlace("node2:45454", "127.0.0.1:1")
    yarn.others = frozenset({yarn.place})
    asked = witnesses(yarn)
    asked.remember_places(APP)
    assert (containers := asked.asked(dead()).containers)
    assert containers.complete
    yarn.others, yarn.state = frozenset({yarn.place, gone}), "LOST"
    asked = witnesses(yarn)
    asked.remember_places(APP)
    assert (containers := asked.asked(dead()).containers)
    assert [report.verdict for report in containers.reports] == [NodeVerdict.COMPLETE, NodeVerdict.LOST]
    assert not containers.complete


def test_what_is_complete_is_not_asked_again(yarn: Yarn, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = witnesses(yarn)
    asked.asked(dead())
    answer(monkeypatch, 500)
    assert (containers := asked.asked(dead()).containers)
    assert containers.driver.verdict is NodeVerdict.COMPLETE


def test_no_nodemanager_hears_from_us_when_no_proof_is_needed(yarn: Yarn) -> None:
    asked = witnesses(yarn)
    stopped = replace(dead(), desired=Desired(DesiredState.STOPPED))
    alive = replace(dead(), applications=((1, application(1, ApplicationState.RUNNING)),))
    for seen in (stopped, alive, dead(stopped_marker(1)), replace(dead(), applications=())):
        assert asked.asked(seen) == seen


def test_without_an_answer_about_its_place_there_is_no_proof(yarn: Yarn) -> None:
    yarn.refuses = ["attempts"]
    witness = witnesses(yarn)
    witness.remember_places(APP)
    assert witness.asked(dead()).containers is None
    assert witnesses(Yarn(SimClock())).asked(dead()).containers is None
