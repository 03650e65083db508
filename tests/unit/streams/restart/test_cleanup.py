"""What crashed writers and dead applications leave is removed once: nothing fresh, nothing twice.

HDFS is simulated: its requests are counted, and its clock jumps an hour ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.contract import (
    claim_file,
    cleaned_marker,
    is_cleaned_marker,
    is_draft,
    started_marker,
)
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.orders.desired import set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.flink import FlinkLife
from tests.simulated.life import Life
from tests.simulated.servers import SimHdfs

DRAFTS = (
    ".claim-0123456789ab",
    ".fence-0123456789ab",
    ".stop-000001.0123456789abcdef0123456789abcdef",
    ".started-000001.0123456789abcdef0123456789abcdef.tmp",
    ".failed-000001.0123456789abcdef0123456789abcdef.tmp",
    ".accepted-000002.0123456789abcdef0123456789abcdef",
    ".reached-000001.0123456789abcdef0123456789abcdef",
    ".check-0123456789ab.first",
)


@dataclass
class Counting(SimHdfs):
    """It remembers what it was asked to delete, and refuses to delete some names."""

    deleted: list[str] = field(default_factory=list)
    denied: str = "no such name"

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        self.deleted.append(path)
        if self.denied in path:
            raise Denied("sticky bit")
        return super().delete(path, recursive=recursive)


@pytest.fixture
def hdfs(life: Life) -> Counting:
    hdfs = Counting(life.clock)
    life.use(hdfs)
    life.begin()
    return hdfs


def write(life: Life, name: str) -> str:
    life.hdfs.write(f"{life.run.id.folder}/{name}", "half a word")
    return name


@pytest.mark.parametrize("name", DRAFTS)
def test_a_draft_of_a_crashed_writer_is_removed_after_an_hour(life: Life, hdfs: Counting, name: str) -> None:
    write(life, name)
    life.clock.ahead += timedelta(minutes=59)
    life.reconcile()
    assert name in life.run.folder.names()
    life.clock.ahead += timedelta(minutes=2)
    life.reconcile()
    assert name not in life.run.folder.names()


def test_a_fresh_draft_beside_an_old_one_stays(life: Life, hdfs: Counting) -> None:
    old = write(life, DRAFTS[0])
    life.clock.ahead += timedelta(hours=2)
    fresh = write(life, ".claim-ba9876543210")
    life.reconcile()
    assert {name for name in life.run.folder.names() if is_draft(name)} == {fresh} != {old}


def test_a_spark_job_of_a_stream_of_flinks_is_stopped_and_removed_as_one_of_sparks(life: Life, hdfs: Counting) -> None:
    """What it leaves has a copy of its keytab."""

    def obeys(request: str, path: str) -> None:
        if (request, path) == ("list", life.run.id.folder) and f"{path}/stop-000001" in hdfs.files:
            life.yarn.end("application_1_0001")

    hdfs.write(f"{life.run.id.folder}/{started_marker(1)}", "")
    hdfs.at_request = obeys
    FlinkLife(life)
    set_desired(life.run, DesiredState.STOPPED, "it becomes one of Flink's")
    assert "its driver stopped at the marker" in life.reconcile().done[0].what
    assert [path for path in hdfs.deleted if path.endswith(".sparkStaging/application_1_0001")]


@pytest.mark.parametrize("name", [".trash", ".claims", "notes.txt", ".Trash-1", "gen-000001.bak"])
def test_what_is_none_of_ours_stays(life: Life, hdfs: Counting, name: str) -> None:
    write(life, name)
    life.clock.ahead += timedelta(days=2)
    life.reconcile()
    assert name in life.run.folder.names()


def test_an_application_is_cleaned_up_after_once(life: Life, hdfs: Counting) -> None:
    life.request_restart()
    assert "deleted /tmp/fake/application_1_0001" in str(life.reconcile().done)
    hdfs.deleted.clear()
    for _ in range(3):
        life.reconcile()
    assert hdfs.deleted == []


def test_a_late_application_of_a_generation_is_cleaned_up_after_as_well(life: Life, hdfs: Counting) -> None:
    """It arrived after its generation was given up, and failed without its fence: its keytab lies there."""
    life.request_restart()
    life.reconcile()
    late = life.yarn.start(frozenset(life.run.id.tags(1)))
    hdfs.write(f"/tmp/fake/{late.id}/job.graph", "with a keytab in it")
    life.yarn.end(late.id)
    assert f"deleted /tmp/fake/{late.id}" in str(life.reconcile().done)


def test_what_could_not_be_deleted_is_tried_again(life: Life, hdfs: Counting) -> None:
    life.request_restart()
    hdfs.denied = "/tmp/fake"
    life.reconcile()
    assert cleaned_marker("application_1_0001") not in life.run.folder.names()
    hdfs.denied = "no such name"
    assert "deleted /tmp/fake/application_1_0001" in str(life.reconcile().done)


def test_an_application_is_not_cleaned_up_after_while_older_states_stay(life: Life, hdfs: Counting) -> None:
    def refuse(*_: object) -> Iterator[str]:
        yield "/states/of/generation/0"
        raise Denied("sticky bit")

    # A NameNode's refusal in the middle of what an engine deletes: no simulated engine keeps states.
    remove = life.engine.remove_superseded
    life.engine.remove_superseded = refuse  # type: ignore[method-assign,assignment]
    life.request_restart()
    assert "deleted /states/of/generation/0" in str(life.reconcile().done)
    assert cleaned_marker("application_1_0001") not in life.run.folder.names()
    life.engine.remove_superseded = remove  # type: ignore[method-assign]
    life.reconcile()
    assert cleaned_marker("application_1_0001") in life.run.folder.names()


def test_what_a_former_user_left_stops_no_cleanup_after_others(life: Life, hdfs: Counting) -> None:
    """The stream runs as another user now, who may not delete in that one's home."""
    old = write(life, DRAFTS[0])
    life.clock.ahead += timedelta(hours=2)
    hdfs.denied = "/tmp/fake/application_1_0001"
    told: list[str] = []
    for _ in range(2):
        life.request_restart()
        report = Reconciler(life.run, tell=told.append).run(Mode.WATCH)
    assert "deleted /tmp/fake/application_1_0002" in str(report.done)
    assert any(line.startswith("not cleaned up") for line in told)
    assert cleaned_marker("application_1_0001") not in life.run.folder.names()
    assert old not in life.run.folder.names()


def test_markers_go_when_the_resourcemanager_forgets_their_applications(life: Life, hdfs: Counting) -> None:
    life.request_restart()
    life.reconcile()
    assert any(is_cleaned_marker(name) for name in life.run.folder.names())
    del life.yarn.apps["application_1_0001"]
    life.reconcile()
    assert not any(is_cleaned_marker(name) for name in life.run.folder.names())


def test_a_file_of_another_user_that_may_not_be_deleted_stops_no_clean_up(life: Life, hdfs: Counting) -> None:
    """A person without the stream's own rights wrote it, into a folder that only its writers clear."""
    theirs = write(life, ".accepted-000002.0123456789abcdef0123456789abcdef")
    ours = write(life, ".claim-0123456789ab")
    life.clock.ahead += timedelta(hours=2)
    hdfs.denied = theirs
    assert life.reconcile().phase is Phase.RUNNING
    assert theirs in life.run.folder.names()
    assert ours not in life.run.folder.names()


def test_after_many_generations_ten_claims_are_left(life: Life, hdfs: Counting) -> None:
    for _ in range(14):
        life.request_restart()
        life.reconcile(Mode.ENSURE)
    claims = sorted(name for name in life.run.folder.names() if name.startswith("gen-"))
    assert claims == [claim_file(number) for number in range(6, 16)]
