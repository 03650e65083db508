"""Folders with more entries than one answer of a NameNode has, and with more than anybody should put there.

The server is on loopback, so that its requests can be counted; a real NameNode's pages are those of
tests/contract/hdfs/test_long_listings.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from airflow_kstream.clients.hdfs.answers import MOST_ROWS
from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from tests.simulated.strange_servers import Answer, StrangeServer, page, said, serving

ADA = Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab")
FIRST = "/c?op=LISTSTATUS_BATCH"


def files(names: Sequence[str], owner: str = "ada") -> list[dict[str, Any]]:
    return [{"pathSuffix": name, "modificationTime": 1, "length": 2, "type": "FILE", "owner": owner} for name in names]


def refused(exception: str, message: str, status: int = 400) -> Answer:
    return said({"RemoteException": {"exception": exception, "message": message}}, status)


@pytest.fixture
def namenode() -> Iterator[StrangeServer]:
    with serving({}) as server:
        yield server


@pytest.fixture
def hdfs(namenode: StrangeServer) -> Iterator[Hdfs]:
    client = Hdfs((namenode.address,), ADA, Tls())
    yield client
    client.close()


def test_a_usual_folder_is_one_request_even_with_a_single_entry(namenode: StrangeServer, hdfs: Hdfs) -> None:
    namenode.script = {FIRST: page(files(["a"]))}
    assert [entry.name for entry in hdfs.list("/c")] == ["a"]
    assert len(namenode.requests) == 1


def test_an_empty_folder_has_nothing_in_it(namenode: StrangeServer, hdfs: Hdfs) -> None:
    namenode.script = {FIRST: page([])}
    assert hdfs.list("/c") == ()


def test_a_file_is_no_folder(namenode: StrangeServer, hdfs: Hdfs) -> None:
    namenode.script = {FIRST: page(files([""]))}
    with pytest.raises(Exception, match="'/c' is not a directory"):
        hdfs.list("/c")


def test_a_long_folder_is_fetched_page_by_page(namenode: StrangeServer, hdfs: Hdfs) -> None:
    namenode.script = {FIRST: page(files(["a", "b"]), 1), "startAfter=b": page(files(["c"]))}
    assert [entry.name for entry in hdfs.list("/c")] == ["a", "b", "c"]
    assert len(namenode.requests) == 2


def test_only_the_pages_with_the_names_that_are_wanted_are_fetched(namenode: StrangeServer, hdfs: Hdfs) -> None:
    namenode.script = {"startAfter=orders-": page(files(["orders.ada", "orders.bob", "prices"]), 500_000)}
    assert [entry.name for entry in hdfs.listing("/c", "orders.").entries] == ["orders.ada", "orders.bob"]
    assert len(namenode.requests) == 1


def test_names_that_begin_alike_may_fill_pages_and_none_beyond_is_fetched(namenode: StrangeServer, hdfs: Hdfs) -> None:
    namenode.script = {
        "startAfter=%5E": page(files(["^a", "_1"]), 5),
        "startAfter=_1": page(files(["_2", "_3"]), 3),
        "startAfter=_3": page(files(["_4", "part-0"]), 1),
    }
    found = hdfs.matching("/c", lambda entry: True, prefix="_")
    assert [entry.name for entry in found] == ["_1", "_2", "_3", "_4"]
    assert len(namenode.requests) == len(namenode.script)


@pytest.mark.parametrize("prefix", ["", "_"])
def test_a_server_that_sends_the_same_page_for_ever_is_left(namenode: StrangeServer, hdfs: Hdfs, prefix: str) -> None:
    namenode.script = {"op=LISTSTATUS_BATCH": page(files(["_1", "_2"]), 7)}
    assert {entry.name for entry in hdfs.listing("/c", prefix).entries} == {"_1", "_2"}
    assert len(namenode.requests) == 2


@pytest.mark.parametrize("exception", ["IllegalArgumentException", "QueryParamException"])
def test_a_server_of_hadoop_2_sends_all_at_once_and_refuses_pages_once(
    namenode: StrangeServer, hdfs: Hdfs, exception: str
) -> None:
    unknown = refused(exception, 'Invalid value for webhdfs parameter "op": No enum constant Op.LISTSTATUS_BATCH')
    listed = said({"FileStatuses": {"FileStatus": files(["orders.ada", "prices"])}})
    namenode.script = {"op=LISTSTATUS_BATCH": unknown, "/c?op=LISTSTATUS": listed, "?op=LISTSTATUS_BATCH": unknown}
    assert {entry.name for entry in hdfs.list("/c")} == {"orders.ada", "prices"}
    assert [entry.name for entry in hdfs.listing("/c", "orders.").entries] == ["orders.ada"]
    assert len(namenode.requests) == 3


def flood(folder: str, owner: str) -> dict[str, Answer]:
    """Script a folder with a file of ada's and twice as many of another owner's as are looked at."""
    names = [f"b{number:06d}" for number in range(2 * MOST_ROWS)]
    half = MOST_ROWS
    return {
        f"{folder}?op=LISTSTATUS_BATCH": page(files(names[:half], owner), half + 1),
        f"startAfter={names[half - 1]}": page([*files(names[half:], owner), *files(["zzz"])]),
    }


def test_a_flood_of_a_strangers_files_hides_no_other_and_is_logged_once(
    namenode: StrangeServer, hdfs: Hdfs, caplog: pytest.LogCaptureFixture
) -> None:
    namenode.script = {**flood("/c", "mallory")}
    with caplog.at_level(logging.WARNING, "airflow_kstream"):
        first, again = hdfs.listing("/c"), hdfs.listing("/c")
    assert first == again
    assert (first.entries[-1].name, len(first.entries)) == ("zzz", MOST_ROWS)
    assert first.cut == {"mallory": MOST_ROWS + 1}
    said_once = "/c: it has more than 20000 entries, of which these are not looked at: 20001 of mallory"
    assert [record.getMessage() for record in caplog.records] == [said_once]


def test_a_caller_that_needs_all_entries_is_refused(namenode: StrangeServer, hdfs: Hdfs) -> None:
    namenode.script = {**flood("/c", "mallory")}
    with pytest.raises(InvalidInput, match="20001 of mallory"):
        hdfs.list("/c")


def test_of_a_flood_what_is_wanted_is_found_and_no_page_before_it_is_fetched(
    namenode: StrangeServer, hdfs: Hdfs
) -> None:
    namenode.script = {**flood("/c", "ada")}
    assert [entry.name for entry in hdfs.matching("/c", lambda entry: entry.name == "zzz")] == ["zzz"]
    namenode.requests.clear()
    namenode.script = {"startAfter=b02": page(files(["b029999", "zzz"]))}
    assert [entry.name for entry in hdfs.matching("/c", lambda entry: True, after="b02")] == ["b029999", "zzz"]
    assert len(namenode.requests) == 1


def test_a_flood_in_a_checkpoint_hides_neither_its_batches_nor_its_query(namenode: StrangeServer, hdfs: Hdfs) -> None:
    """A job may keep its data there, and names that are not numbers may stand among its batches."""
    inside = [each | {"type": "DIRECTORY"} for each in files(["commits", "offsets"])]
    names = [f"b{number:06d}" for number in range(MOST_ROWS)]
    namenode.script = {
        FIRST: page([*files(names), *inside], 2),
        "startAfter=offsets": page(files(["metadata", *(f"z{name}" for name in names)])),
        "/c/offsets?op=LISTSTATUS_BATCH": page(files(["7", "8", "²"])),
        "/c/commits?op=LISTSTATUS_BATCH": page(files(["7", "\u0667"])),
        "/c/metadata?": Answer(200, b'{"id": "7f"}', "application/octet-stream"),
    }
    checkpoint = hdfs.checkpoint("/c")
    assert (checkpoint.query, checkpoint.position.offset, checkpoint.position.commit) == ("7f", 8, 7)


def test_a_query_may_keep_as_many_batches_as_it_likes(namenode: StrangeServer, hdfs: Hdfs) -> None:
    names = sorted(str(number) for number in range(2 * MOST_ROWS))
    inside = [each | {"type": "DIRECTORY"} for each in files(["commits", "offsets"])]
    batches = page(files(names))
    logs = {f"/c/{log}?op=LISTSTATUS_BATCH": batches for log in ("offsets", "commits")}
    namenode.script = {FIRST: page(inside), **logs}
    assert hdfs.checkpoint("/c").position.commit == 2 * MOST_ROWS - 1
