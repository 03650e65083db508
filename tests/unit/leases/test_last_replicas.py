"""The DataNodes of an open file's last block, read from the NameNode's answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import permutations
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.namenode import last_replicas
from airflow_kstream.clients.hdfs.replicas import ReplicaLengths
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.formats.protobuf import Message, encode
from airflow_kstream.model.leases.open_file import Block, FileState
from airflow_kstream.supervise.leases.visible_length import VisibleLengths

GROUP = -9_223_372_036_854_775_792
XOR_2_1 = encode({4: 4})
OWN_OF_TWO_AND_ONE = encode({4: 64, 2: encode({1: "xor", 2: 2, 3: 1})})
UNKNOWN = encode({4: 63})


def striped(policy: bytes, indices: bytes) -> Message:
    """Return LocatedBlocksProto of a file whose last block, of 5 bytes before, has these internal blocks."""
    nodes = [encode({1: encode({1: "10.0.0.1", 2: f"worker{index}", 3: "uuid", 6: 9867})}) for index in indices]
    tokens = [encode({1: b"identifier %d" % index, 2: b"password"}) for index in indices]
    group = encode({1: "BP-1", 2: GROUP, 3: 1001, 4: 0})
    last = encode({1: group, 3: nodes, 5: tokens[0], 9: indices, 10: tokens})
    return Message(encode({1: 5, 3: 1, 4: last, 5: 0, 7: policy}))


@pytest.mark.parametrize("policy", [XOR_2_1, OWN_OF_TWO_AND_ONE])
def test_each_block_of_a_stripe_that_holds_data_has_its_own_name_address_and_token(policy: bytes) -> None:
    replicas = last_replicas(striped(policy, bytes([2, 1, 0])))

    assert replicas
    assert replicas.before == 5
    read = [(Message(part.block).signed(2) - GROUP, part.addresses, part.token.identifier) for part in replicas.parts]
    assert read == [(1, ("worker1:9867",), b"identifier 1"), (0, ("worker0:9867",), b"identifier 0")]


def replicated(*workers: str) -> Message:
    """Return LocatedBlocksProto of a file whose last block is on these workers, in the order of this answer."""
    nodes = [encode({1: encode({1: "10.0.0.1", 2: worker, 3: "uuid", 6: 9867})}) for worker in workers]
    token = encode({1: b"identifier", 2: b"password"})
    last = encode({1: encode({1: "BP-1", 2: 7, 3: 1001, 4: 0}), 3: nodes, 5: token})
    return Message(encode({1: 5, 3: 1, 4: last, 5: 0}))


def test_a_block_is_asked_of_the_same_datanode_whatever_the_order_of_an_answer() -> None:
    """A killed writer's last packets may have been acknowledged on one DataNode and not on the next."""
    assert last_replicas(replicated("worker2", "worker1")) == last_replicas(replicated("worker1", "worker2"))


def test_an_unknown_policy_leaves_the_length_to_webhdfs() -> None:
    assert last_replicas(striped(UNKNOWN, bytes([0, 1]))) is None


def test_silent_datanodes_are_waited_for_once_whatever_the_order_of_an_answer() -> None:
    """Each wait takes the time of a whole answer."""
    asked: list[str] = []

    class Silent:
        def visible_lengths(self, paths: Sequence[str]) -> list[int | KstreamError]:
            asked.extend(paths)
            return [Unavailable("it does not answer in time")] * len(paths)

    lengths = VisibleLengths(cast(ReplicaLengths, Silent()))
    orders = enumerate(permutations(("worker1", "worker2", "worker3")))
    assert lengths.of([held_by(f"/{number}", hosts) for number, hosts in orders]) == {}
    assert asked == ["/5"]


def held_by(path: str, hosts: tuple[str, ...]) -> FileState:
    block = Block(7, 1001, 0, complete=False, hosts=hosts)
    return FileState(path, 7, "alice", datetime(2026, 1, 1, tzinfo=UTC), is_open=True, length=0, block=block)
