"""What NodeManagers say of an ended application, from a web server on loopback that answers as Hadoop 3.4's does.

Simulated because a real NodeManager can't be brought to most of these answers: that it has just restarted, that a
container outlives its application by minutes, a proxy in front of it. The answers are those of NMWebServices.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from airflow_kstream.clients.waiting import at_most
from airflow_kstream.clients.yarn import ContainerPlace, NodeStanding
from airflow_kstream.model.clusters.application import ApplicationState, Containers, NodeVerdict
from airflow_kstream.model.errors import Denied, NotFound, Unavailable
from airflow_kstream.model.streams.contract import stopped_marker
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.observation import Observation, YarnLook
from airflow_kstream.supervise.streams.look import nodemanager_reports as looking
from airflow_kstream.supervise.streams.look.nodemanager_reports import Witnesses
from tests.simulated.served import Quiet, served
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.yarn import START, TICKET_SPEC, SimulatedYarn, application, claim_of

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


@dataclass
class NodeManager:
    """What a NodeManager says: `app` is the status and the body about the application."""

    app: tuple[int, Any] = (404, UNKNOWN)
    uptime: timedelta = timedelta(days=30)
    page: bool = False
    address: str = ""

    def answer(self, status: int, state: str = "", containers: Any = None) -> None:
        self.app = status, {"app": {"id": APP, "state": state, "containerids": containers}}

    def handler(self) -> type[Quiet]:
        node = self

        class Handler(Quiet):
            def do_GET(self) -> None:
                started = {"nodeInfo": {"nmStartupTime": int((NOW - node.uptime).timestamp() * 1000)}}
                status, body = node.app if "/apps/" in self.path else (200, started)
                text = b"<html>not found</html>" if node.page else json.dumps(body).encode()
                self.send_response_only(status)
                for _ in range(2):
                    # As Hadoop: once by its own filter, once by Jetty.
                    self.send_header("Date", format_datetime(NOW, usegmt=True))
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        return Handler


@dataclass
class Yarn(SimYarn):
    """A ResourceManager that knows where containers are."""

    place: ContainerPlace | None = None
    others: frozenset[ContainerPlace] = frozenset()
    former: frozenset[ContainerPlace] = frozenset()
    state: str | None = "RUNNING"
    checked: int | None = 1767225600000
    refuses: list[str] = field(default_factory=list)

    def driver_places(self, application_id: str) -> frozenset[ContainerPlace]:
        if self.refuses:
            raise Denied("no")
        return frozenset({self.place} if self.place else ()) | self.former

    def live_places(self, application_id: str) -> frozenset[ContainerPlace]:
        if self.refuses:
            raise Unavailable("away")
        return self.others

    def node(self, node: str) -> NodeStanding:
        if self.state is None:
            raise NotFound(node)
        return NodeStanding(self.state, self.checked)

    def time_since(self, moment: datetime) -> timedelta:
        return START + timedelta(hours=3) - moment


@pytest.fixture
def nodemanager() -> Iterator[NodeManager]:
    node = NodeManager()
    with served(node.handler()) as node.address:
        yield node


@pytest.fixture
def yarn(nodemanager: NodeManager) -> Yarn:
    return Yarn(SimClock(), place=ContainerPlace("node1:45454", nodemanager.address))


def dead(*files: str) -> Observation:
    world = SimulatedYarn(now=START + timedelta(hours=3), files=set(files))
    world.claims = {1: claim_of(TICKET_SPEC, 1, START)}
    world.applications = [(1, application(1, ApplicationState.FAILED, finished=START + timedelta(hours=2)))]
    return replace(world.look(), yarn=YarnLook())


def witnesses(yarn: Yarn) -> Witnesses:
    return Witnesses(session_of(SimHdfs(yarn.clock), yarn))


def found(yarn: Yarn) -> Containers:
    containers = witnesses(yarn).asked(dead()).yarn.containers
    assert containers is not None
    return containers


def test_an_application_that_its_node_has_forgotten_is_complete_there(yarn: Yarn) -> None:
    """ApplicationImpl leaves the node's list when its containers are done and its logs are handled."""
    assert found(yarn).driver.verdict is NodeVerdict.COMPLETE
    assert not found(yarn).complete, "nobody knows where its executors were"


@pytest.mark.parametrize("state", ["FINISHING_CONTAINERS_WAIT", "APPLICATION_RESOURCES_CLEANINGUP", "FINISHED"])
def test_one_that_is_finishing_is_complete_when_no_container_is_left(
    yarn: Yarn, nodemanager: NodeManager, state: str
) -> None:
    nodemanager.answer(200, state, [CONTAINER])
    assert found(yarn).driver.verdict is NodeVerdict.LIVE
    assert CONTAINER in str(found(yarn).driver)
    nodemanager.answer(200, state, CONTAINER)
    assert found(yarn).driver.verdict is NodeVerdict.LIVE, "a list of one, as old JSON writers write it"
    nodemanager.answer(200, state, [])
    assert found(yarn).driver.verdict is NodeVerdict.COMPLETE


def test_a_node_that_has_not_heard_of_the_end_is_no_proof_of_it(yarn: Yarn, nodemanager: NodeManager) -> None:
    nodemanager.answer(200, "RUNNING", [])
    assert found(yarn).driver.verdict is NodeVerdict.LIVE


@pytest.mark.parametrize("uptime", [timedelta(minutes=1), timedelta(hours=2, minutes=59), timedelta(hours=3)])
def test_a_nodemanager_younger_than_the_application_proves_nothing(
    yarn: Yarn, nodemanager: NodeManager, uptime: timedelta
) -> None:
    """A killed one leaves its containers alone, and its successor does not know them: faults.md, B."""
    nodemanager.uptime = uptime
    assert found(yarn).driver.verdict is NodeVerdict.RESTARTED


def test_ages_are_each_measured_by_one_servers_clock(yarn: Yarn, nodemanager: NodeManager) -> None:
    """Its clock is ahead by five minutes: by the two clocks it would have started after the application."""
    nodemanager.uptime = timedelta(hours=3, minutes=1)
    assert found(yarn).driver.verdict is NodeVerdict.COMPLETE


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        ("RUNNING", NodeVerdict.UNHEARD),
        ("UNHEALTHY", NodeVerdict.UNHEARD),
        ("LOST", NodeVerdict.LOST),
        ("DECOMMISSIONED", NodeVerdict.LOST),
        (None, NodeVerdict.LOST),
    ],
)
@pytest.mark.parametrize("status", [401, 403, 500, 302, 200])
def test_a_nodemanager_that_gives_no_answer_may_be_cut_off_from_yarn_too(
    yarn: Yarn, nodemanager: NodeManager, status: int, state: str | None, verdict: NodeVerdict
) -> None:
    nodemanager.app = status, {}
    yarn.state = state
    assert found(yarn).driver.verdict is verdict


def test_a_proxys_404_is_not_a_nodemanagers(yarn: Yarn, nodemanager: NodeManager) -> None:
    nodemanager.page = True
    assert found(yarn).driver.verdict is NodeVerdict.UNHEARD


def test_a_node_that_yarn_hears_from_after_the_end_was_told_of_it(yarn: Yarn, nodemanager: NodeManager) -> None:
    """What a node last told stays the same once it is cut off, for the minutes in which YARN counts it as running."""
    nodemanager.answer(500)
    asked = witnesses(yarn)

    def verdict() -> NodeVerdict:
        seen = asked.asked(dead()).yarn.containers
        assert seen
        return seen.driver.verdict

    assert [verdict(), verdict()] == [NodeVerdict.UNHEARD] * 2
    assert yarn.checked
    yarn.checked += 120_000
    assert [verdict(), verdict()] == [NodeVerdict.UNREACHABLE] * 2
    yarn.state = "LOST"
    assert verdict() is NodeVerdict.LOST


def test_a_resourcemanager_that_does_not_tell_what_it_hears_proves_nothing(
    yarn: Yarn, nodemanager: NodeManager
) -> None:
    nodemanager.answer(500)
    yarn.checked = None
    asked = witnesses(yarn)
    for _ in range(2):
        seen = asked.asked(dead()).yarn.containers
        assert seen
        assert seen.driver.verdict is NodeVerdict.UNHEARD


def test_the_nodes_of_executors_that_were_seen_alive_answer_too(yarn: Yarn, nodemanager: NodeManager) -> None:
    assert yarn.place is not None
    gone = ContainerPlace("node2:45454", "127.0.0.1:1")
    yarn.others = frozenset({yarn.place})
    asked = witnesses(yarn)
    asked.remember_places(APP)
    assert (containers := asked.asked(dead()).yarn.containers)
    assert containers.complete
    yarn.others, yarn.state = frozenset({yarn.place, gone}), "LOST"
    asked = witnesses(yarn)
    asked.remember_places(APP)
    assert (containers := asked.asked(dead()).yarn.containers)
    assert [report.verdict for report in containers.reports] == [NodeVerdict.COMPLETE, NodeVerdict.LOST]
    assert not containers.complete


def test_an_executor_that_came_during_the_stop_answers_as_well(yarn: Yarn) -> None:
    """With dynamic allocation they come and go until the end."""
    assert yarn.place is not None
    asked = witnesses(yarn)
    for others in ({yarn.place}, {yarn.place, ContainerPlace("node2:45454", "127.0.0.1:1")}, {yarn.place}, set()):
        yarn.others = frozenset(others)
        asked.remember_places(APP)
    assert (containers := asked.asked(dead()).yarn.containers)
    assert len(containers.reports) == 2
    assert not containers.complete


def test_the_empty_list_of_an_application_that_has_ended_names_no_executors(yarn: Yarn) -> None:
    asked = witnesses(yarn)
    asked.remember_places(APP)
    assert (containers := asked.asked(dead()).yarn.containers)
    assert containers.executors is None


def test_the_driver_of_an_expired_attempt_counts_as_much_as_its_successor(yarn: Yarn) -> None:
    """An adopted job with two attempts: YARN had lost the node of the first one's driver, which may run on."""
    yarn.former, yarn.state = frozenset({ContainerPlace("node2:45454", "127.0.0.1:1")}), "LOST"
    assert found(yarn).driver.verdict is NodeVerdict.LOST


def test_what_is_complete_is_not_asked_again(yarn: Yarn, nodemanager: NodeManager) -> None:
    asked = witnesses(yarn)
    asked.asked(dead())
    nodemanager.answer(500)
    assert (containers := asked.asked(dead()).yarn.containers)
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
    assert witness.asked(dead()).yarn.containers is None
    assert witnesses(Yarn(SimClock())).asked(dead()).yarn.containers is None


def test_executors_whose_places_nobody_tells_are_unknown(yarn: Yarn) -> None:
    assert yarn.place is not None
    yarn.others = frozenset({yarn.place})
    asked = witnesses(yarn)
    asked.remember_places(APP)
    yarn.refuses = ["containers"]
    asked.remember_places(APP)
    yarn.refuses = []
    assert (containers := asked.asked(dead()).yarn.containers)
    assert (containers.executors, containers.complete) == (None, False), "what was seen before may be old"


@pytest.fixture
def deaf() -> Iterator[list[ContainerPlace]]:
    """NodeManagers that take connections and never answer."""
    sockets = [socket.create_server(("127.0.0.1", 0), backlog=8) for _ in range(12)]
    yield [ContainerPlace(f"node{n}:45454", f"127.0.0.1:{one.getsockname()[1]}") for n, one in enumerate(sockets, 10)]
    for one in sockets:
        one.close()


def test_a_look_takes_no_longer_for_each_node_that_does_not_answer(
    yarn: Yarn, deaf: list[ContainerPlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs the time for one answer, and a rack of them is not a reason to wait for a rack's answers."""
    assert yarn.place is not None
    # With the usual time of half a minute the twelve looks would take six.
    monkeypatch.setattr(looking, "_ONE_LOOK", 1.0)
    healthy = ContainerPlace("node9:45454", yarn.place.web)
    yarn.others = frozenset({*deaf, healthy})
    asked = witnesses(yarn)
    asked.remember_places(APP)
    heard: set[str] = set()
    for _ in range(12):
        began = time.monotonic()
        with at_most(0.4):
            containers = asked.asked(dead()).yarn.containers
        assert time.monotonic() - began < 12 * 0.4, "twelve of them would take longer"
        assert containers
        assert containers.driver.verdict is NodeVerdict.COMPLETE
        assert containers.executors
        assert len(containers.executors) == 13
        assert not containers.complete
        heard |= {report.node for report in containers.executors if "too long" not in report.detail}
        if len(heard) == 13:
            break
    assert heard == {place.web for place in yarn.others}, "each is asked in its turn"
