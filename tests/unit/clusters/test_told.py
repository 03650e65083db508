"""Notes of what was told: whose count, what they cost, and that a note of one subject is none of another."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.errors import NotFound, Unavailable
from airflow_kstream.model.streams.event import (
    EventKind,
    LastingEvent,
    Ledger,
    ToldSubject,
    is_told_of,
    read_told,
    written_told,
)
from airflow_kstream.supervise.clusters.state_dir import StateDir
from airflow_kstream.supervise.clusters.told import ToldNotes
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ORDERS = ToldSubject("", "prod", "orders")
OWN = f"{CLUSTER.state_dir}/told.streamer"


def ledger(changes: int = 1, kind: EventKind = EventKind.STALLED) -> Ledger:
    return Ledger({(kind, ""): LastingEvent(kind, NOW, "no commit")}, changes)


@pytest.fixture
def hdfs() -> SimHdfs:
    return SimHdfs(SimClock())


def of(hdfs: SimHdfs) -> ToldNotes:
    """Return the notes as a new process sees them."""
    return ToldNotes(cast("Hdfs", hdfs), StateDir(cast("Hdfs", hdfs), CLUSTER.state_dir))


def told(hdfs: SimHdfs, subject: ToldSubject = ORDERS) -> Ledger:
    return of(hdfs).read([subject])[subject]


def test_the_next_process_knows_what_was_noted(hdfs: SimHdfs) -> None:
    of(hdfs).note(ORDERS, ledger())
    of(hdfs).note(ORDERS, ledger(2))
    assert told(hdfs) == ledger(2)
    assert hdfs.modes[OWN] == "700"
    assert [*hdfs.files] == [f"{OWN}/{ORDERS.file_name}"], "no draft is left"


def test_what_a_task_keeps_lies_beside_what_was_told_for_its_own_subject(hdfs: SimHdfs) -> None:
    kept, other = ToldSubject("", "prod", key="pending_steps"), ToldSubject("", "prod2", key="pending_steps")
    assert of(hdfs).kept(kept) == {}
    of(hdfs).keep(kept, {"orders": [1]})
    assert (of(hdfs).kept(kept), of(hdfs).kept(other), told(hdfs, kept)) == ({"orders": [1]}, {}, Ledger())
    hdfs.files[f"{OWN}/{other.file_name}"] = hdfs.files[f"{OWN}/{kept.file_name}"]
    hdfs.files[f"{OWN}/{kept.file_name}"] = ("{", *hdfs.files[f"{OWN}/{kept.file_name}"][1:])
    assert of(hdfs).kept(other) == of(hdfs).kept(kept) == {}


@pytest.mark.parametrize(
    "other",
    [
        ToldSubject("staging", "prod", "orders"),
        ToldSubject("", "prod2", "orders"),
        ToldSubject("", "prod", "orders2"),
        ToldSubject("", "prod", "", "orders"),
    ],
)
def test_another_subject_has_another_file_and_a_copy_of_its_note_counts_for_nothing(
    hdfs: SimHdfs, other: ToldSubject
) -> None:
    assert other.file_name != ORDERS.file_name
    of(hdfs).note(other, ledger())
    assert told(hdfs) == Ledger()
    hdfs.files[f"{OWN}/{ORDERS.file_name}"] = hdfs.files[f"{OWN}/{other.file_name}"]
    hdfs.owners[f"{OWN}/{ORDERS.file_name}"] = "streamer"
    assert told(hdfs) == Ledger()


def test_nobody_elses_note_counts_not_even_a_supervisors(hdfs: SimHdfs) -> None:
    """After a change of principal what lasts is told once more."""
    with hdfs.as_user("hdfs"):
        of(hdfs).note(ORDERS, ledger(2))
        assert told(hdfs) == ledger(2)
    assert told(hdfs) == Ledger()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        "[" * 100_000,
        '{"version": 1}',
        written_told(ORDERS, Ledger(), "x").replace('"told": {', '"told": ["'),
        "\udcff",
        "x" * (17 << 20),
    ],
)
def test_a_note_that_can_not_be_understood_counts_for_nothing(hdfs: SimHdfs, text: str) -> None:
    hdfs.make_folder(OWN, "755")
    hdfs.files[f"{OWN}/{ORDERS.file_name}"] = text, NOW
    hdfs.owners[f"{OWN}/{ORDERS.file_name}"] = "streamer"
    assert told(hdfs) == Ledger()


def test_a_folder_in_a_notes_place_is_none(hdfs: SimHdfs) -> None:
    hdfs.make_folder(f"{OWN}/{ORDERS.file_name}", "755")
    assert told(hdfs) == Ledger()


def test_a_note_that_can_not_be_read_hides_no_other(hdfs: SimHdfs) -> None:
    """A DataNode is away that has the only replica."""
    clicks = ToldSubject("", "prod", "clicks")
    for subject in (ORDERS, clicks):
        of(hdfs).note(subject, ledger())

    def refuse(request: str, path: str) -> None:
        if request == "read" and path.endswith(ORDERS.file_name):
            raise Unavailable("BlockMissingException", tried=f"read {path}")

    hdfs.at_request = refuse
    assert of(hdfs).read([ORDERS, clicks]) == {clicks: ledger()}
    with pytest.raises(Unavailable):
        told(hdfs)


def test_what_was_told_alone_is_noted_with_what_was_told_before(hdfs: SimHdfs) -> None:
    of(hdfs).note(ORDERS, ledger())
    of(hdfs).note(ORDERS, replace(ledger(kind=EventKind.QUEUED), alone=True))
    assert told(hdfs).kinds == {EventKind.STALLED, EventKind.QUEUED}


def test_where_there_is_no_state_dir_yet_nothing_is_noted(hdfs: SimHdfs) -> None:
    hdfs.modes = {"/": "755"}
    with pytest.raises(NotFound):
        of(hdfs).note(ORDERS, ledger())
    assert not hdfs.files
    assert CLUSTER.state_dir not in hdfs.modes


def test_a_note_of_thousands_of_findings_is_read_again(hdfs: SimHdfs) -> None:
    many = [LastingEvent(EventKind.FINDING, NOW, "ä" * 200, f"finding-{number}") for number in range(5000)]
    whole = Ledger({each.key: each for each in many}, 5000)
    of(hdfs).note(ORDERS, whole)
    assert len(told(hdfs).lasting) == 5000


def test_more_notes_than_a_listing_shows_hide_none(hdfs: SimHdfs) -> None:
    for name in ("orders", *(f"clicks-{number}" for number in range(20))):
        of(hdfs).note(ToldSubject("", "prod", name), ledger())
    hdfs.most_rows = 10
    assert told(hdfs) == ledger()


def test_one_look_serves_all_subjects_and_only_notes_that_exist_are_read(hdfs: SimHdfs) -> None:
    subjects = [ToldSubject("", "prod", f"stream-{number}") for number in range(1000)]
    for subject in subjects[:3]:
        of(hdfs).note(subject, ledger())
    requests: list[tuple[str, str]] = []
    hdfs.at_request = lambda request, path: requests.append((request, path))
    assert sum(each.changes for each in of(hdfs).read(subjects).values()) == 3
    count = Counter(request for request, _ in requests)
    # Whose the folder is, and what is in it. Each read looks what it reads, here.
    assert count == {"status": 1 + 3, "list": 1, "read": 3}


def test_a_note_that_is_refused_leaves_no_draft_behind(hdfs: SimHdfs) -> None:
    def refuse(request: str, path: str) -> None:
        if request == "rename":
            raise Unavailable("safe mode", tried=f"rename {path}")

    hdfs.at_request = refuse
    with pytest.raises(Unavailable):
        of(hdfs).note(ORDERS, ledger())
    assert not hdfs.files


def test_names_are_readable_and_short_enough_for_hdfs() -> None:
    key = ToldSubject("", "prod", "", f"stuck /data/{'ä' * 300}")
    assert ORDERS.file_name.startswith("orders-")
    assert key.file_name.startswith("cluster.stuck%20%2Fdata%2F")
    assert len(key.file_name.encode()) < 200
    assert is_told_of("orders", ORDERS.file_name)
    assert not is_told_of("orders", ToldSubject("", "prod", "orders-eu").file_name)
    assert not is_told_of("cluster", key.file_name)


def test_a_note_says_who_wrote_it_for_people_and_is_read_again() -> None:
    text = written_told(ORDERS, ledger(), "airflow@edge1")
    assert '"by": "airflow@edge1"' in text
    assert read_told(text, ORDERS) == ledger()
