"""Answers that no NameNode gives, from a server on loopback: a proxy's clock, times beyond all years."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import CredentialError, InvalidInput, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from tests.simulated.served import Quiet, served
from tests.simulated.strange_servers import Answer, said, serving

STATUS = b'{"FileStatus": {"modificationTime": 1, "length": 0, "type": "DIRECTORY"}}'
ADA = Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab")


@contextmanager
def answering(body: bytes = STATUS, date: str = "Thu, 01 Jan 2026 00:00:00 GMT") -> Iterator[Hdfs]:
    """A client of a NameNode that answers everything with this."""

    class Answers(Quiet):
        def do_GET(self) -> None:
            self.send_response_only(200)
            for _ in range(2):
                # As Hadoop: once by its own filter, once by Jetty.
                self.send_header("Date", date)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with served(Answers) as address, closing(Hdfs((f"http://{address}",), ADA, Tls())) as client:
        yield client


NOT_A_FILE = {"RemoteException": {"exception": "FileNotFoundException", "message": "Path is not a file: /x"}}
FOLDER = {"FileStatus": {"modificationTime": 1, "length": 0, "type": "DIRECTORY"}}
GONE = {"RemoteException": {"exception": "FileNotFoundException", "message": "File does not exist: /x"}}


@pytest.mark.parametrize(
    ("opened", "status", "why"),
    [
        (Answer(200, b"\xff\xfe\x00", "application/octet-stream"), said(FOLDER), "it is not text"),
        (said(NOT_A_FILE, 404), said(FOLDER), "it is a folder"),
    ],
)
def test_what_is_no_text_is_no_fault_of_the_server(opened: Answer, status: Answer, why: str) -> None:
    """No retry changes a file, and a stream whose file it is waits for a person."""
    with serving({"op=OPEN": opened, "op=GETFILESTATUS": status}) as server:
        client = Hdfs((server.address,), ADA, Tls())
        with pytest.raises(InvalidInput) as refused:
            client.read("/x")
        client.close()
    assert (refused.value.message, refused.value.retryable) == (why, False)
    assert str(refused.value) == f"read /x on {server.address} as ada@EXAMPLE.TEST: {why}. Retrying will not help."


def test_a_file_that_is_gone_is_not_found() -> None:
    with serving({"op=": said(GONE, 404)}) as server:
        client = Hdfs((server.address,), ADA, Tls())
        with pytest.raises(NotFound, match="File does not exist"):
            client.read("/x")
        client.close()


def test_the_namenodes_clock_is_read_on_a_host_of_any_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        with answering() as hdfs:
            assert abs(hdfs.now() - datetime(2026, 1, 1, tzinfo=UTC)) < timedelta(minutes=1)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("date", ["Yesterday", "Thu, 99 Jan 2026 00:00:00 GMT", "Thu, 01 Jan 99999 00:00:00 GMT", "0"])
def test_a_date_that_is_none_is_no_clock(date: str) -> None:
    with answering(date=date) as hdfs, pytest.raises(Unavailable, match="none of its answers tells the time"):
        hdfs.now()


@pytest.mark.parametrize("body", [STATUS.replace(b": 1,", b': "x",'), b'{"a": [' * 100_000, b"{"])
def test_an_answer_that_makes_no_sense_proves_nothing(body: bytes) -> None:
    with answering(body) as hdfs, pytest.raises(Unavailable):
        hdfs.status("/")


@pytest.mark.timeout(30)
def test_a_namenode_that_is_named_twice_and_away_is_an_error_and_no_loop() -> None:
    hdfs = Hdfs(("http://127.0.0.1:1", "http://127.0.0.1:1"), ADA, Tls())
    with pytest.raises(Unavailable, match="refused"):
        hdfs.status("/")
    hdfs.close()


def test_a_pipe_in_place_of_a_keytab_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keytab")
    with pytest.raises(CredentialError, match=r"keytab as ada@EXAMPLE\.TEST: it is not a regular file"):
        Hdfs(("http://127.0.0.1:1",), Identity("ada@EXAMPLE.TEST", keytab=str(tmp_path / "keytab")), Tls())
