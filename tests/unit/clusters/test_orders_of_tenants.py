"""Orders of a stream's own user count for every reader, also where nothing in the stream's folder names that user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from airflow_kstream.model.clusters.authors import FolderKind, folder_name
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.registry import registered
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from tests.simulated.fixtures import lived
from tests.simulated.folders import keep_copy
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, session_of

HELD, RUNNING = DesiredState.HELD, DesiredState.RUNNING


@pytest.fixture
def life() -> Iterator[Life]:
    """Return a stream that is declared to run as billing, in a state_dir that lets everybody create."""
    with lived() as life:
        life.hdfs.modes[CLUSTER.state_dir] = "1777"
        keep_copy(life.hdfs, life.run.id, SPEC, "billing")
        yield life


def wants(life: Life, state: DesiredState, *, user: str) -> None:
    with life.hdfs.as_user(user):
        life.run = replace(life.run, session=session_of(life.hdfs, life.yarn))
        life.set_desired(state)
    life.run = replace(life.run, session=session_of(life.hdfs, life.yarn))


def seen_by(life: Life, *readers: str) -> list[DesiredState]:
    found = []
    for reader in readers:
        with life.hdfs.as_user(reader):
            found.append(registered(session_of(life.hdfs, life.yarn), life.run.id).desired().state)
    return found


def test_a_hold_before_the_first_start_is_seen_by_all(life: Life) -> None:
    """A watcher that overlooks it wakes a task which finds the stream held, again and again."""
    wants(life, HELD, user="billing")
    assert seen_by(life, "streamer", "hdfs", "billing", "sales") == [HELD] * 4
    assert not life.watch().calls_for_action
    assert life.reconcile(Mode.ENSURE).phase is Phase.HELD


def test_a_later_order_of_a_supervisor_follows_the_tenants(life: Life) -> None:
    for _ in range(3):
        wants(life, HELD, user="billing")
    wants(life, RUNNING, user="streamer")
    assert seen_by(life, "streamer", "hdfs", "billing") == [RUNNING] * 3


def test_another_tenant_is_not_heard(life: Life) -> None:
    with life.hdfs.as_user("sales"):
        folder = StreamFolder(session_of(life.hdfs, life.yarn), life.run.id)
        with pytest.raises(Denied, match="orders of sales don't count"):
            folder.change_desired(lambda _: Desired(HELD))
    assert seen_by(life, "streamer", "hdfs", "billing") == [RUNNING] * 3


def test_who_else_gave_orders_costs_a_stream_one_listing_in_minutes(life: Life) -> None:
    for number in range(20):
        with life.hdfs.as_user(f"tenant{number}"):
            life.hdfs.make_folder(f"{CLUSTER.state_dir}/{folder_name(FolderKind.ORDERS, f'tenant{number}')}", "755")
    asked: list[tuple[str, str]] = []
    life.hdfs.at_request = lambda request, path: asked.append((request, path))
    session = session_of(life.hdfs, life.yarn)
    for _ in range(3):
        session.state.look()
        registered(session, life.run.id).desired()
    assert len([path for _, path in asked if "declared." in path]) == 1
    assert not [path for _, path in asked if "tenant" in path]
