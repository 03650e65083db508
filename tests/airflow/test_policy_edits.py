"""Edited policies reach the deferred tasks of declared streams, and change nothing else.

In most stories the worker's copy of a declaration is the one from before the edit, as where a host is late: the task
and its trigger must not disagree for ever.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.application import ApplicationState
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.notify import NotifyPolicy
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.stream_policies import HeartbeatPolicy, OnStall, RestartPolicy, WatchPolicy
from airflow_kstream.states.policy_edits import EDIT, MARKS
from airflow_kstream.supervise.streams.desired import set_desired
from tests.airflow import notifiers
from tests.airflow.edits import Folder
from tests.simulated.fleet import CONNECTION, Fleet
from tests.simulated.servers import ONE_WEEK

MINUTE, HOUR = 60.0, 3600.0
DAY = timedelta(days=1)
# A trigger reads within 15 minutes and acts at its second look after that: at the first one it takes over the edit.
# The task that looks at the files has its own interval.
REACHED = 18 * MINUTE
PATIENT = WatchPolicy(every=timedelta(minutes=1))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def aged(days: float) -> RestartPolicy:
    return RestartPolicy(jitter_ratio=0, max_age=timedelta(days=days))


def old(fleet: Fleet, *names: str, **changed: Any) -> None:
    """Declare streams, and let two days pass."""
    fleet.declare(*names, watch=PATIENT, **changed)
    fleet.clock.ahead += 2 * DAY


def edit(fleet: Fleet, folder: Folder, name: str, **changed: Any) -> StreamSpec:
    """Edit a file; the worker goes on with its own copy of it."""
    spec = replace(fleet.specs[name], **changed)
    folder.write(spec)
    return spec


def submitted_with(fleet: Fleet, name: str) -> StreamSpec:
    claim = fleet.run_of(name).folder.claim(fleet.run_of(name).folder.names())
    assert claim is not None
    assert isinstance(claim.spec, StreamSpec)
    return claim.spec


def generations(fleet: Fleet, name: str) -> list[int]:
    return [number for number, _ in fleet.generations(name)]


@pytest.mark.parametrize("late", [True, False])
def test_an_edited_max_age_restarts_a_deferred_stream_in_time_and_once(
    fleet: Fleet, folder: Folder, *, late: bool
) -> None:
    """On a worker that is late, too, which goes on to read the former declaration."""
    old(fleet, "orders", restart=aged(5))
    folder.write(fleet.specs["orders"])
    folder.look()

    async def story() -> None:
        await asyncio.sleep(20 * MINUTE)
        assert fleet.wakings == []
        edited = edit(fleet, folder, "orders", restart=aged(1))
        if not late:
            fleet.specs["orders"] = edited
        assert folder.look() == ["orders"]
        await asyncio.sleep(REACHED)
        assert generations(fleet, "orders") == [1, 2]
        assert submitted_with(fleet, "orders").restart == aged(1)
        assert len(fleet.wakings) == 1
        fleet.engine.complete_epoch(fleet.specs["orders"])
        fleet.clock.ahead += timedelta(hours=16)
        await asyncio.sleep(HOUR)
        assert len(fleet.wakings) == 1
        await asyncio.sleep(2 * HOUR)

    fleet.live(story)
    assert generations(fleet, "orders") == [1, 2, 3]
    assert (len(fleet.wakings), fleet.ended) == (2, {})


def test_streams_that_were_not_edited_cost_one_reading_of_their_clusters_marks(fleet: Fleet, folder: Folder) -> None:
    names = [f"stream-{number}" for number in range(10, 30)]
    old(fleet, *names, restart=aged(5))
    folder.write(*fleet.specs.values())
    assert folder.look() == names
    stored = {key: value for key, value in fleet.store.items() if key[1] in {EDIT, MARKS}}
    assert len(stored) == 21

    async def story() -> None:
        await asyncio.sleep(15 * MINUTE)
        assert folder.look() == []
        await asyncio.sleep(15 * MINUTE)

    fleet.live(story)
    assert (fleet.wakings, fleet.store_reads[EDIT]) == ([], 0)
    assert fleet.store_reads[MARKS] <= 35, "once a minute, however many streams there are"
    assert {key: fleet.store[key] for key in stored} == stored
    assert {each for name in names for each in generations(fleet, name)} == {1}


def test_an_edit_of_another_field_waits_for_the_next_restart(fleet: Fleet, folder: Folder) -> None:
    old(fleet, "orders", restart=aged(5))
    folder.write(fleet.specs["orders"])
    folder.look()

    async def story() -> None:
        edit(fleet, folder, "orders", arguments=("--all",))
        assert folder.look() == []
        await asyncio.sleep(HOUR)

    fleet.live(story)
    assert (fleet.wakings, fleet.store_reads[EDIT]) == ([], 0)


def test_streams_that_are_edited_at_once_restart_one_after_the_other(fleet: Fleet, folder: Folder) -> None:
    names = [f"stream-{number}" for number in range(16)]
    old(fleet, *names, restart=aged(5))
    folder.write(*fleet.specs.values())
    folder.look()

    async def story() -> None:
        await asyncio.sleep(5 * MINUTE)
        for name in names:
            edit(fleet, folder, name, restart=aged(1))
        assert sorted(folder.look()) == sorted(names)
        await asyncio.sleep(REACHED + 10 * MINUTE)

    fleet.live(story)
    assert sorted(fleet.woken()) == sorted(names)
    moments = [waking.at for waking in fleet.wakings]
    assert all(later - earlier >= 50 for earlier, later in zip(moments, moments[10:], strict=False)), "ten a minute"
    assert all(generations(fleet, name) == [1, 2] for name in names)


def test_an_edit_while_the_cluster_is_away_is_obeyed_once_it_is_back(fleet: Fleet, folder: Folder) -> None:
    old(fleet, "orders", restart=aged(5))
    folder.write(fleet.specs["orders"])
    folder.look()

    async def story() -> None:
        fleet.yarn.away = True
        await asyncio.sleep(10 * MINUTE)
        edit(fleet, folder, "orders", restart=aged(1))
        assert folder.look() == ["orders"]
        await asyncio.sleep(50 * MINUTE)
        assert generations(fleet, "orders") == [1]
        fleet.yarn.away = False
        await asyncio.sleep(20 * MINUTE)

    fleet.live(story)
    assert generations(fleet, "orders") == [1, 2]


def test_a_policy_that_is_removed_no_longer_holds(fleet: Fleet, folder: Folder) -> None:
    """A triggerer that restarts reads that first, however slowly: what its database keeps would restart the stream."""
    fleet.declare("orders", restart=aged(1))
    folder.write(fleet.specs["orders"])
    folder.look()

    async def story() -> None:
        await asyncio.sleep(10 * MINUTE)
        edit(fleet, folder, "orders", restart=RestartPolicy(jitter_ratio=0))
        assert folder.look() == ["orders"]
        await asyncio.sleep(REACHED)
        fleet.clock.ahead += 2 * DAY
        await asyncio.sleep(20 * MINUTE)
        fleet.store_slow = 25.0
        fleet.restart_triggerer()
        await asyncio.sleep(20 * MINUTE)

    fleet.live(story)
    assert (fleet.wakings, generations(fleet, "orders")) == ([], [1])


def test_an_edited_interval_of_looks_holds(fleet: Fleet, folder: Folder) -> None:
    fleet.declare("orders", watch=WatchPolicy(every=timedelta(minutes=5)))
    folder.write(fleet.specs["orders"])
    folder.look()

    async def story() -> None:
        edit(fleet, folder, "orders", watch=WatchPolicy(every=timedelta(seconds=5)))
        folder.look()
        await asyncio.sleep(REACHED + 5 * MINUTE)
        set_desired(fleet.run_of("orders"), DesiredState.STOPPED, "maintenance")
        await asyncio.sleep(10)
        assert fleet.woken() == ["orders"]

    fleet.live(story)


def test_a_store_that_is_away_changes_nothing_and_delays_no_restart(fleet: Fleet, folder: Folder) -> None:
    old(fleet, "orders", restart=aged(5))
    folder.write(edit(fleet, folder, "orders", restart=aged(1)))
    folder.look()
    fleet.store_fails = OSError("away")

    async def story() -> None:
        await asyncio.sleep(HOUR)
        assert fleet.wakings == []
        fleet.clock.ahead += 0.6 * ONE_WEEK
        await asyncio.sleep(3 * MINUTE)
        assert generations(fleet, "orders") == [1, 2]
        fleet.store_fails = None
        await asyncio.sleep(REACHED)

    fleet.live(story)
    assert fleet.told("were edited can't be read: OSError('away')") == 1
    assert len(fleet.wakings) == 1


def test_a_refused_file_keeps_what_was_stored_and_its_stream_is_kept_by_that(fleet: Fleet, folder: Folder) -> None:
    """Its restart was due by an edit that was good; the policies of what was last submitted are older."""
    fleet.declare("orders", watch=PATIENT, restart=aged(5))
    folder.write(fleet.specs["orders"])
    folder.look()
    edit(fleet, folder, "orders", restart=aged(1))
    assert folder.look() == ["orders"]
    folder.write_text("orders", "name: orders\ncredenti")
    assert folder.look() == []
    fleet.refused.add("orders")

    async def story() -> None:
        fleet.clock.ahead += timedelta(hours=11)
        await asyncio.sleep(HOUR)
        assert fleet.wakings == []
        fleet.clock.ahead += timedelta(hours=6)
        await asyncio.sleep(HOUR)
        assert generations(fleet, "orders") == [1, 2]
        fleet.engine.complete_epoch(fleet.specs["orders"])
        fleet.clock.ahead += timedelta(hours=11)
        await asyncio.sleep(HOUR)

    fleet.live(story)
    assert (len(fleet.wakings), fleet.ended) == (1, {})
    assert submitted_with(fleet, "orders").restart == aged(1)


def test_a_file_that_is_removed_leaves_nothing_to_another_declaration(fleet: Fleet, folder: Folder) -> None:
    fleet.declare("orders", "sales", watch=PATIENT, restart=aged(5))
    folder.write(*fleet.specs.values())
    assert folder.look() == ["orders", "sales"]
    folder.remove("orders")
    assert folder.look() == []
    assert (asset_uri(CONNECTION, "orders"), EDIT) not in fleet.store
    assert fleet.store[asset_uri(CONNECTION), MARKS]["streams"].keys() == {"sales"}


def test_an_edit_before_the_first_look_at_the_file_is_not_lost(fleet: Fleet, folder: Folder) -> None:
    """A worker that is late as well takes its own copy for newer: two declarations are no reason for a busy loop."""
    old(fleet, "orders", restart=aged(5))

    async def story() -> None:
        await asyncio.sleep(MINUTE)
        edit(fleet, folder, "orders", restart=aged(1))
        assert folder.look() == ["orders"]
        await asyncio.sleep(2 * HOUR)

    fleet.live(story)
    assert len(fleet.wakings) == 1


def test_a_declaration_that_is_newer_than_what_is_stored_holds(fleet: Fleet, folder: Folder) -> None:
    """As while nobody looks at the files: its task reads them when it resumes."""
    old(fleet, "orders", restart=aged(5))
    folder.write(fleet.specs["orders"])
    folder.look()
    edit(fleet, folder, "orders", restart=aged(4))
    folder.look()

    async def story() -> None:
        await asyncio.sleep(HOUR)
        fleet.specs["orders"] = replace(fleet.specs["orders"], restart=aged(3))
        fleet.yarn.end("application_1_0001", ApplicationState.KILLED, "Container preempted by scheduler")
        await asyncio.sleep(HOUR)

    fleet.live(story)
    assert submitted_with(fleet, "orders").restart == aged(3)


def test_no_secret_enters_the_store_and_no_template_is_rendered_twice(fleet: Fleet, folder: Folder) -> None:
    notify = NotifyPolicy(f"{notifiers.HERE}.Recording", {"text": "{{ event.words }} {{ ds }}"})
    fleet.declare("orders", "sales")
    folder.write(replace(fleet.specs["sales"], notify=replace(notify, kwargs={"text": "x", "password": "hunter2"})))
    folder.write(replace(fleet.specs["orders"], notify=notify, conf={"spark.ssl.keyPassword": "hunter2"}))
    assert folder.look() == []
    assert "hunter2" not in str(fleet.store)
    folder.write(replace(fleet.specs["orders"], notify=notify))
    assert folder.look() == ["orders"]
    stored = fleet.store[asset_uri(CONNECTION, "orders"), EDIT]["policies"]["notify"]
    assert stored == {"notifier": notify.notifier, "kwargs": {"text": "{{ event.words }} {{ ds }}"}}


def test_a_stream_without_an_asset_is_stored_by_the_next_run(fleet: Fleet, folder: Folder) -> None:
    """Its DAG is not parsed yet."""

    class NotNamed(Exception):
        class error:
            detail = {"status_code": 404}  # noqa: RUF012

    fleet.declare("orders", "sales", heartbeat=HeartbeatPolicy(on_stall=OnStall.RESTART))
    folder.write(*fleet.specs.values())

    def refuse(uri: str) -> None:
        if uri == asset_uri(CONNECTION, "orders"):
            raise NotNamed

    writes, fleet.at_tasks_write = fleet.at_tasks_write, refuse
    assert folder.look() == ["sales"]
    fleet.at_tasks_write = writes
    assert folder.look() == ["orders"]
    assert folder.look() == []
