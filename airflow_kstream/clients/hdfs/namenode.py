"""Open files as the active NameNode knows them, over its RPC: no JVM, and many files at a time.

Field numbers are those of ClientNamenodeProtocol.proto and hdfs.proto. The NameNode's answers contain block tokens,
which are secrets; only `last_replicas` reads them.

`last_replicas` tells where the last block of an open file is. A striped block is a group of internal blocks, each on
one DataNode and with a token of its own; its data are in the first of them, the rest is parity.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.rpc.connection import Answer, RemoteError, Terms
from airflow_kstream.clients.rpc.failover import ActiveServer
from airflow_kstream.clients.rpc.java_exceptions import NO_SUCH_OPERATION
from airflow_kstream.clients.rpc.sasl import LoginToken, protections
from airflow_kstream.clients.waiting import CONNECT_AND_READ_SECONDS
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.hdfs_path import checked_path, file_time, is_below
from airflow_kstream.model.errors import InvalidInput, KstreamError, NotFound
from airflow_kstream.model.formats.protobuf import Message, encode
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.open_file import Block, FileState, OpenFile

# By the id of HDFS's own policies, of which a NameNode tells no more than that (SystemErasureCodingPolicies).
_DATA_UNITS = {1: 6, 2: 3, 3: 6, 4: 2, 5: 10}


@dataclass(frozen=True)
class Replicas:
    """A block, and the host:port of the RPC servers that have a replica: `block` is the message that names it.

    Neither is of use without `token`.
    """

    block: bytes
    addresses: tuple[str, ...]
    token: LoginToken

    @property
    def known_length(self) -> int:
        """Return how many bytes of it the NameNode knows of."""
        return Message(self.block).number(4)


@dataclass(frozen=True)
class LastReplicas:
    """The last block of an open file: one `part`, or those that hold the data of a striped one.

    `before` is the length of the blocks before it, in bytes.
    """

    before: int
    parts: tuple[Replicas, ...]


def last_replicas(located: Message) -> LastReplicas | None:
    """Read LocatedBlocksProto. Return None if no block is being written, or it is coded by a policy unknown here."""
    written = bool(located.number(3)) and 4 in located and not located.number(5)
    parts = _parts(located.message(4), located) if written else ()
    return LastReplicas(located.number(1), parts) if parts else None


def _parts(last: Message, located: Message) -> tuple[Replicas, ...]:
    if 7 in located:
        return tuple(_data_blocks(last, located.message(7)))
    # A NameNode shuffles them for each answer (NetworkTopology.sortByDistance), and a killed writer leaves replicas of
    # which one acknowledged more than the other: always the same one is asked first, or such a file seems to grow.
    return (Replicas(last.data(1), tuple(sorted(_addresses(last))), _token(last.message(5))),)


def _data_blocks(group: Message, policy: Message) -> Iterator[Replicas]:
    """Yield the internal blocks that hold data; the position of each in the group is its id's distance from it."""
    name = group.message(1)
    rows = zip(group.data(9), _addresses(group), group.messages(10), strict=True)
    for index, address, token in rows:
        if index < _data_units(policy):
            block = encode({1: name.text(1), 2: name.signed(2) + index, 3: name.number(3), 4: name.number(4)})
            yield Replicas(block, (address,), _token(token))


def _data_units(policy: Message) -> int:
    return policy.message(2).number(2) if 2 in policy else _DATA_UNITS.get(policy.number(4), 0)


def _addresses(located: Message) -> tuple[str, ...]:
    nodes = [node.message(1) for node in located.messages(3)]
    return tuple(f"{node.text(2)}:{node.number(6)}" for node in nodes)


def _token(token: Message) -> LoginToken:
    return LoginToken(token.data(1), token.data(2))


_PROTOCOL = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
_ALL_OPEN_FILES = 1
# CreateFlagProto; a size not below a NameNode's least one, nor any cell; CryptoProtocolVersionProto.
_APPEND, _BLOCK_BYTES, _ENCRYPTION_ZONES = 4, 128 * 1024 * 1024, 2
# The number of requests that a failover makes us repeat, and of answers held at a time.
_SLICE = 500
Row = TypeVar("Row", str, bytes)
_Request = Callable[[str, str], Mapping[int, str | bytes | int]]
# Requests of a writer: the method, and its message for a path and a client's name.
_NO_BLOCK = encode({1: "", 2: 0, 3: 0})
_ANOTHER_DATANODE: tuple[str, _Request] = (
    "getAdditionalDatanode",
    lambda path, client: {1: path, 2: _NO_BLOCK, 5: 0, 6: client},
)
_NEXT_BLOCK: tuple[str, _Request] = ("addBlock", lambda path, client: {1: path, 2: client})


class NameNodeRpc:
    """Queries about leases to the NameNodes of one filesystem, as one identity. All but `refusal_to_open` and
    `request_recovery` only read.

    `addresses` are host:port of the RPC servers, all members of an HA pair. `service_principal` may contain `_HOST`.
    `protection` is the value of hadoop.rpc.protection: one word, or several with the preferred one first.
    `seconds` are the times that connecting with login, and any answer, may take before the next NameNode is tried.
    Paths are absolute. Threads may share an instance, and take turns call by call.
    `batch` is the largest number of paths for one call of `request_recovery`.
    Raises Unavailable: when no NameNode is active.
    """

    batch = _SLICE

    def __init__(
        self,
        addresses: tuple[str, ...],
        service_principal: str,
        identity: Identity,
        protection: str = "authentication",
        seconds: tuple[float, float] = CONNECT_AND_READ_SECONDS,
    ) -> None:
        self.protections = protections(protection)
        self._namenode = ActiveServer(
            addresses, identity, Terms(_PROTOCOL, service_principal, self.protections, *seconds)
        )

    def open_files(self, path: str = "/") -> Iterator[OpenFile]:
        """Yield all files open for write at or below `path`, oldest inode first. The cost grows with open files only.

        It is not a snapshot: files opened or closed meanwhile may be included or not; none comes twice.
        Raises Denied: when the identity is not a superuser. Raises NotFound: when the server has no such list: a
        NameNode before Hadoop 2.8.3, or a router.
        """
        root = checked_path(path)
        cursor, more = 0, True
        while more:
            request = encode({1: cursor, 2: _ALL_OPEN_FILES, 3: root})
            answer = self._listed(f"list open files below {path}", request)
            entries = [_open_file(entry) for entry in answer.messages(1)]
            # NameNodes before 3.0.1 list the whole filesystem.
            yield from (file for file in entries if is_below(root, file.path))
            cursor = max((file.file_id or 0 for file in entries), default=cursor)
            more = bool(entries) and bool(answer.number(2))

    def states(self, paths: Sequence[str]) -> list[FileState | KstreamError]:
        """Return each file's current state, in the order of `paths`; if one can't be read, the error is its entry.

        Needs the right to read a file. File and blocks are read one after the other: after a rename in between, a file
        may show with the blocks of another. Reading may update an access time that is older than the filesystem's
        precision.
        """
        return [state for part in _slices(paths) for state in self._states(part)]

    def closed(self, paths: Sequence[str]) -> list[bool | KstreamError]:
        """Return for each file whether it is closed; if one can't be read, the error is its entry."""
        return [closed for part in _slices(paths) for closed in self._closed(part)]

    @property
    def latency(self) -> float:
        """Return the NameNode's mean time for an answer in the last call, in seconds."""
        return self._namenode.latency

    def request_recovery(self, paths: Sequence[str]) -> list[bool | KstreamError]:
        """Request the recovery of each open file's lease, regardless of its holder, and wait for the end of none.

        Return for each path, in order: True if the file is closed now, False if its recovery was begun, else the error,
        with the NameNode's words: NotFound, Denied, or Conflict. It needs the right to write the file. Raises
        Unavailable: also when the requests may have arrived. Read the states before another one: a file that was closed
        meanwhile may be another writer's by then.
        """
        return [closed for part in _slices(paths) for closed in self._recovered(part)]

    def last_replicas(self, paths: Sequence[str]) -> list[LastReplicas | KstreamError | None]:
        """Return where the last block of each open file is, None if it has none that is being written; if a file can't
        be read, the error is its entry.
        """
        return [replicas for part in _slices(paths) for replicas in self._last_replicas(part)]

    def holders(self, paths: Sequence[str]) -> list[str | None]:
        """Return the client name that owns each open file's lease; None for files that are not open, and if a
        NameNode doesn't tell.

        It touches no lease, and needs no right to the file itself: a client that never existed requests another
        DataNode for its pipeline, and the NameNode's refusal names the owner (FSNamesystem.checkLease, which
        getAdditionalDatanode calls under the read lock). A NameNode whose own
        dfs.client.block.write.replace-datanode-on-failure.enable is false refuses before that; of such a one the client
        requests the file's next block, which is refused in the same words under the same lock (validateAddBlock, before
        any DataNode is chosen; storeAllocatedBlock, which takes the write lock, is not reached). Neither is audited,
        counted as a block, or logged beyond the RPC server's line for a refusal.
        """
        stranger = f"kstream-{uuid.uuid4()}"
        # One at first: each refusal of a disabled operation is a stack trace in the NameNode's log.
        disabled = any(map(_is_disabled, self._asked_by_stranger(_ANOTHER_DATANODE, paths[:1], stranger)))
        answers = self._asked_by_stranger(_NEXT_BLOCK if disabled else _ANOTHER_DATANODE, paths, stranger)
        return [owner_named(answer, stranger) for answer in answers]

    def refusal_to_open(self, path: str) -> KstreamError:
        """Return the refusal of a writer that opens the file and may neither create nor overwrite it.

        It always is refused: the NameNode looks at the lease as for any other writer, which begins the recovery of a
        dead holder's file and renews the rest of its lease, and then finds that the file exists; without the flag
        CREATE no file comes to be where there is none (FSDirWriteFileOp.resolvePathForStartFile, startFile). It takes
        the write lock, as a probe by TRUNCATE does, and the right to write in the file's folder. Hadoop checks the
        other fields, which are of no use then, first. Raises InvalidInput: when it is not refused.
        """
        tried, client = f"probe the holder of {path}", f"kstream-{uuid.uuid4()}"
        file = encode({1: checked_path(path), 2: encode({1: 0o600}), 3: client, 4: _APPEND, 5: 0})
        (answer,) = self._namenode.call(tried, "create", [file + encode({6: 3, 7: _BLOCK_BYTES, 8: _ENCRYPTION_ZONES})])
        if isinstance(answer, RemoteError):
            return self._namenode.error(answer, tried)
        raise InvalidInput(f"unexpected answer: the NameNode opened {path}")

    def close(self) -> None:
        """Close the connections; a later call connects again."""
        self._namenode.close()

    def _asked_by_stranger(self, request: tuple[str, _Request], paths: Sequence[str], stranger: str) -> list[Answer]:
        method, fields = request
        messages = [encode(fields(checked_path(path), stranger)) for path in paths]
        tried = "ask for the holders of files"
        return [answer for part in _slices(messages) for answer in self._namenode.call(tried, method, part)]

    def _closed(self, paths: Sequence[str]) -> Iterator[bool | KstreamError]:
        tried = "ask whether files are closed"
        answers = self._namenode.call(tried, "isFileClosed", [encode({1: checked_path(path)}) for path in paths])
        for path, answer in zip(paths, answers, strict=True):
            yield self._refusal(answer, path) if isinstance(answer, RemoteError) else bool(answer.number(1))

    def _recovered(self, paths: Sequence[str]) -> Iterator[bool | KstreamError]:
        # The NameNode refuses a client that holds the lease itself.
        client = f"kstream-{uuid.uuid4()}"
        requests = [encode({1: checked_path(path), 2: client}) for path in paths]
        tried = "recover leases"
        for answer in self._namenode.call_once(tried, "recoverLease", requests):
            yield self._namenode.error(answer, tried) if isinstance(answer, RemoteError) else bool(answer.number(1))

    def _last_replicas(self, paths: Sequence[str]) -> Iterator[LastReplicas | KstreamError | None]:
        for path, located in zip(paths, self._located(paths), strict=True):
            if isinstance(located, RemoteError):
                yield self._refusal(located, path)
            else:
                yield last_replicas(located.message(1)) if 1 in located else None

    def _located(self, paths: Sequence[str]) -> list[Answer]:
        # The last block comes with any range but an empty one.
        requests = [encode({1: checked_path(path), 2: 0, 3: 1}) for path in paths]
        return self._namenode.call("locate blocks", "getBlockLocations", requests)

    def _states(self, paths: Sequence[str]) -> Iterator[FileState | KstreamError]:
        infos = self._namenode.call(
            "read the state of files", "getFileInfo", [encode({1: checked_path(path)}) for path in paths]
        )
        for path, info, located in zip(paths, infos, self._located(paths), strict=True):
            yield self._state(path, info, located)

    def _state(self, path: str, info: Answer, located: Answer) -> FileState | KstreamError:
        if isinstance(info, RemoteError):
            return self._refusal(info, path)
        if isinstance(located, RemoteError):
            return self._refusal(located, path)
        if 1 not in info or 1 not in located:
            return NotFound("it does not exist", tried=f"read the state of {path}", server=self._namenode.servers)
        return _file_state(path, info.message(1), located.message(1))

    def _listed(self, tried: str, request: bytes) -> Message:
        (answer,) = self._namenode.call(tried, "listOpenFiles", [request])
        if isinstance(answer, RemoteError):
            error = self._namenode.error(answer, tried)
            if answer.java_class in NO_SUCH_OPERATION:
                raise NotFound(error.message, tried=tried, server=error.server, principal=error.principal)
            raise error
        return answer

    def _refusal(self, error: RemoteError, path: str) -> KstreamError:
        return self._namenode.error(error, f"read the state of {path}")


def namenode_rpc(cluster: Cluster, identity: Identity) -> NameNodeRpc:
    """Return a client for the default filesystem. Raises InvalidInput: when the connection has no conf folder."""
    if not cluster.hadoop_conf_dir:
        raise InvalidInput(
            f"connection {cluster.name} has no hadoop_conf_dir, which names the NameNodes' RPC addresses"
        )
    conf = HadoopConf(cluster.hadoop_conf_dir)
    return NameNodeRpc(conf.namenode_rpcs(), conf.namenode_principal, identity, conf.rpc_protection)


def _open_file(entry: Message) -> OpenFile:
    return OpenFile(entry.text(2), entry.signed(1), entry.text(3), entry.text(4))


def _file_state(path: str, info: Message, located: Message) -> FileState:
    block = _block(located.message(4), complete=bool(located.number(5))) if 4 in located else None
    return FileState(
        path=path,
        file_id=info.number(13),
        owner=info.text(5),
        modified=file_time(info.signed(7)),
        is_open=bool(located.number(3)),
        # The NameNode's sum leaves out a block that is being written.
        length=located.number(1) + (block.length if block and not block.complete else 0),
        block=block,
        erasure_coded=17 in info or 7 in located,
    )


def _block(located: Message, *, complete: bool) -> Block:
    block, nodes = located.message(1), located.messages(3)
    reports = [node.number(6) for node in nodes if node.number(6)]
    return Block(
        id=block.signed(2),
        generation_stamp=block.number(3),
        length=block.number(4),
        complete=complete,
        hosts=tuple(node.message(1).text(2) for node in nodes),
        newest_report=file_time(max(reports)) if reports else None,
    )


def owner_named(refusal: Answer, stranger: str) -> str | None:
    """Read the owner's name. Paths may look like an answer, so only words that a path can't hold count.

    Hadoop 2 ends its sentence with the stranger's name; later ones begin with it.
    """
    if not isinstance(refusal, RemoteError):
        return None
    client = re.escape(stranger)
    named = re.match(rf"Client \(={client}\) is not the lease owner \(=(\S+?): /", refusal.message) or re.search(
        rf" owned by (\S+) but is accessed by {client}$", refusal.message
    )
    return named[1] if named else None


def _is_disabled(answer: Answer) -> bool:
    return isinstance(answer, RemoteError) and answer.java_class in NO_SUCH_OPERATION


def _slices(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    return (rows[start : start + _SLICE] for start in range(0, len(rows), _SLICE))
