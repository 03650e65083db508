"""Open files and their leases over WebHDFS: a file's state, its length for readers, and its holder's liveness.

Where WebHDFS has no probe of a file's holder, RPC has: a TRUNCATE is refused for erasure-coded and lazy-persist files
before the lease is looked at (FSDirTruncateOp), and for one that is being truncated already; Hadoop offers nothing else
over HTTP that looks at it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.rpc.java_exceptions import NO_SUCH_OPERATION
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.clusters.hdfs_path import file_time, plain_path
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.lease import HolderLiveness
from airflow_kstream.model.leases.open_file import Block, FileState

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.namenode import NameNodeRpc
    from airflow_kstream.clients.hdfs.operations import LeaseWebHdfs

_HOLDER = re.compile(r"currently owned by (?P<holder>\S+) on (?P<host>\S+)")
# What a TRUNCATE is refused for before the lease is looked at.
_BEFORE_THE_LEASE = (*NO_SUCH_OPERATION, "is being truncated")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class HolderAnswer:
    """The NameNode's answer to a probe that requests the file as another writer would.

    `holder` and `host` are known only if the holder lives. `recovering` is True if a recovery runs now, including one
    that the probe began. `closed` is True if the file is closed. `refusal` has the NameNode's words if it refused.
    """

    liveness: HolderLiveness
    holder: str | None = None
    host: str | None = None
    recovering: bool = False
    closed: bool = False
    refusal: str = ""


class LeaseHdfs(Hdfs):
    """A WebHDFS client with the operations on leases. Not for several threads; raises the errors of `Hdfs`."""

    _client: LeaseWebHdfs

    @staticmethod
    def _client_class() -> type[LeaseWebHdfs]:
        from airflow_kstream.clients.hdfs.operations import LeaseWebHdfs

        return LeaseWebHdfs

    def state(self, path: str) -> FileState:
        """Return the NameNode's view, without measuring `visible_length`. Raises InvalidInput: when it is a folder."""
        status = self._ask(f"read the state of {path}", lambda: self._client.status(plain_path(path)))
        if status["type"] != "FILE":
            raise InvalidInput(f"{path} is a {str(status['type']).lower()}, not a file")
        state: FileState = self._ask(
            f"locate the blocks of {path}",
            lambda: _state(path, status, self._client.located_blocks(plain_path(path))),
        )
        return state

    def visible_length(self, path: str, token: str) -> int:
        """Return the length that a reader would get now, in bytes, including the flushed part of the last block.

        `token` is the URL form of a delegation token of this identity, for the DataNode to read from.
        """
        return int(self._ask(f"open {path}", lambda: self._client.readable_length(plain_path(path), token)))

    def check_right_to_write(self, path: str) -> None:
        """Check without side effects. Raises Denied: when the right that `ask_holder` needs is missing."""
        self._ask(f"check the right to write {path}", lambda: self._client.check_right_to_write(plain_path(path)))

    @contextmanager
    def token(self) -> Iterator[str]:
        """Yield a delegation token in its URL form; it is cancelled afterwards."""
        token = self.new_token(renewer=self._identity.do_as or self._identity.principal)
        try:
            yield token
        finally:
            with suppress(Unavailable):
                self.cancel_token(token)

    def ask_holder(self, path: str) -> HolderAnswer:
        """Probe whether the holder of this open file's lease lives.

        The probe has side effects: it begins the recovery of a dead holder's file, as any other writer's open would,
        and renews that holder's lease, so that for 60 s its other files look alive. A living holder loses nothing. The
        probe requests a truncation to more bytes than there are, which the NameNode refuses only after it has checked
        the lease (FSDirTruncateOp). It needs the right to write the file. Raises Denied, NotFound or Unavailable:
        when the NameNode does not get that far.
        """
        try:
            self._ask(f"probe the holder of {path}", lambda: self._client.ask_for_more_than_there_is(plain_path(path)))
        except NotFound:
            raise
        except (Conflict, InvalidInput) as error:
            return answer_of(error.message, path)
        raise InvalidInput(f"unexpected answer: the NameNode would truncate {path}")


class LeaseHdfsPool:
    """The same operations on many files, `width` at a time; results in order, a refused file's error among them."""

    def __init__(self, addresses: tuple[str, ...], identity: Identity, tls: Tls, width: int = 8) -> None:
        self._clients = [LeaseHdfs(addresses, identity, tls) for _ in range(width)]

    def states(self, paths: Sequence[str]) -> list[FileState | KstreamError]:
        return self._each(LeaseHdfs.state, paths)

    def visible_lengths(self, paths: Sequence[str]) -> list[int | KstreamError]:
        """Measure the lengths with one token for all of them. Raises any error that getting the token raises."""
        if not paths:
            return []
        with self._clients[0].token() as token:
            return self._each(lambda client, path: client.visible_length(path, token), paths)

    def holder_answers(self, paths: Sequence[str]) -> list[HolderAnswer | KstreamError]:
        """Probe the holder of each file, with the side effects of `LeaseHdfs.ask_holder`."""
        return self._each(LeaseHdfs.ask_holder, paths)

    def right_to_write(self, paths: Sequence[str]) -> list[KstreamError | None]:
        """Return for each file None if this identity may write it, else the error."""
        return self._each(LeaseHdfs.check_right_to_write, paths)

    def closed(self, paths: Sequence[str]) -> list[bool | KstreamError]:
        return [state if isinstance(state, KstreamError) else not state.is_open for state in self.states(paths)]

    def close(self) -> None:
        with ExitStack() as stack:
            for client in self._clients:
                stack.callback(client.close)

    def _each(self, ask: Callable[[LeaseHdfs, str], Answer], paths: Sequence[str]) -> list[Answer | KstreamError]:
        """Call `ask` for each path. Each thread keeps to one client: two can't share a session's authentication."""
        width = len(self._clients)
        shares = [paths[number::width] for number in range(width)]
        with ThreadPoolExecutor(width) as threads:
            answered = list(threads.map(lambda share: _all(ask, *share), zip(self._clients, shares, strict=True)))
        return [answered[number % width][number // width] for number in range(len(paths))]


def _all(
    ask: Callable[[LeaseHdfs, str], Answer], client: LeaseHdfs, paths: Sequence[str]
) -> list[Answer | KstreamError]:
    return [_attempt(ask, client, path) for path in paths]


def _attempt(ask: Callable[[LeaseHdfs, str], Answer], client: LeaseHdfs, path: str) -> Answer | KstreamError:
    try:
        return ask(client, path)
    except KstreamError as error:
        return error


def _state(path: str, status: dict[str, Any], located: dict[str, Any]) -> FileState:
    last = located.get("lastLocatedBlock")
    block = _block(last, complete=bool(located["isLastBlockComplete"])) if last else None
    open_now = bool(located["isUnderConstruction"])
    tail = block.length if block and not block.complete else 0
    return FileState(
        path=path,
        file_id=int(status["fileId"]),
        owner=str(status["owner"]),
        modified=file_time(status["modificationTime"]),
        is_open=open_now,
        length=int(located["fileLength"]) + tail,
        block=block,
        erasure_coded=bool(status.get("ecPolicy")),
    )


def _block(located: dict[str, Any], *, complete: bool) -> Block:
    """Read a block without its token, which is a secret."""
    block, nodes = located["block"], located["locations"]
    reported = [node["lastUpdate"] for node in nodes if node.get("lastUpdate")]
    return Block(
        id=int(block["blockId"]),
        generation_stamp=int(block["generationStamp"]),
        length=int(block["numBytes"]),
        complete=complete,
        hosts=tuple(str(node["hostName"]) for node in nodes),
        newest_report=datetime.fromtimestamp(max(reported) / 1000, UTC) if reported else None,
    )


def answer_of(refusal: str, path: str) -> HolderAnswer:
    """Interpret the NameNode's words; the first row that matches counts."""
    # A path may look like an answer.
    words = refusal.replace(" ".join(path.splitlines()), "")
    return next(made(words) for part, made in _ANSWERS if part in words)


def _renewing(words: str) -> HolderAnswer:
    named = _HOLDER.search(words)
    return HolderAnswer(
        HolderLiveness.RENEWING, named["holder"] if named else None, named["host"].rstrip(".") if named else None
    )


_ANSWERS: tuple[tuple[str, Callable[[str], HolderAnswer]], ...] = (
    ("FileAlreadyExistsException", lambda words: HolderAnswer(HolderLiveness.UNKNOWN, closed=True)),
    ("larger file size", lambda words: HolderAnswer(HolderLiveness.UNKNOWN, closed=True)),
    ("another recovery is in progress", lambda words: HolderAnswer(HolderLiveness.UNKNOWN, recovering=True)),
    ("RecoveryInProgressException", lambda words: HolderAnswer(HolderLiveness.DEAD, recovering=True)),
    ("currently owned by", _renewing),
    ("", lambda words: HolderAnswer(HolderLiveness.UNKNOWN, refusal=words)),
)


def ask_holders(
    pool: LeaseHdfsPool, rpc: NameNodeRpc | None, paths: Sequence[str]
) -> list[HolderAnswer | KstreamError]:
    """Probe whether the holders of these open files' leases live, over WebHDFS or, where that can't, by RPC.

    Side effects are those of `LeaseHdfs.ask_holder`, and so are the errors, which are answers here.
    """
    answers = pool.holder_answers(paths)
    if rpc is None:
        return answers
    return [
        _answered_by_rpc(rpc.refusal_to_open(path), path) if _is_not_offered(answer) else answer
        for path, answer in zip(paths, answers, strict=True)
    ]


def _is_not_offered(answer: HolderAnswer | KstreamError) -> bool:
    return isinstance(answer, HolderAnswer) and any(words in answer.refusal for words in _BEFORE_THE_LEASE)


def _answered_by_rpc(refusal: KstreamError, path: str) -> HolderAnswer | KstreamError:
    if isinstance(refusal, NotFound) or not isinstance(refusal, Conflict | InvalidInput):
        return refusal
    return answer_of(refusal.message, path)
