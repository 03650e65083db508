"""A driver that was away while tokens were pushed to it, and the supervisor that pushed others meanwhile.

The driver's JVM is simulated: what is tested is which pushes it answers, and how.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_kstream.jobs.kstream_tokens import Receiver, Refused
from airflow_kstream.model.contract import push_file, pushes, refused_marker, tokens_file, unpushed_marker
from airflow_kstream.model.token_push import TokenPush, in_milliseconds
from airflow_kstream.supervise.streams.token_pushes import take_back
from tests.simulated.life import Life

TEST, FIRST, SECOND = "push-000001-1-0", "push-000001-2-99", "push-000001-3-99"
HOUR = timedelta(hours=1)


class JavaError(Exception):
    """An error of the JVM as Py4J raises it."""

    def __init__(self, java_class: str, message: str) -> None:
        named = SimpleNamespace(getName=lambda: java_class)
        self.java_exception = SimpleNamespace(getClass=lambda: named)
        call = "An error occurred while calling o185.getFileStatus."
        super().__init__(
            f"{call}\n: {java_class}: {message}\n\tat org.apache.hadoop.hdfs.DFSClient.x(DFSClient.java:1)"
        )


MISSING = JavaError("java.io.FileNotFoundException", "File does not exist: /kstream/orders/tokens/000001-2")
FOLDER = JavaError("java.io.FileNotFoundException", "Path is not a file: /kstream/orders/tokens/000001-2")
STANDBY = JavaError("org.apache.hadoop.ipc.StandbyException", "not in state active")


@dataclass
class Folder:
    """The stream's folder: a file's content, or what is raised by a read of it."""

    files: dict[str, Any]
    deleted: list[str] = field(default_factory=list)

    def names(self, matters: Callable[[str], bool] = bool) -> set[str]:
        return {*filter(matters, self.files)}

    def put(self, name: str, content: Mapping[str, Any]) -> None:
        self.files[name] = content

    def read(self, name: str, longest: int) -> bytes:
        content = self.files.get(name, MISSING)
        if isinstance(content, Exception):
            raise content
        return bytes(content)

    def delete(self, name: str) -> None:
        self.deleted.append(name)
        self.files.pop(name, None)


class Tokens:
    """What Spark does with tokens."""

    def __init__(self) -> None:
        self.used: list[bytes] = []

    def use(self, content: bytes) -> tuple[list[dict[str, Any]], bytes]:
        if content == b"garbage":
            raise Refused("it is no credentials file")
        self.used.append(content)
        return [], content

    def executors(self) -> list[str]:
        return ["1"]


def driver(files: Mapping[str, Any]) -> tuple[Receiver, Folder, Tokens]:
    folder, tokens = Folder(dict(files)), Tokens()
    receiver = Receiver(
        SimpleNamespace(applicationId="application_1_0001", _jvm=SimpleNamespace(org=_Org())), folder, 1
    )
    receiver._tokens = tokens  # type: ignore[assignment]
    return receiver, folder, tokens


class _Org:
    apache = SimpleNamespace(hadoop=SimpleNamespace(security=None))


def why(folder: Folder, number: int) -> str:
    return str(folder.files[f"refused-000001-{number}"]["why"])


@pytest.mark.parametrize("gone", [MISSING, FOLDER])
def test_a_push_that_was_taken_back_is_refused_and_later_ones_are_taken(gone: Exception) -> None:
    receiver, folder, tokens = driver({TEST: {}, FIRST: {}, "tokens/000001-2": gone})
    receiver.look()
    assert "it was taken back: tokens/000001-2 is missing, or no file" in why(folder, 2)
    folder.files |= {SECOND: {}, "tokens/000001-3": b"new"}
    receiver.look()
    assert tokens.used == [b"new"]
    assert {"applied-000001-1", "applied-000001-3"} < folder.names()


def test_of_several_pushes_that_a_driver_missed_it_uses_the_newest_alone() -> None:
    receiver, folder, tokens = driver(
        {FIRST: {}, "tokens/000001-2": b"old", SECOND: {}, "tokens/000001-3": b"new", TEST: {}}
    )
    receiver.look()
    assert tokens.used == [b"new"]
    assert why(folder, 2) == "newer tokens were pushed after these"
    assert folder.deleted == ["tokens/000001-3", "tokens/000001-2"]
    assert "applied-000001-1" in folder.files


def test_a_push_that_cannot_be_read_now_keeps_no_other_waiting() -> None:
    receiver, folder, tokens = driver({TEST: {}, FIRST: {}, "tokens/000001-2": STANDBY, "push-000001-4-0": {}})
    with pytest.raises(JavaError):
        receiver.look()
    assert folder.names() >= {TEST, FIRST, "applied-000001-1", "applied-000001-4"}
    assert not folder.names() & {"refused-000001-2", "applied-000001-2"}
    folder.files["tokens/000001-2"] = b"now"
    receiver.look()
    assert tokens.used == [b"now"]


def test_garbage_is_refused_in_its_own_words_and_older_tokens_are_used() -> None:
    receiver, folder, tokens = driver({FIRST: {}, "tokens/000001-2": b"old", SECOND: {}, "tokens/000001-3": b"garbage"})
    receiver.look()
    assert why(folder, 3) == "it is no credentials file"
    assert tokens.used == [b"old"]


def test_a_driver_logs_why_it_cannot_take_tokens(caplog: pytest.LogCaptureFixture) -> None:
    receiver, _, _ = driver({})
    with caplog.at_level(logging.WARNING, "kstream_tokens"):
        receiver._tell(STANDBY)
        receiver._tell(STANDBY)
    (record,) = caplog.messages
    assert record.endswith("o185.getFileStatus.: org.apache.hadoop.ipc.StandbyException: not in state active")


def test_what_is_taken_back_is_announced_no_longer_and_counts_as_a_try() -> None:
    """An announcement without its file would be a push that can never be answered; the pauses between tries grow."""
    life = Life()
    now = life.clock.now()
    push = TokenPush(1, in_milliseconds(now - HOUR), now + HOUR)
    life.run.folder.put(push_file(push), json.dumps({"version": 1, "tokens": []}))
    life.hdfs.write(f"{life.run.id.folder}/{tokens_file(push)}", "secret")
    take_back(life.run, pushes(life.run.folder.names(), 1))
    left = life.run.folder.names()
    assert left == {unpushed_marker(push)}
    assert pushes(left, 1).vain == (TokenPush(1, push.id),)
    life.run.folder.put(refused_marker(push), "{}")
    assert not pushes(life.run.folder.names(), 1).unanswered


def test_tokens_that_cannot_be_cancelled_now_stay_announced_until_somebody_can() -> None:
    """Their identifiers stand nowhere else. No server of this cluster cancels any."""
    life = Life()
    now = life.clock.now()
    push = TokenPush(1, in_milliseconds(now - HOUR), now + HOUR)
    token = {"issuer": "hdfs://simulated", "identifier": "AAAA"}
    life.run.folder.put(push_file(push), json.dumps({"version": 1, "tokens": [token]}))
    take_back(life.run, pushes(life.run.folder.names(), 1))
    assert life.run.folder.names() == {push_file(push), unpushed_marker(push)}
