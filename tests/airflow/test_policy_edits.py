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
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import Denied, Unavailable
from airflow_kstream.model.streams.declarations import (
    DeclarationFolder,
    KeptKind,
    KeptPolicies,
    edited,
    read_policies,
    written_policies,
)
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy, OnStall, RestartPolicy, WatchPolicy
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.airflow import notifiers
from tests.airflow.edits import Folder
from tests.simulated.fleet import CONNECTION, Fleet
from tests.simulated.servers import CLUSTER

MINUTE, HOUR = 60.0, 3600.0
DAY = timedelta(days=1)
# A look at each minute. The task that looks at the files has its own interval.
REACHED = 2 * MINUTE
PLACE = DeclarationFolder("", CONNECTION)
FILE = f"{CLUSTER.state_dir}/declared.streamer/{PLACE.file_name(KeptKind.POLICIES)}"
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


def kept(fleet: Fleet) -> KeptPolicies:
    return fleet.session.declarations.policies(PLACE)


def requests(fleet: Fleet, path: str) -> list[str]:
    """Record the requests about this file from now on."""
    asked: list[str] = []
    fleet.hdfs.at_request = lambda request, about: asked.append(request) if about == path else None
    return asked


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


def test_streams_that_were_not_edited_cost_one_reading_and_no_writing(fleet: Fleet, folder: Folder) -> None:
    names = [f"stream-{number}" for number in range(10, 30)]
    old(fleet, *names, restart=aged(5))
    folder.write(*fleet.specs.values())
    assert folder.look() == names

    async def story() -> None:
        asked = requests(fleet, FILE)
        await asyncio.sleep(15 * MINUTE)
        assert asked == ["read", "status"]
        assert folder.look() == []
        assert asked == ["read", "status"] * 2, "the task is another process"
        await asyncio.sleep(15 * MINUTE)
        assert len(asked) == 4

    fleet.live(story)
    assert fleet.wakings == []
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
    assert fleet.wakings == []


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


@pytest.mark.parametrize("away", ["HDFS", "YARN"])
def test_an_edit_while_the_cluster_is_away_is_obeyed_once_it_is_back(fleet: Fleet, folder: Folder, away: str) -> None:
    old(fleet, "orders", restart=aged(5))
    folder.write(fleet.specs["orders"])
    folder.look()

    async def story() -> None:
        set_away(fleet, away, True)
        await asyncio.sleep(10 * MINUTE)
        edit(fleet, folder, "orders", restart=aged(1))
        if away == "YARN":
            assert folder.look() == ["orders"]
        else:
            with pytest.raises(Unavailable):
                folder.look()
        await asyncio.sleep(50 * MINUTE)
        assert generations(fleet, "orders") == [1]
        set_away(fleet, away, False)
        assert folder.look() == (["orders"] if away == "HDFS" else [])
        await asyncio.sleep(20 * MINUTE)

    fleet.live(story)
    assert generations(fleet, "orders") == [1, 2]


def set_away(fleet: Fleet, server: str, away: bool) -> None:
    def refuse(request: str, path: str) -> None:
        raise Unavailable("connection refused", tried=request, server="http://nn:9870")

    fleet.yarn.away = away and server == "YARN"
    fleet.hdfs.at_request = refuse if away and server == "HDFS" else lambda request, path: None


def test_a_pool_that_is_full_for_two_hours_ends_no_watch(fleet: Fleet, folder: Folder) -> None:
    """The task that looks at the files gets no slot either. No trigger ends to learn of an edit."""
    old(fleet, "orders", restart=aged(5))
    folder.write(fleet.specs["orders"])
    folder.look()

    async def story() -> None:
        edit(fleet, folder, "orders", restart=aged(4))
        looks = requests(fleet, fleet.run_of("orders").id.folder)
        await asyncio.sleep(2 * HOUR)
        assert (fleet.wakings, len(looks) > 110) == ([], True)
        assert folder.look() == ["orders"]
        await asyncio.sleep(HOUR)
        assert (fleet.wakings, fleet.told("its declaration's policies were edited")) == ([], 1)
        fleet.clock.ahead += 2 * DAY
        await asyncio.sleep(REACHED)

    fleet.live(story)
    assert submitted_with(fleet, "orders").restart == aged(4)
    assert len(fleet.wakings) == 1


def test_a_policy_that_is_removed_no_longer_holds(fleet: Fleet, folder: Folder) -> None:
    """Nor after a triggerer restarts: what its database keeps would restart the stream."""
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


def test_airflows_store_takes_no_part_in_it(fleet: Fleet, folder: Folder) -> None:
    old(fleet, "orders", restart=aged(5))
    folder.write(fleet.specs["orders"])
    folder.look()
    edit(fleet, folder, "orders", restart=aged(1))
    folder.look()
    fleet.store_fails = OSError("away")

    async def story() -> None:
        await asyncio.sleep(REACHED)
        assert generations(fleet, "orders") == [1, 2]

    fleet.live(story)
    assert len(fleet.wakings) == 1


FORGED = {"policies": {"restart": {"max_age": "60s"}, "notify": {"notifier": "os.system", "kwargs": {"command": "id"}}}}


@pytest.mark.parametrize("key", ["policies", "policy_marks"])
@pytest.mark.parametrize("at", ["2026-03-01T00:00:00+00:00", "9999-01-01T00:00:00+00:00", "rubbish"])
def test_a_row_that_somebody_wrote_into_airflows_store_edits_nothing(
    fleet: Fleet, folder: Folder, key: str, at: str
) -> None:
    old(fleet, "orders", restart=aged(5))
    folder.write(fleet.specs["orders"])
    folder.look()
    row = {**FORGED, "at": at, "former": [], "streams": {"orders": "0a1b2c3d"}, "declarations": "x"}
    for uri in (asset_uri(CONNECTION), asset_uri(CONNECTION, "orders")):
        fleet.store[uri, key] = row

    async def story() -> None:
        await asyncio.sleep(2 * HOUR)

    fleet.live(story)
    assert (fleet.wakings, fleet.told("were edited; the edited ones hold")) == ([], 0)


@pytest.mark.parametrize("named", ["mallory", "streamer.2"])
def test_what_a_stranger_keeps_edits_nothing(fleet: Fleet, folder: Folder, named: str) -> None:
    """Nor a file in the folder of a supervisor who left it open."""
    old(fleet, "orders", restart=aged(5))
    folder.write(fleet.specs["orders"])
    folder.look()
    # No edit is younger than its file.
    policies = edited(None, read_policies(FORGED["policies"]), fleet.clock.now() + 365 * DAY)
    text = written_policies(PLACE, KeptPolicies({"orders": policies}), "streamer@EXAMPLE.COM")
    fleet.hdfs.modes |= {CLUSTER.state_dir: "1777", FILE.rpartition("/")[0]: "777"}
    theirs = f"{CLUSTER.state_dir}/declared.{named}"
    with fleet.hdfs.as_user("mallory"):
        fleet.hdfs.make_folder(theirs, "755")
        fleet.hdfs.write(f"{theirs}/{PLACE.file_name(KeptKind.POLICIES)}", text)
        fleet.hdfs.write("/tmp/forged", text)
        fleet.hdfs.files[FILE] = fleet.hdfs.files.pop("/tmp/forged")
        fleet.hdfs.owners[FILE] = "mallory"

    async def story() -> None:
        await asyncio.sleep(HOUR)
        assert fleet.wakings == []
        fleet.hdfs.owners.pop(FILE)
        fleet.hdfs.files[FILE] = (fleet.hdfs.files[FILE][0], fleet.clock.now())
        await asyncio.sleep(REACHED)
        assert len(fleet.wakings) == 1, "with a supervisor's name on it, it holds"

    fleet.live(story)


def test_a_stream_of_a_dag_of_ones_own_follows_no_folder(fleet: Fleet, folder: Folder) -> None:
    old(fleet, "orders", restart=aged(5))
    fleet.of_own_dags.add("orders")
    folder.write(fleet.specs["orders"])
    folder.look()

    async def story() -> None:
        edit(fleet, folder, "orders", restart=aged(1))
        assert folder.look() == ["orders"]
        await asyncio.sleep(HOUR)

    fleet.live(story)
    assert fleet.wakings == []


def test_a_principal_that_is_no_supervisor_learns_the_way_out(fleet: Fleet, folder: Folder) -> None:
    old(fleet, "orders", restart=aged(5))
    folder.write(fleet.specs["orders"])
    fleet.hdfs.whoami = "etl"
    with pytest.raises(Denied, match=r"name etl in a line of /kstream/supervisors"):
        folder.look()


def test_the_edits_of_another_installation_are_its_own(
    fleet: Fleet, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    old(fleet, "orders", restart=aged(5))
    folder.write(edit(fleet, folder, "orders", restart=aged(1)))
    # The name of an installation is a setting of Airflow's.
    monkeypatch.setenv("AIRFLOW__KSTREAM__INSTALLATION", "test")
    assert folder.look() == ["orders"]
    monkeypatch.delenv("AIRFLOW__KSTREAM__INSTALLATION")

    async def story() -> None:
        await asyncio.sleep(HOUR)

    fleet.live(story)
    assert fleet.wakings == []


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
    assert kept(fleet).streams.keys() == {"sales"}


def test_an_edit_before_the_first_look_at_the_file_is_not_lost(fleet: Fleet, folder: Folder) -> None:
    """A worker that is late as well takes its own copy for newer: two declarations are not a reason for a busy loop."""
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


def test_no_secret_is_kept_and_no_template_is_rendered_twice(fleet: Fleet, folder: Folder) -> None:
    notify = NotifyPolicy(f"{notifiers.HERE}.Recording", {"text": "{{ event.words }} {{ ds }}"})
    fleet.declare("orders", "sales")
    folder.write(replace(fleet.specs["sales"], notify=replace(notify, kwargs={"text": "x", "password": "hunter2"})))
    folder.write(replace(fleet.specs["orders"], notify=notify, conf={"spark.ssl.keyPassword": "hunter2"}))
    assert folder.look() == []
    assert "hunter2" not in str(fleet.hdfs.files)
    folder.write(replace(fleet.specs["orders"], notify=notify))
    assert folder.look() == ["orders"]
    stored = kept(fleet).streams["orders"].policies["notify"]
    assert stored == {"notifier": notify.notifier, "kwargs": {"text": "{{ event.words }} {{ ds }}"}}


def test_a_state_dir_that_is_not_made_yet_is_made_by_no_edit(fleet: Fleet, folder: Folder) -> None:
    fleet.declare("orders", heartbeat=HeartbeatPolicy(on_stall=OnStall.RESTART))
    folder.write(*fleet.specs.values())
    fleet.hdfs.files.clear()
    fleet.hdfs.modes = {"/": "755"}
    assert folder.look() == []
    assert not fleet.hdfs.files
