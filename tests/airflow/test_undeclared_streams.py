"""A stream that nothing but its own claim describes: its task watches it, tells of it, and starts and stops nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import DesiredState, StreamId
from airflow_kstream.operators.stream_control import Action
from airflow_kstream.supervise.clusters.copies import copy_name, written_copy
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.airflow.test_stream_control import say
from tests.airflow.test_vanished_streams import Runs
from tests.simulated.fleet import Fleet
from tests.simulated.servers import CLUSTER, ONE_WEEK

MINUTE = 60.0
HOUR = 60 * MINUTE
WAY_OUT = "run `kstream streams reconcile` with the declaration"


@pytest.fixture
def fleet(fleet: Fleet) -> Fleet:
    """The stream `orders`, which its own user submitted: no supervisor kept its declaration, which is refused now."""
    fleet.hdfs.whoami = fleet.yarn.whoami = "etl"
    fleet.declare("orders")
    fleet.hdfs.whoami = fleet.yarn.whoami = "streamer"
    fleet.refused.add("orders")
    return fleet


def alive(fleet: Fleet) -> list[tuple[int, bool]]:
    return [(number, app.alive) for number, app in fleet.generations("orders")]


def stop(fleet: Fleet) -> None:
    set_desired(replace(fleet.run_of("orders"), declared=False), DesiredState.STOPPED, "it is not needed")


def refused_by_the_cluster(fleet: Fleet) -> None:
    """Let the file be well, and the cluster refuse what it says."""
    fleet.refused.clear()
    fleet.specs["orders"] = replace(fleet.specs["orders"], checkpoints=(f"{CLUSTER.state_dir}/orders",))


def test_its_task_watches_it_and_says_why_nothing_is_submitted(fleet: Fleet) -> None:
    async def story() -> None:
        await asyncio.sleep(10 * MINUTE)
        assert not fleet.ended

    fleet.live(story)
    assert fleet.told("The declaration is refused; orders is kept as it was last submitted. it is not YAML") == 1
    assert fleet.told("orders is watched, and nothing of it is submitted: generation 1 was claimed by etl") == 1
    assert fleet.told(WAY_OUT) == 1
    assert fleet.wakings == []


def test_at_its_horizon_its_restart_is_blocked_and_it_runs_on(fleet: Fleet) -> None:
    fleet.clock.ahead += 0.8 * ONE_WEEK

    async def story() -> None:
        await asyncio.sleep(2 * HOUR)
        assert not fleet.ended

    fleet.live(story)
    assert alive(fleet) == [(1, True)]
    assert fleet.told("orders: its restart is blocked: ") == 1
    assert 1 < len(fleet.wakings) < 15, "it looks again, at the pace of a blocked restart"


def test_once_a_supervisor_kept_its_declaration_it_is_restarted(fleet: Fleet) -> None:
    spec, stream = fleet.specs["orders"], StreamId("orders", CLUSTER.state_dir)
    kept = f"{CLUSTER.state_dir}/declared.streamer/{stream}/{copy_name(fingerprint(spec), 'etl')}"
    fleet.hdfs.write(kept, written_copy(spec, "etl"))
    fleet.clock.ahead += 0.8 * ONE_WEEK

    async def story() -> None:
        await asyncio.sleep(10 * MINUTE)

    fleet.live(story)
    assert fleet.told("nothing of it is submitted") == 0


def test_a_person_stops_it(fleet: Fleet) -> None:
    async def story() -> None:
        await asyncio.sleep(10 * MINUTE)
        stop(fleet)
        await asyncio.sleep(10 * MINUTE)
        assert alive(fleet) == [(1, False)]

    fleet.live(story)


def test_a_person_stops_it_from_airflow(fleet: Fleet) -> None:
    assert say(Action.STOP).startswith("orders: it is stopped, as ann (HDFS user streamer) wants")
    assert alive(fleet) == [(1, False)]


def test_a_restart_is_an_order_for_who_has_the_declaration(fleet: Fleet) -> None:
    assert say(Action.RESTART) == "orders: generation 1 is to be replaced"
    assert alive(fleet) == [(1, True)]


@pytest.mark.parametrize("how", [lambda fleet: None, refused_by_the_cluster])
def test_one_that_is_dead_fails_its_task_with_the_way_out(fleet: Fleet, how: Callable[[Fleet], None]) -> None:
    how(fleet)
    fleet.yarn.end(next(iter(fleet.yarn.apps)), ApplicationState.FAILED)

    async def story() -> None:
        await asyncio.sleep(10 * MINUTE)

    fleet.live(story)
    error = fleet.ended["orders"]
    assert isinstance(error, Conflict)
    assert WAY_OUT in str(error)
    assert alive(fleet) == [(1, False)]


def test_one_whose_file_is_gone_fails_its_run_once_anything_is_due(fleet: Fleet) -> None:
    runs = Runs(fleet)
    runs.run("orders")
    assert runs.run() == ["orders"]
    fleet.clock.ahead += 0.8 * ONE_WEEK
    with pytest.raises(AirflowFailException, match=r"^orders .*, and what is due can't be done: .* copy of"):
        runs.run()
    assert alive(fleet) == [(1, True)]
    assert fleet.told("orders is watched, and nothing of it is submitted: ") == 1


def test_the_log_names_what_strangers_write_once(fleet: Fleet) -> None:
    folder = StreamId("orders", CLUSTER.state_dir).folder
    kept = f"{CLUSTER.state_dir}/declared.streamer/{folder.rpartition('/')[2]}"
    fleet.hdfs.write(f"{kept}/{copy_name(fingerprint(fleet.specs['orders']), 'etl')}", "")
    fleet.hdfs.modes[folder] = "1777"
    with fleet.hdfs.as_user("mallory"):
        fleet.hdfs.write(f"{folder}/gen-000009", "{}")

    async def story() -> None:
        await asyncio.sleep(HOUR)

    fleet.live(story)
    assert alive(fleet) == [(1, True)]
    assert fleet.told("orders: strangers wrote in its folder, and count for nothing: gen-000009 of mallory") == 1
