"""Anything in the place of any file of a stream's folder: which files keep the stream from being supervised, and how
a person learns that."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.clusters.authors import ALL_STREAMS
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.checkpoint_owner import owner_file
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.supervise.clusters.write_once import text_at
from airflow_kstream.supervise.streams.checkpoint.checkpoint_lock import CheckpointLock
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.memory import past_ends
from airflow_kstream.supervise.streams.folder.registry import streams_among
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.look.other_streams import lives_of
from tests.simulated.folders import order_path
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs, SimYarn, session_of
from tests.unit.streams.folder.test_broken_claims import House

GARBAGE: dict[str, bytes | None] = {
    "no UTF-8": b"\xff\xfe\x00\x01" * 9,
    "a newer version": b'{"version": 99}',
    "a list": b"[]",
    "null": b"null",
    "nested deeply": b"[" * 200_000,
    "empty": b"",
    "no number": b"NaN",
    "no finite number": b"1e999",
    "a large text": b"x" * 3_000_000,
    "a large object": json.dumps({"x": ["y"] * 500_000}).encode(),
    "a folder": None,
}
# What is understood, or nothing is done.
DECISIVE = ("gen-000001", "accepted-000002")
# What tells only of the past, or of what a driver or a rival did: its name is enough, or nothing else fails with it.
HISTORY = (
    "ended-000001",
    "reached-000001",
    "launched-000001",
    "started-000001",
    "failed-000001",
    "blocked-000001",
    "examined-000001",
    "push-000001-1767225600000-0",
    "applied-000001-1767225600000",
    "refused-000001-1767225600000",
    "unpushed-000001-1767225600000",
    "stalled-000001-3-1767225600",
    "fence-000001-x",
    ".gen-000002.draft",
    "by-hand.txt",
)
_WHY = {"no UTF-8": "it is not text", "a folder": "it is a folder", "a list": "it is not JSON object"}
_NEWER = "is of version 99, and this program reads"


def lay(hdfs: SimHdfs, path: str, content: bytes | None) -> None:
    hdfs.files.pop(path, None)
    hdfs.write(path if content is not None else f"{path}/x", content or b"")


def put(house: House, file: str, content: bytes | None) -> None:
    lay(house.hdfs, house.path("sales", file), content)


@pytest.fixture(params=GARBAGE)
def garbage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("file", DECISIVE)
def test_what_decides_and_cannot_be_understood_is_named_with_the_way_out(file: str, garbage: str) -> None:
    house = House()
    before = house.verdicts()["orders"].step
    put(house, file, GARBAGE[garbage])
    verdicts = house.verdicts()
    said = verdicts["sales"].why
    assert verdicts["orders"].step == before
    assert not verdicts["sales"].calls_for_action
    if (file, garbage) in {("gen-000001", "a newer version")}:
        assert f"left alone: what was submitted is not known: its claim {_NEWER}" in said
        return
    path = house.path("sales", file)
    assert f"{path} can't be understood: {_WHY.get(garbage, '')}" in said
    assert "nothing is done for this stream until somebody has repaired that file, or removed it with " in said
    assert f"`hdfs dfs -rm -r {path}`" in said
    assert "Retrying may help" not in said
    assert _NEWER in said or garbage != "a newer version"


def test_an_order_that_cannot_be_understood_is_named_with_its_author(garbage: str) -> None:
    house = House()
    before = house.verdicts()["orders"].step
    path = order_path(StreamId("sales", CLUSTER.state_dir))
    lay(house.hdfs, path, GARBAGE[garbage])
    verdicts = house.verdicts()
    assert verdicts["orders"].step == before
    if garbage == "a folder":
        assert verdicts["sales"].calls_for_action == verdicts["orders"].calls_for_action, "no file, no order"
        return
    assert not verdicts["sales"].calls_for_action
    said = verdicts["sales"].why
    assert f"{path} of streamer can't be understood: {_WHY.get(garbage, '')}" in said
    assert "nothing is done until a new order takes its place, or until its author or HDFS's superuser removes" in said
    assert f"`hdfs dfs -rm -r {path}`" in said
    assert _NEWER in said or garbage != "a newer version"


@pytest.mark.parametrize("file", HISTORY)
def test_history_that_cannot_be_understood_blocks_nothing(file: str, garbage: str) -> None:
    house = House()
    before = house.verdicts()["sales"]
    put(house, file, GARBAGE[garbage])
    after = house.verdicts()["sales"]
    assert type(after.step) is type(before.step)
    assert "can't be understood" not in after.why
    assert after.credentials.horizon == before.credentials.horizon
    assert after.calls_for_action == before.calls_for_action


def test_a_record_of_ends_that_cannot_be_read_tells_its_generation_and_time(garbage: str) -> None:
    house = House()
    put(house, "ended-000001", GARBAGE[garbage])
    folder = StreamFolder(house.session, StreamId("sales", CLUSTER.state_dir))
    (end,) = past_ends(folder, folder.names())
    assert (end.generation, end.lasted) == (1, timedelta())
    assert end.at.tzinfo
    assert lives_of(house.session, StreamId("sales", CLUSTER.state_dir))


def test_an_order_to_freeze_that_cannot_be_understood_holds_and_says_so(garbage: str) -> None:
    hdfs = SimHdfs(SimClock())
    brake = FreezeStore(session_of(hdfs, SimYarn(hdfs.clock)))
    lay(hdfs, order_path(ALL_STREAMS), GARBAGE[garbage])
    word = brake.newest()
    assert word.holds(hdfs.now()) is (garbage != "a folder")
    if garbage == "a folder":
        return
    assert _WHY.get(garbage, "") in word.doubt


def test_an_owner_that_cannot_be_understood_is_named_with_the_way_out(garbage: str) -> None:
    hdfs = SimHdfs(SimClock())
    lock = CheckpointLock(hdfs, "/data/sales")  # type: ignore[arg-type]
    path = f"/data/sales/_kstream/{owner_file(1)}"
    lay(hdfs, path, GARBAGE[garbage])
    with pytest.raises(InvalidInput) as refused:
        lock.read(lock.files()[0])
    assert f"{path} of streamer can't be understood: " in refused.value.message
    assert f"`hdfs dfs -rm -r {path}`" in refused.value.message


def test_what_stands_in_the_place_of_a_draft_is_nobodys(garbage: str) -> None:
    hdfs = SimHdfs(SimClock())
    lay(hdfs, "/x/file", GARBAGE[garbage])
    assert text_at(hdfs, "/x/file") != "ours"  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["*", "orders x", "o`id`", "$(touch x)", "{orders,x}", "Orders", "-rf"])
def test_a_folder_with_a_name_that_no_stream_can_have_is_not_listed(name: str) -> None:
    stream = StreamId(name, "/kstream")
    entries = {str(stream): FileStatus(str(stream), 0, datetime(2026, 3, 1, tzinfo=UTC), is_folder=True)}
    assert streams_among(entries, "/kstream") == []
