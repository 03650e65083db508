"""A frozen cluster and the tasks that watch its streams, in virtual time on simulated servers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.stream_policies import StopPolicy, WatchPolicy
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from tests.simulated.fleet import Fleet
from tests.simulated.servers import ONE_WEEK

CALM = WatchPolicy(every=timedelta(minutes=2))
MINUTE = 60.0
STREAMS = tuple(f"stream-{number}" for number in range(2))


def freeze(fleet: Fleet, hours: float) -> None:
    FreezeStore(fleet.session).freeze(timedelta(hours=hours), "a new NameNode")


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


def test_a_restart_that_was_blocked_before_a_freeze_is_blocked_still(fleet: Fleet) -> None:
    def refuse() -> None:
        raise InvalidInput("no client")

    fleet.declare("stream-0")
    fleet.clock.ahead += 0.76 * ONE_WEEK
    fleet.engine.at_preflight = refuse

    async def story() -> None:
        await asyncio.sleep(10 * MINUTE)
        freeze(fleet, 1)
        await asyncio.sleep(10 * MINUTE)
        assert fleet.gauges["kstream.simulated.stream-0.restart_blocked"][-1] == 1

    fleet.live(story)
    assert fleet.told("its restart is blocked: ") == 1
    assert fleet.told("not due any longer") == 0


def test_a_fleet_starts_in_turns_when_a_freeze_ends(fleet: Fleet) -> None:
    """The credentials of half of them end soon; four died while it was frozen; the others have half a day."""
    names = [f"stream-{number:02d}" for number in range(24)]
    dying, dead, living = set(names[:12]), set(names[12:16]), set(names[16:])
    brisk = {"watch": replace(CALM, look_every=timedelta(seconds=30)), "stop": StopPolicy(silence=timedelta(seconds=1))}
    fleet.declare(*sorted(dying), **brisk)
    fleet.clock.ahead += timedelta(hours=12)
    fleet.declare(*sorted(dead | living), **brisk)
    fleet.clock.ahead += ONE_WEEK - timedelta(hours=12, minutes=12)
    freeze(fleet, 12)

    async def story() -> None:
        for name in dead:
            [(_, app)] = fleet.generations(name)
            fleet.yarn.end(app.id, ApplicationState.FAILED)
        await asyncio.sleep(4 * MINUTE)
        assert all(len(fleet.generations(name)) == 1 for name in names)
        fleet.wakings.clear()
        # Lifted, because a worker's waits in place move the clocks of servers alone.
        FreezeStore(fleet.session).lift("done")
        await asyncio.sleep(6 * MINUTE)

    fleet.live(story)
    assert fleet.ended == {}
    assert {len(fleet.generations(name)) for name in names} == {2}
    at = {waking.stream: waking.at for waking in reversed(fleet.wakings)}
    assert max(at[name] for name in dying) < min(at[name] for name in living)
    for begin in at.values():
        assert sum(begin <= time < begin + MINUTE for time in at.values()) <= 11
