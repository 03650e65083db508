"""The heartbeat of a watched cluster: it says that somebody looks, and nothing of what is seen."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from airflow_kstream.triggers import poller as polling
from airflow_kstream.triggers.poller import ClusterPoller
from tests.simulated.fleet import START, Fleet

MINUTE, HOUR = 60.0, 3600.0
HEARTBEAT = "kstream.simulated.cluster.heartbeat"


def steady(fleet: Fleet, until: float) -> bool:
    """Return whether it came at least once a minute until then, in seconds after the begin."""
    beats = [START.timestamp(), *fleet.gauges[HEARTBEAT], START.timestamp() + until]
    return max(after - before for before, after in pairwise(beats)) <= MINUTE


def refuse() -> None:
    raise InvalidInput("/etc/hadoop/conf does not exist on this host")


@pytest.mark.parametrize("trouble", ["none", "away", "not opened"])
def test_it_comes_at_least_once_a_minute_whatever_the_servers_answer(fleet: Fleet, trouble: str) -> None:
    fleet.declare("orders", "clicks")

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        fleet.yarn.away = trouble == "away"
        fleet.opening = refuse if trouble == "not opened" else fleet.opening
        await asyncio.sleep(HOUR / 2)

    fleet.live(story)
    assert steady(fleet, HOUR / 2 + MINUTE)


def test_streams_that_are_looked_at_once_an_hour_have_the_same_heartbeat(fleet: Fleet) -> None:
    fleet.declare("orders", watch=WatchPolicy(every=timedelta(hours=1)))
    fleet.live(lambda: asyncio.sleep(3 * HOUR))
    assert steady(fleet, 3 * HOUR)


def test_a_fleet_costs_no_more_heartbeats_than_a_stream(fleet: Fleet) -> None:
    fleet.declare(*(f"stream-{number}" for number in range(10)))
    fleet.live(lambda: asyncio.sleep(10 * MINUTE))
    assert len(fleet.gauges[HEARTBEAT]) <= 2 * 10 + 2


def test_a_healthy_stream_sends_one_value_about_events_for_each_look(fleet: Fleet) -> None:
    fleet.declare("orders")
    fleet.live(lambda: asyncio.sleep(10 * MINUTE))
    assert set(fleet.gauges["kstream.simulated.orders.events"]) == {0}
    assert not any(".event." in name for name in fleet.gauges)


def test_rounds_that_fail_by_a_defect_send_none(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands for rounds: what begins none is as good as dead."""

    def fail(self: ClusterPoller) -> Any:
        raise RuntimeError("a defect")

    fleet.declare("orders")

    async def story() -> None:
        await asyncio.sleep(10 * MINUTE)
        # Nothing that servers or people do makes a round fail.
        monkeypatch.setattr(polling.ClusterPoller, "_begin_what_is_due", fail)
        await asyncio.sleep(10 * MINUTE)

    fleet.live(story)
    assert steady(fleet, 10 * MINUTE)
    assert fleet.gauges[HEARTBEAT][-1] <= (START + timedelta(minutes=10)).timestamp()
