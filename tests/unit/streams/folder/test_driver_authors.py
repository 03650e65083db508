"""Whose claims, stop markers and pushes a driver believes, and what it asks HDFS to know it."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import pytest

from airflow_kstream.jobs.kstream_driver import Generation, StateFolder, Superseded
from airflow_kstream.jobs.kstream_tokens import Fresh, Receiver
from airflow_kstream.model.streams.contract import (
    claim_file,
    failed_marker,
    push_file,
    started_marker,
    stop_marker,
    stopped_marker,
)
from airflow_kstream.model.streams.token_push import TokenPush
from airflow_kstream.policy.streams.spark.spark_stream import contract_conf
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft, written_claim, written_stop
from tests.simulated.hadoop_files import Entry, HadoopFiles, JavaError, Path, spark_session
from tests.simulated.yarn import TICKET_SPEC, WEEK

STATE, FOLDER = "/kstream", "/kstream/orders-0badcafe"
OWN, SUPERVISOR, SUPERUSER, FORMER, MALLORY = "streamer", "airflow", "hdfs", "former", "mallory"
OPEN, STICKY, CLOSED = 0o777, 0o1777, 0o755
PUSH = TokenPush(3, 1_767_225_600_001)


def files(mode: int = CLOSED, owner: str = OWN) -> HadoopFiles:
    """The folder of a stream whose generation 3 was claimed, with a driver of `OWN`."""
    hdfs = HadoopFiles(acts=OWN)
    hdfs.make(STATE, SUPERVISOR, 0o1775)
    hdfs.make(FOLDER, owner, mode)
    hdfs.write(f"{FOLDER}/{claim_file(3)}", says(claim_file(3)))
    return hdfs


def session(hdfs: HadoopFiles) -> Any:
    return spark_session(hdfs, contract_conf("orders-0badcafe", 3, FOLDER))


def started(hdfs: HadoopFiles) -> Generation:
    generation = Generation.of(session(hdfs))
    hdfs.asked.clear()
    return generation


def told(hdfs: HadoopFiles, author: str, *names: str) -> None:
    with hdfs.acting(author):
        for name in names:
            hdfs.write(f"{FOLDER}/{name}", says(name))


def says(name: str) -> bytes:
    """What a claim or a stop marker of this name says: its generation."""
    word = re.fullmatch(r"(?:gen|stop)-(\d+)", name)
    return json.dumps({"generation": int(word[1])} if word else {}).encode()


def moved(hdfs: HadoopFiles, name: str, content: bytes) -> None:
    """Move a file of the driver's user to this name, as anybody may who can write in both folders."""
    place = "/scratch"
    hdfs.make(place, OWN, OPEN)
    hdfs.write(f"{place}/notes", content)
    with hdfs.acting(MALLORY):
        hdfs.rename(Path(f"{place}/notes"), Path(f"{FOLDER}/{name}"))


def look(generation: Generation) -> set[str]:
    return generation._read_names()


class Query:
    """A query that would run for ever."""

    id, name, lastProgress = "q", "q", None
    isActive = True

    def __init__(self, looks: int = 1) -> None:
        self.status = {"isTriggerActive": False}
        self._looks = looks

    def stop(self) -> None:
        self.isActive = False

    def awaitTermination(self, seconds: float) -> None:
        self._looks -= 1
        if not self._looks:
            self.isActive = False


@pytest.mark.parametrize("author", [OWN, FORMER, SUPERVISOR, MALLORY])
def test_a_healthy_driver_costs_one_listing_a_look(author: str) -> None:
    """What does not ask this driver to end, regardless of its author."""
    hdfs = files()
    generation = started(hdfs)
    told(hdfs, author, "launched-000003", "reached-000003", claim_file(2), claim_file(3), stop_marker(2))
    generation.await_termination(Query(looks=3))
    assert hdfs.asked == ["listing"] * 3


def test_its_own_users_word_costs_one_look_at_that_file_more() -> None:
    hdfs = files(OPEN)
    generation = started(hdfs)
    told(hdfs, OWN, stop_marker(3))
    assert look(generation) == {stop_marker(3)}
    marker = f"{FOLDER}/{stop_marker(3)}"
    assert hdfs.asked == ["listing", f"status of {marker}", f"content of {marker}"]


def test_what_a_supervisor_writes_ends_a_driver() -> None:
    hdfs = files()
    generation = started(hdfs)
    claim = written_claim(ClaimDraft(4, "nonce", TICKET_SPEC, WEEK, {}, "its horizon"), "airflow@edge1")
    words = {stop_marker(3): written_stop(3, "its horizon", "airflow@edge1"), claim_file(4): claim}
    with hdfs.acting(SUPERVISOR):
        for name, text in words.items():
            hdfs.write(f"{FOLDER}/{name}", text.encode())
    assert look(generation) == {*words}


@pytest.mark.parametrize("content", [b"", b"{}", b"[999999]", b'{"generation": 4}', b'{"generation": "999999"}'])
def test_a_file_of_its_user_moved_to_a_newer_claims_name_ends_no_driver(content: bytes) -> None:
    """A file that a stranger moves keeps its owner, and gets any name in a folder where that stranger can write."""
    hdfs = files(OPEN)
    moved(hdfs, claim_file(999_999), content)
    assert hdfs.owners(FOLDER)[claim_file(999_999)] == OWN
    generation = Generation.of(session(hdfs))
    assert look(generation) == set()
    told(hdfs, SUPERVISOR, stop_marker(3))
    generation.await_termination(Query())
    assert stopped_marker(3) in hdfs.names(FOLDER), "it still obeys"


@pytest.mark.parametrize("content", [b"", b"{}", b'{"generation": 4}', b'{"generation": 999999}'])
def test_a_file_of_its_user_moved_to_its_stop_markers_name_ends_no_driver(content: bytes) -> None:
    hdfs = files(OPEN)
    generation = started(hdfs)
    moved(hdfs, stop_marker(3), content)
    assert look(generation) == set()
    told(hdfs, SUPERVISOR, claim_file(4))
    with pytest.raises(Superseded):
        generation.await_termination(Query())


@pytest.mark.parametrize("entry", [Entry(OWN, 0o755, is_file=False), Entry(SUPERVISOR, 0o600), Entry(OWN, 0)])
def test_a_folder_or_what_it_may_not_read_keeps_no_driver_from_starting_or_obeying(entry: Entry) -> None:
    """A supervisor's words are files, and for all to read."""
    hdfs = files(OPEN)
    hdfs.entries[f"{FOLDER}/{claim_file(4)}"] = entry
    generation = started(hdfs)
    told(hdfs, SUPERVISOR, stop_marker(3))
    generation.await_termination(Query())
    assert stopped_marker(3) in hdfs.names(FOLDER)


@pytest.mark.parametrize("content", [b"no JSON", b"\xff\xfe", b"[" * 100_000, b" " * (2 << 20)])
def test_a_claim_that_can_not_be_read_as_json_ends_no_driver_and_is_logged_once(
    content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    hdfs = files(OPEN)
    moved(hdfs, claim_file(4), content)
    with caplog.at_level(logging.WARNING, "kstream_driver"):
        generation = Generation.of(session(hdfs))
        generation.await_termination(Query(looks=3))
    assert caplog.messages == [f"{FOLDER}/gen-000004 ends nothing: it does not say its generation"]


@pytest.mark.parametrize("mode", [OPEN, STICKY, CLOSED])
@pytest.mark.parametrize("name", [claim_file(999_999), stop_marker(3)])
def test_a_strangers_word_ends_no_driver(mode: int, name: str, caplog: pytest.LogCaptureFixture) -> None:
    hdfs = files(mode)
    told(hdfs, MALLORY, name)
    with caplog.at_level(logging.WARNING, "kstream_driver"):
        generation = Generation.of(session(hdfs))
        generation.await_termination(Query(looks=3))
    assert f"{name} counts for nothing: mallory may not speak" in caplog.text
    assert len(caplog.messages) == 1
    assert hdfs.names(FOLDER) == {claim_file(3), name, started_marker(3)}


def test_a_folder_closed_by_hand_over_a_strangers_words_ends_no_driver() -> None:
    """Neither the one that runs there nor one that starts later."""
    hdfs = files(OPEN)
    generation = started(hdfs)
    told(hdfs, MALLORY, claim_file(999_999), stop_marker(3))
    hdfs.entries[FOLDER].mode = CLOSED
    for driver in (generation, Generation.of(session(hdfs))):
        assert look(driver) == set()


@pytest.mark.parametrize("author", [OWN, FORMER, SUPERVISOR, SUPERUSER])
def test_those_who_may_speak_end_a_driver_before_it_starts(author: str) -> None:
    """Its own user, the folder's owner, the owner of state_dir, and that of the root."""
    hdfs = files(OPEN, owner=FORMER)
    told(hdfs, author, claim_file(4))
    told(hdfs, MALLORY, claim_file(999_999))
    with pytest.raises(Superseded, match="generation 4 was claimed"):
        Generation.of(session(hdfs))
    assert hdfs.names(FOLDER) == {claim_file(3), claim_file(4), claim_file(999_999)}, "it leaves nothing there"


@pytest.mark.parametrize("author", [OWN, FORMER, SUPERVISOR])
def test_those_who_may_speak_stop_a_driver(author: str) -> None:
    hdfs = files(OPEN, owner=FORMER)
    generation = started(hdfs)
    told(hdfs, MALLORY, claim_file(999_999))
    told(hdfs, author, stop_marker(3))
    generation.await_termination(Query())
    assert hdfs.owners(FOLDER)[stopped_marker(3)] == OWN


def test_the_superusers_stop_marker_stops_a_driver() -> None:
    """In a closed folder, where nobody else but its owner can write one."""
    hdfs = files()
    generation = started(hdfs)
    told(hdfs, SUPERUSER, stop_marker(3))
    generation.await_termination(Query())
    assert stopped_marker(3) in hdfs.names(FOLDER)


def test_a_former_users_words_end_no_driver_of_its_folders_new_owner() -> None:
    """To know that costs three more requests a look."""
    hdfs = files()
    generation = started(hdfs)
    told(hdfs, FORMER, claim_file(4), stop_marker(3))
    assert look(generation) == set()
    assert hdfs.asked == ["listing", f"status of {FOLDER}", f"status of {STATE}", "status of /"]


def test_a_driver_whose_folder_was_handed_over_obeys_the_folders_owner() -> None:
    """It still runs as the former user, who can write there no longer."""
    hdfs = files()
    generation = started(hdfs)
    hdfs.entries[FOLDER].owner = "successor"
    told(hdfs, "successor", stop_marker(3))
    query = Query()
    generation.await_termination(query)
    assert not query.isActive
    assert stopped_marker(3) not in hdfs.names(FOLDER)


def test_while_hdfs_does_not_tell_who_may_speak_a_driver_goes_on_and_obeys_later() -> None:
    hdfs = files(owner=FORMER, mode=OPEN)
    generation = started(hdfs)
    told(hdfs, FORMER, stop_marker(3))
    hdfs.errors = [JavaError("StandbyException"), JavaError("ConnectException")]
    assert [look(generation), look(generation)] == [set(), set()]
    assert look(generation) == {stop_marker(3)}


def test_a_driver_that_can_not_know_whether_it_is_superseded_does_not_start() -> None:
    hdfs = files()
    told(hdfs, FORMER, claim_file(4))
    hdfs.errors = [JavaError("StandbyException")]
    with pytest.raises(JavaError):
        Generation.of(session(hdfs))
    assert started_marker(3) not in hdfs.names(FOLDER)


def test_names_that_a_stranger_occupies_keep_no_driver_from_running(caplog: pytest.LogCaptureFixture) -> None:
    hdfs = files(STICKY, owner=SUPERVISOR)
    occupied = {started_marker(3), stopped_marker(3), failed_marker(3)}
    told(hdfs, MALLORY, *occupied)
    with caplog.at_level(logging.WARNING, "kstream_driver"):
        generation = Generation.of(session(hdfs))
        generation._tell(failed_marker(3), error="broken")
        told(hdfs, OWN, stop_marker(3))
        generation.await_termination(Query())
    assert {name for name, owner in hdfs.owners(FOLDER).items() if owner == MALLORY} == occupied
    assert hdfs.names(FOLDER) == occupied | {claim_file(3), stop_marker(3)}, "and no draft is left"
    assert [name for name in occupied if f"{name} is not written: mallory occupies" not in caplog.text] == []


def test_where_it_may_a_driver_replaces_a_strangers_file() -> None:
    hdfs = files(OPEN)
    told(hdfs, MALLORY, started_marker(3))
    Generation.of(session(hdfs))
    assert hdfs.owners(FOLDER)[started_marker(3)] == OWN


def test_a_folder_that_it_can_not_write_fails_a_driver_at_its_start() -> None:
    with pytest.raises(JavaError, match="Permission denied"):
        Generation.of(session(files(owner=FORMER)))


def test_what_a_driver_writes_is_for_all_to_read_and_for_nobody_else_to_change() -> None:
    hdfs = files()
    Generation.of(session(hdfs))
    assert hdfs.entries[f"{FOLDER}/{started_marker(3)}"].mode == 0o644


class Tokens:
    def __init__(self) -> None:
        self.used: list[bytes] = []

    def tried(self, content: bytes) -> Fresh:
        return Fresh([], content, known=False)

    def use(self, fresh: Fresh) -> None:
        self.used.append(fresh.content)

    def executors(self) -> list[str]:
        return []


def receiver(hdfs: HadoopFiles) -> tuple[Receiver, Tokens]:
    context, tokens = session(hdfs).sparkContext, Tokens()
    context._jvm.org.apache.hadoop.security = None
    receiving = Receiver(context, StateFolder(context, FOLDER), 3)
    receiving._tokens = tokens  # type: ignore[assignment]
    return receiving, tokens


def pushed(hdfs: HadoopFiles, author: str, push: str, content: bytes) -> None:
    """A push that announces a file, whose name ends with `push`."""
    told(hdfs, author, f"push-000003-{push}-99")
    with hdfs.acting(author):
        hdfs.write(f"{FOLDER}/tokens/000003-{push}", content)


@pytest.fixture
def channel() -> HadoopFiles:
    """A folder in which everybody can write, with a folder of tokens."""
    hdfs = files(STICKY)
    hdfs.make(f"{FOLDER}/tokens", OWN, 0o700)
    return hdfs


def test_a_strangers_push_is_neither_used_nor_answered(channel: HadoopFiles) -> None:
    receiving, tokens = receiver(channel)
    pushed(channel, MALLORY, "9", b"forged")
    pushed(channel, OWN, "2", b"good")
    receiving.look()
    assert tokens.used == [b"good"]
    assert {name for name in channel.names(FOLDER) if name.endswith("000003-9")} == set()


def test_a_strangers_file_behind_an_honest_announcement_is_refused(channel: HadoopFiles) -> None:
    receiving, tokens = receiver(channel)
    pushed(channel, OWN, "2", b"good")
    channel.entries[f"{FOLDER}/tokens/000003-2"].owner = MALLORY
    receiving.look()
    assert tokens.used == []
    assert b"is of mallory, who may not speak" in channel.entries[f"{FOLDER}/refused-000003-2"].content


def test_a_strangers_answer_keeps_no_push_from_being_used_once(channel: HadoopFiles) -> None:
    receiving, tokens = receiver(channel)
    told(channel, MALLORY, "applied-000003-2")
    pushed(channel, OWN, "2", b"good")
    channel.entries[FOLDER].owner = SUPERVISOR
    receiving.look()
    receiving.look()
    assert tokens.used == [b"good"]
    assert channel.names(f"{FOLDER}/tokens") == set()
    assert "refused-000003-2" not in channel.names(FOLDER)


def test_a_receiver_whose_pushes_are_its_own_users_asks_for_one_listing_a_look(channel: HadoopFiles) -> None:
    receiving, _ = receiver(channel)
    told(channel, OWN, push_file(PUSH))
    receiving.look()
    channel.asked.clear()
    receiving.look()
    assert channel.asked == ["listing"]
