"""Where the last block of an open file is, read from the NameNode's answer: the question to its DataNodes.

Field numbers are those of hdfs.proto. A striped block is a group of internal blocks, each on one DataNode and with a
token of its own; its data are in the first of them, the rest is parity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_kstream.clients.rpc.digest import LoginToken
from airflow_kstream.model.formats.protobuf import Message, encode

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
    return (Replicas(last.data(1), _addresses(last), _token(last.message(5))),)


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
