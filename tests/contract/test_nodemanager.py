"""What a NodeManager tells of containers and of their logs, to whom, and what it leaves on HDFS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from getpass import getuser

import pytest

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.clients.nodemanagers import NodeApplication, NodeManager
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import Denied, NotFound
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.supervise.clusters.session import ClusterSession
from tests.contract.conftest import Living
from tests.live.sleepers import sleeping
from tests.live.streams import await_that
from tests.live.token_makers import access_as


@pytest.fixture
def node(session: ClusterSession) -> Iterator[NodeManager]:
    place = session.yarn.any_node()
    assert place is not None
    with closing(NodeManager(f"http://{place.web}", session.identity, session.cluster.tls)) as node:
        yield node


@pytest.fixture
def driver(session: ClusterSession, living: Living) -> LoggedContainer:
    """The container of the living stream's driver."""
    found = LoggedContainer.of_link(session.yarn.application(living.application).logs_url)
    assert found is not None
    return found


def test_its_containers_are_those_that_the_resourcemanager_lists(
    session: ClusterSession, node: NodeManager, living: Living, driver: LoggedContainer
) -> None:
    def tell_the_same() -> bool:
        """The ResourceManager lists a container that is just being started, and does not run yet."""
        containers = tuple(container.id for container in session.yarn.live_containers(living.application))
        seen = node.application(living.application)
        assert seen is not None
        assert driver.id in seen.containers
        assert not seen.finishing
        return len(containers) >= 2 and tuple(sorted(seen.containers)) == containers

    await_that(tell_the_same, "both tell of the same containers")


def test_an_application_that_never_ran_there_is_unknown(node: NodeManager) -> None:
    assert node.application("application_1_0001") is None


def test_anybody_may_ask_what_runs(minicluster: Minicluster, living: Living, driver: LoggedContainer) -> None:
    with (
        access_as(minicluster, "watcher") as other,
        closing(NodeManager(driver.web, other.identity, other.cluster.tls)) as node,
    ):
        assert isinstance(node.application(living.application), NodeApplication)


def test_a_node_runs_for_longer_than_what_runs_on_it(session: ClusterSession, node: NodeManager) -> None:
    with sleeping(session, "younger") as app:
        started = session.yarn.application(app).started
        assert started is not None
        assert node.uptime() > session.yarn.time_since(started)


def test_an_ended_application_has_no_containers_and_is_forgotten(session: ClusterSession, node: NodeManager) -> None:
    with sleeping(session, "forgotten") as app:
        running = NodeApplication((session.yarn.am_container(app) or "",), finishing=False)
        await_that(lambda: node.application(app) == running, "its node lists its container")
        session.yarn.kill(app, "its node forgets it", timedelta(seconds=60))
        seen: list[NodeApplication | None] = []

        def complete() -> bool:
            seen.append(node.application(app))
            return seen[-1] is None or (seen[-1].finishing and not seen[-1].containers)

        await_that(complete, "its container is complete")
        await_that(lambda: node.application(app) is None, "it is forgotten")


def test_the_end_of_a_log_is_shown_while_its_container_runs(session: ClusterSession, driver: LoggedContainer) -> None:
    logs = ContainerLogs(session.cluster, session.identity)
    tails = logs.live_tails(driver, ("stderr",), 2_000, 30.0)
    assert tails["stderr"].length > 2_000 >= len(tails["stderr"].text) > 1_000


def test_a_log_that_its_container_never_wrote_is_not_found(session: ClusterSession, driver: LoggedContainer) -> None:
    logs = ContainerLogs(session.cluster, session.identity)
    with pytest.raises(NotFound):
        logs.live_tails(driver, ("nothing",), 2_000, 30.0)
    assert set(logs.live_tails(driver, ("nothing", "stderr"), 2_000, 30.0)) == {"stderr"}


def test_a_user_whom_it_does_not_name_sees_none_of_its_logs(minicluster: Minicluster, driver: LoggedContainer) -> None:
    with access_as(minicluster, "watcher") as other, pytest.raises(Denied):
        ContainerLogs(other.cluster, other.identity).live_tails(driver, ("stderr",), 2_000, 30.0)


def test_whom_the_application_lets_view_it_sees_its_logs(minicluster: Minicluster, driver: LoggedContainer) -> None:
    """By spark.ui.view.acls: to administer the queue is not enough for a NodeManager."""
    with access_as(minicluster, "supervisor") as other:
        tails = ContainerLogs(other.cluster, other.identity).live_tails(driver, ("stderr",), 2_000, 30.0)
    assert len(tails["stderr"].text) > 1_000


def test_a_log_is_read_from_hdfs_once_its_node_has_forgotten_the_application(
    session: ClusterSession, node: NodeManager, failed: Application
) -> None:
    """YARN itself knows only an exit status."""
    container = LoggedContainer.of_link(failed.logs_url)
    assert container is not None
    await_that(lambda: node.application(failed.id) is None, "its node has forgotten it")
    logs = ContainerLogs(session.cluster, session.identity)
    assert [*logs.aggregated_nodes(session.hdfs, failed.id, getuser())]
    tails = logs.tails(container, ("stdout", "stderr"), 2_000, 30.0)
    assert "ValueError: this job fails" in tails["stdout"].text
    assert tails["stderr"].length > 2_000 >= len(tails["stderr"].text)
    with pytest.raises(NotFound):
        logs.live_tails(container, ("stdout",), 2_000, 30.0)
