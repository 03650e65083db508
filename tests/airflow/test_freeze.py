"""A frozen cluster and the tasks that watch its streams, in virtual time on simulated servers."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.stream_policies import WatchPolicy
from airflow_kstream.supervise.streams.brake import Brake
from tests.airflow.fleet import Fleet
from tests.unit.streams.fake_engine import FakeEngine
from tests.unit.streams.simulated_servers import CLUSTER, ONE_WEEK

CALM = WatchPolicy(every=timedelta(minutes=2))
MINUTE = 60.0
STREAMS = tuple(f"stream-{number}" for number in range(2))


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Fleet:
    return Fleet(monkeypatch, caplog)


def freeze(fleet: Fleet, hours: float) -> None:
    Brake(fleet.session.hdfs, CLUSTER.state_dir).freeze(timedelta(hours=hours), "a new NameNode")


def generations(fleet: Fleet) -> set[int]:
    return {len(fleet.generations(name)) for name in STREAMS}


def test_nobody_is_woken_for_restarts_that_fall_into_a_freeze_and_all_come_after_it(fleet: Fleet) -> None:
    fleet.declare(*STREAMS, watch=CALM)
    fleet.clock.ahead += 0.75 * ONE_WEEK - timedelta(minutes=20)

    async def story() -> None:
        freeze(fleet, 1)
        await asyncio.sleep(55 * MINUTE)
        assert (fleet.wakings, generations(fleet)) == ([], {1})
        assert {values[-1] for name, values in fleet.gauges.items() if name.endswith(".frozen")} == {1.0}
        await asyncio.sleep(10 * MINUTE)
        assert generations(fleet) == {2}
        assert {values[-1] for name, values in fleet.gauges.items() if name.endswith(".frozen")} == {0.0}

    fleet.live(story)
    assert fleet.ended == {}
    for name in STREAMS:
        assert fleet.told(f"{name}: its restart is due") == 2, "when it is seen, and when it is due; not at each look"
        assert fleet.told(f"{name}: the cluster is frozen until") <= 4


def test_a_restart_that_was_blocked_before_a_freeze_is_blocked_still(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*of: object) -> None:
        raise InvalidInput("no client")

    fleet.declare("stream-0")
    fleet.clock.ahead += 0.76 * ONE_WEEK
    monkeypatch.setattr(FakeEngine, "preflight", refuse)

    async def story() -> None:
        await asyncio.sleep(10 * MINUTE)
        freeze(fleet, 1)
        await asyncio.sleep(10 * MINUTE)
        assert fleet.gauges["kstream.stream-0.restart_blocked"][-1] == 1

    fleet.live(story)
    assert fleet.told("its restart is blocked: ") == 1
    assert fleet.told("not due any longer") == 0
