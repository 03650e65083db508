"""Triggers beyond the triggerers' capacity: counted in Airflow's own tables, and told by their effect elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import pytest
from airflow import models
from airflow.jobs.job import Job
from airflow.models.base import Base
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import Trigger
from sqlalchemy import create_engine, insert, select, update
from sqlalchemy.orm import Session

from airflow_kstream import airflow_cli
from airflow_kstream.assets import asset_uri
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from airflow_kstream.model.streams.stream_state import Rounds, StreamState, TaskIds
from airflow_kstream.policy.states.due import Kind, unlooked
from airflow_kstream.states.reading import TriggerersLoad, triggerers_load
from tests.airflow import notifiers
from tests.airflow.test_fleet_look import Runs
from tests.simulated.fleet import CONNECTION, Fleet

NOW = datetime.now(UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def database() -> Iterator[Session]:
    models.import_all_models()  # type: ignore[no-untyped-call]
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        yield session
    engine.dispose()


def defer(session: Session, streams: int, ago: timedelta = timedelta(hours=1)) -> None:
    """Let so many tasks be deferred since then, as Airflow keeps it."""
    for number in range(streams):
        trigger = Trigger("airflow_kstream.triggers.streams.StreamTrigger", {}, created_date=NOW - ago)
        session.add(trigger)
        session.flush()
        ids = {"dag_id": f"stream-prod.s{number}", "run_id": "r", "task_id": "keep", "map_index": -1}
        task = insert(TaskInstance.__table__).values(**ids, state="deferred", pool="p", trigger_id=trigger.id)
        session.execute(task)
    session.commit()


def triggerer(session: Session, heartbeat: timedelta = timedelta()) -> Job:
    """Let a triggerer live, whose last heartbeat was that long ago, and take what it may."""
    # Airflow asks the clock whether it lives, and minutes may have passed since this module was imported.
    job = Job(state="running", latest_heartbeat=datetime.now(UTC) - heartbeat)  # type: ignore[no-untyped-call]
    job.job_type = "TriggererJob"
    session.add(job)
    session.commit()
    for _ in range(30):
        Trigger.assign_unassigned(job.id, 1000, 30.0, session=session)
    return job


def test_ten_tasks_beyond_the_default_capacity_are_counted_with_what_to_set(database: Session) -> None:
    defer(database, 1010)
    triggerer(database)
    load = triggerers_load(database, NOW)
    assert load == TriggerersLoad(waited=10, triggers=1010, triggerers=1, capacity=1000)
    assert load.words.startswith("10 triggers have waited for a triggerer for longer than a minute")
    assert load.words.endswith("Set [triggerer] capacity to 1010 or more for each triggerer, or start another one")
    triggerer(database)
    assert triggerers_load(database, NOW).words == ""


def test_what_was_deferred_a_moment_ago_does_not_wait(database: Session) -> None:
    defer(database, 3, timedelta(seconds=20))
    assert triggerers_load(database, NOW).words == ""


@pytest.mark.parametrize(("silent", "waited"), [(timedelta(seconds=45), 0), (timedelta(hours=1), 3)])
def test_tasks_of_a_triggerer_that_died_wait_a_moment_later(database: Session, silent: timedelta, waited: int) -> None:
    """A rolling restart is no alarm."""
    defer(database, 3)
    job = triggerer(database)
    database.execute(update(Job).where(Job.id == job.id).values(latest_heartbeat=NOW - silent))
    load = triggerers_load(database, NOW)
    assert (load.waited, load.triggerers) == (waited, 0)
    assert load.words.endswith("no triggerer is alive. Start one") == bool(waited)


def test_what_waits_although_there_is_room_names_other_causes(database: Session) -> None:
    defer(database, 2)
    database.execute(update(Trigger).values(queue="edge"))
    triggerer(database)
    assert "serves the queue and the team" in triggerers_load(database, NOW).words


def test_the_command_line_tells_it_where_it_reaches_the_database(
    database: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    defer(database, 1)
    airflow_cli.tell_unserved(lambda: nullcontext(database))
    assert capsys.readouterr().err.startswith("1 trigger has waited")
    airflow_cli.tell_unserved(lambda: nullcontext(Session(create_engine("sqlite://"))))
    assert capsys.readouterr().err == ""


def states_of(database: Session, since: timedelta, served: timedelta = MINUTE) -> dict[str, StreamState]:
    """Return what is stored of each stream, where the tasks deferred then, and triggers looked since."""
    rows = database.execute(select(TaskInstance.dag_id, Trigger.triggerer_id).join(Trigger, isouter=False))
    found = {}
    for number, (dag, by) in enumerate(rows):
        seen = NOW - (served * number / 1010 if by else since)
        rounds = Rounds(1010.0 if by else 15.0, begun=by is not None, streams=1010)
        task = TaskIds(dag, "r", "keep", rounds=rounds)
        found[dag] = StreamState("running", "it runs", 1, None, seen, by=task)
    return found


def test_of_a_thousand_streams_the_ten_that_wait_are_called_unwatched(database: Session) -> None:
    defer(database, 1010)
    triggerer(database)
    states = states_of(database, since=7 * MINUTE, served=1010 * MINUTE / 60)
    late = unlooked(states, NOW)
    assert len(late) == 10
    assert {each.patience for each in late.values()} == {timedelta()}
    assert all("[triggerer] capacity" in each.why for each in late.values())
    assert unlooked(states_of(database, since=5 * MINUTE), NOW) == {}, "all may just have deferred"


def watched(seen: timedelta, every: float = 60.0, *, begun: bool = True) -> StreamState:
    by = TaskIds("stream-prod.orders", "r", "keep", rounds=Rounds(every, begun))
    return StreamState("running", "it runs", 1, None, NOW - seen, by=by)


def test_a_stream_that_looks_hourly_is_late_after_three_hours() -> None:
    assert unlooked({"orders": watched(170 * MINUTE, 3600.0)}, NOW) == {}
    assert unlooked({"orders": watched(190 * MINUTE, 3600.0)}, NOW).keys() == {"orders"}
    assert unlooked({"orders": watched(170 * MINUTE, 3600.0, begun=False)}, NOW) == {}


def test_a_store_that_was_away_for_an_hour_has_the_time_to_write_all_again() -> None:
    """Its rows are old, and nobody is alarmed before each had its turn."""
    fleet = {f"s{number}": watched(60 * MINUTE, 100.0, begun=number > 5) for number in range(100)}
    assert {each.patience for each in unlooked(fleet, NOW).values()} == {timedelta(seconds=400)}


def test_rows_of_an_earlier_version_alarm_nobody() -> None:
    old = StreamState.from_json({**watched(99 * MINUTE).to_json(), "rounds": None})
    assert old
    assert unlooked({"orders": old}, NOW) == {}


def test_a_time_of_the_future_that_somebody_stored_hides_nothing() -> None:
    assert unlooked({"orders": watched(-99 * MINUTE)}, NOW).keys() == {"orders"}


@pytest.mark.usefixtures("recording")
def test_the_fleets_look_tells_of_a_deferred_stream_that_no_triggerer_serves(fleet: Fleet) -> None:
    """And of no other; nothing is due."""
    fleet.declare("orders", "sales", "slow", "cleared", watch=WatchPolicy(every=timedelta(seconds=30)))
    for waits in ("orders", "cleared"):
        fleet.served[waits].clear()
    runs = Runs(fleet)

    async def story() -> None:
        await asyncio.sleep(60)
        uri = asset_uri(CONNECTION, "cleared")
        row = fleet.store[uri, Kind.VERDICT.value]
        fleet.store[uri, Kind.VERDICT.value], fleet.not_deferred = {**row, "dag": "detached"}, {"detached"}
        assert runs.look() == {}
        await asyncio.sleep(4 * 60)
        [(subject, hand)] = runs.look().items()
        assert (subject, hand["kind"]) == ("orders", "nobody_watches")
        assert "is deferred, and the last look at it was" in hand["why"]
        fleet.served["orders"].set()
        await asyncio.sleep(4 * 60)
        assert runs.look() == {}

    fleet.live(story)
    begin, end = (text for _, text in notifiers.told)
    assert begin.startswith("simulated: nobody watches a stream (orders): nobody seems to watch it: its task")
    assert end.startswith("simulated: the stream is watched again (orders), after ")


@pytest.mark.parametrize("minutes", [-4, 4])
def test_a_namenode_whose_clock_differs_makes_no_healthy_stream_unwatched(fleet: Fleet, minutes: int) -> None:
    """Kerberos allows five minutes; looks are stored by the clock of the host that looked."""
    fleet.declare("orders", "sales", watch=WatchPolicy(every=timedelta(seconds=30)))
    runs = Runs(fleet)

    async def story() -> None:
        await asyncio.sleep(60)
        fleet.hdfs.now = lambda: fleet.clock.now() + timedelta(minutes=minutes)  # type: ignore[method-assign]
        for _ in range(4):
            await asyncio.sleep(5 * 60)
            assert runs.look() == {}

    fleet.live(story)


def test_a_stream_that_looks_hourly_makes_the_others_late_no_later() -> None:
    states = {"hourly": watched(MINUTE, 3600.0), "orders": watched(10 * MINUTE, 15.0, begun=False)}
    (late,) = unlooked(states, NOW).items()
    assert late[0] == "orders"


def test_without_a_triggerer_nobody_watches_any_stream(fleet: Fleet) -> None:
    fleet.declare("orders", "sales", watch=WatchPolicy(every=timedelta(seconds=30)))
    runs = Runs(fleet)

    async def story() -> None:
        await asyncio.sleep(10 * 60)
        assert runs.look() == {}
        for waits in fleet.specs:
            fleet.served[waits].clear()
        fleet.restart_triggerer()
        await asyncio.sleep(4 * 60)
        assert runs.look() == {}, "Airflow's store may have been away"
        await asyncio.sleep(6 * 60)
        assert {hand["kind"] for hand in runs.look().values()} == {"nobody_watches"}

    fleet.live(story)
