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

from airflow_kstream.jobs.kstream_tokens import Fresh, NotYet, Receiver, Refused, refuses_token
from airflow_kstream.model.streams.contract import push_file, pushes, refused_marker, tokens_file, unpushed_marker
from airflow_kstream.model.streams.token_push import TokenPush, in_milliseconds
from airflow_kstream.supervise.streams.restart.token_pushes import take_back
from tests.simulated.java_errors import JavaError
from tests.simulated.life import Life

TEST, FIRST, SECOND = "push-000001-1-0", "push-000001-2-9999999999", "push-000001-3-9999999999"
ENDED = "push-000001-2-99"
HOUR = timedelta(hours=1)

MISSING = JavaError("java.io.FileNotFoundException", "File does not exist: /kstream/orders/tokens/000001-2")
FOLDER = JavaError("java.io.FileNotFoundException", "Path is not a file: /kstream/orders/tokens/000001-2")
STANDBY = JavaError("org.apache.hadoop.ipc.StandbyException", "not in state active")


@dataclass
class Folder:
    """The stream's folder: a file's content, or what is raised by a read of it. `away` is raised by every request."""

    files: dict[str, Any]
    deleted: list[str] = field(default_factory=list)
    away: Exception | None = None

    def names(self, matters: Callable[[str], bool] = bool) -> set[str]:
        self._require_there()
        return {*filter(matters, self.files)}

    def put(self, name: str, content: Mapping[str, Any]) -> None:
        self._require_there()
        self.files[name] = content

    def read(self, name: str, longest: int) -> bytes:
        self._require_there()
        content = self.files.get(name, MISSING)
        if isinstance(content, Exception):
            raise content
        return bytes(content)

    def delete(self, name: str) -> bool:
        self._require_there()
        self.deleted.append(name)
        return self.files.pop(name, None) is not None

    def _require_there(self) -> None:
        if self.away:
            raise self.away


class Tokens:
    """What Spark does with tokens; `trial` happens when some are tried, `send` when some are used, and can raise."""

    def __init__(self) -> None:
        self.used: list[bytes] = []
        self.trial: Callable[[bytes], object] = lambda content: None
        self.send: Callable[[bytes], object] = lambda content: None

    def tried(self, content: bytes) -> Fresh:
        if content == b"garbage":
            raise Refused("it is not a credentials file")
        self.trial(content)
        return Fresh([], content, content in self.used)

    def use(self, fresh: Fresh) -> None:
        if not fresh.known:
            self.send(fresh.content)
            self.used.append(fresh.content)

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
    assert why(folder, 3) == "it is not a credentials file"
    assert tokens.used == [b"old"]


def fails(error: Exception) -> Callable[[bytes], object]:
    def fail(content: bytes) -> None:
        raise error

    return fail


def answers(folder: Folder) -> set[str]:
    return {name for name in folder.files if name.startswith(("applied", "refused"))}


def test_tokens_that_cannot_be_tried_now_are_used_as_soon_as_they_can(caplog: pytest.LogCaptureFixture) -> None:
    receiver, folder, tokens = driver({FIRST: {}, "tokens/000001-2": b"new"})
    tokens.trial = fails(NotYet("the token for ha-hdfs:prod can't be tried: Connection refused"))
    with caplog.at_level(logging.WARNING, "kstream_tokens"):
        for _ in range(3):
            with pytest.raises(NotYet):
                receiver.look()
    assert (tokens.used, answers(folder), folder.deleted) == ([], set(), [])
    tokens.trial = lambda content: None
    receiver.look()
    assert (tokens.used, answers(folder)) == ([b"new"], {"applied-000001-2"})


def test_a_push_under_way_while_hdfs_was_away_for_an_hour_is_used_afterwards() -> None:
    receiver, folder, tokens = driver({FIRST: {}, "tokens/000001-2": b"new"})
    tokens.trial = fails(NotYet("the token for ha-hdfs:prod can't be tried: Connection refused"))
    with pytest.raises(NotYet):
        receiver.look()
    folder.away = STANDBY
    for _ in range(720):
        with pytest.raises(JavaError):
            receiver.look()
    assert tokens.used == []
    folder.away, tokens.trial = None, lambda content: None
    receiver.look()
    assert (tokens.used, answers(folder)) == ([b"new"], {"applied-000001-2"})


@pytest.mark.parametrize("what", ["read", "trial", "send"])
def test_a_push_that_could_not_be_used_before_its_end_is_refused_by_name(what: str) -> None:
    receiver, folder, tokens = driver({ENDED: {}, "tokens/000001-2": STANDBY if what == "read" else b"new"})
    if what != "read":
        setattr(tokens, what, fails(NotYet("the token for ha-hdfs:prod can't be tried: Connection refused")))
    receiver.look()
    assert why(folder, 2).startswith("its tokens could not be used before they ended: ")
    assert (tokens.used, folder.files.keys() & {"tokens/000001-2"}) == ([], set())


def test_a_refusal_that_cannot_be_written_now_is_written_later() -> None:
    receiver, folder, tokens = driver({FIRST: {}, "tokens/000001-2": b"new"})

    def refuse(content: bytes) -> None:
        folder.away = STANDBY
        raise Refused("the NameNode does not take it")

    tokens.trial = refuse
    with pytest.raises(JavaError):
        receiver.look()
    folder.away = None
    tokens.trial = fails(Refused("the NameNode does not take it"))
    receiver.look()
    assert why(folder, 2) == "the NameNode does not take it"


def test_tokens_that_spark_does_not_use_at_once_are_sent_again() -> None:
    receiver, folder, tokens = driver({FIRST: {}, "tokens/000001-2": b"new"})
    tokens.send = fails(NotYet("Spark took the tokens and did not use them within 30 s"))
    with pytest.raises(NotYet):
        receiver.look()
    assert not folder.delete("tokens/000001-2"), "the driver has them"
    tokens.send = lambda content: None
    receiver.look()
    assert (tokens.used, answers(folder)) == ([b"new"], {"applied-000001-2"})


def test_tokens_that_were_taken_back_while_they_were_tried_are_not_used() -> None:
    """They are cancelled by then."""
    receiver, folder, tokens = driver({FIRST: {}, "tokens/000001-2": b"new"})
    tokens.trial = lambda content: folder.delete("tokens/000001-2")
    receiver.look()
    assert tokens.used == []
    assert why(folder, 2) == "it was taken back while it was tried"


def test_older_tokens_are_used_while_younger_ones_cannot_be_tried() -> None:
    receiver, _, tokens = driver({FIRST: {}, "tokens/000001-2": b"old", SECOND: {}, "tokens/000001-3": b"new"})
    pending = NotYet("the token for ha-hdfs:prod can't be tried: Connection refused")
    tokens.trial = lambda content: fails(pending)(content) if content == b"new" else None
    with pytest.raises(NotYet):
        receiver.look()
    tokens.trial = lambda content: None
    receiver.look()
    assert tokens.used == [b"old", b"new"]


REMOTE = "org.apache.hadoop.ipc.RemoteException"
INVALID = "org.apache.hadoop.security.token.SecretManager$InvalidToken"
SASL = "javax.security.sasl.SaslException"


@pytest.mark.parametrize(
    ("chain", "refuses"),
    [
        ([(INVALID, "token (HDFS_DELEGATION_TOKEN token 9 for streamer) is expired")], True),
        ([(REMOTE, INVALID, "can't be found in cache")], True),
        ([("java.io.IOException", "Failed on local exception"), (REMOTE, INVALID, "can't be found in cache")], True),
        ([(REMOTE, SASL, "DIGEST-MD5: digest response format violation. Mismatched response.")], True),
        # A NameNode that becomes active quotes what it can't tell yet.
        ([(REMOTE, "org.apache.hadoop.ipc.RetriableException", f"{INVALID}: can't be found in cache")], False),
        ([(REMOTE, "org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported")], False),
        ([(REMOTE, "org.apache.hadoop.security.AccessControlException", "Permission denied")], False),
        ([(SASL, "DIGEST-MD5: No common protection layer between client and server")], False),
        ([("java.net.ConnectException", "Connection refused")], False),
        ([("java.net.UnknownHostException", f"{INVALID} Mismatched response")], False),
        ([], False),
    ],
)
def test_only_a_servers_own_word_refuses_a_token(chain: list[tuple[str, ...]], refuses: bool) -> None:
    error = JavaError(*chain[0], causes=chain[1:]) if chain else OSError("InvalidToken")
    assert refuses_token(error) is refuses


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
    announce(life, push)
    take_back(life.run, pushes(life.run.folder.names(), 1))
    assert life.run.folder.names() == {push_file(push), unpushed_marker(push)}
    asked: list[str] = []
    life.hdfs.at_request = lambda request, path: asked.append(path) if request == "delete" else None
    take_back(life.run, pushes(life.run.folder.names(), 1))
    assert life.run.folder.names() == {push_file(push), unpushed_marker(push)}
    assert asked == [], "its file is gone"


def test_tokens_that_the_driver_has_taken_are_not_cancelled_before_it_answers() -> None:
    """It deletes their file before it uses them. Cancelled, they would keep it from reading the next ones."""
    life = Life()
    now = life.clock.now()
    push = TokenPush(1, in_milliseconds(now - HOUR), now + HOUR)
    announce(life, push)
    life.hdfs.delete(f"{life.run.id.folder}/{tokens_file(push)}")
    take_back(life.run, pushes(life.run.folder.names(), 1))
    assert life.run.folder.names() == {push_file(push)}


def announce(life: Life, push: TokenPush) -> None:
    token = {"issuer": "hdfs://simulated", "identifier": "AAAA"}
    life.hdfs.write(f"{life.run.id.folder}/{tokens_file(push)}", "secret")
    life.run.folder.put(push_file(push), json.dumps({"version": 1, "tokens": [token]}))
