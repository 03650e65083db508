"""What the clients that find and recover open files need is required by name, before any server is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.lease_recovery_debug import DebugRecoverer
from airflow_kstream.clients.hdfs.leases import HolderAnswer, LeaseHdfsPool, answer_of, ask_holders
from airflow_kstream.clients.hdfs.namenode import NameNodeRpc, namenode_rpc
from airflow_kstream.clients.hdfs.native import NativeReads
from airflow_kstream.model.errors import Conflict, InvalidInput
from airflow_kstream.model.leases.lease import HolderLiveness
from tests.simulated.servers import CLUSTER

WITH_CONF = replace(CLUSTER, hadoop_conf_dir="/etc/hadoop/conf")
STREAMER = CLUSTER.watcher


def test_without_a_hadoop_conf_folder_there_is_no_rpc() -> None:
    with pytest.raises(InvalidInput, match="hadoop_conf_dir"):
        namenode_rpc(CLUSTER, STREAMER)


def test_a_user_that_cannot_be_impersonated_is_refused_before_any_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """hdfs-native takes the user from the environment, for the whole process; logs are read over WebHDFS then."""
    monkeypatch.delenv("HADOOP_PROXY_USER", raising=False)
    with pytest.raises(InvalidInput, match="HADOOP_PROXY_USER"):
        NativeReads(WITH_CONF, replace(STREAMER, do_as="ada"))
    monkeypatch.setenv("HADOOP_PROXY_USER", "ada")
    with pytest.raises(InvalidInput, match="HADOOP_PROXY_USER"):
        NativeReads(WITH_CONF, STREAMER)


def test_a_hadoop_client_that_is_not_installed_is_named() -> None:
    with pytest.raises(InvalidInput, match="there is no program /no/such/hdfs here"):
        DebugRecoverer(WITH_CONF, STREAMER, binary="/no/such/hdfs")


@dataclass
class NameNode:
    """Its words about one file: to who would cut it short, and to who would open it."""

    to_truncate: str
    to_open: str

    def holder_answers(self, paths: list[str]) -> list[HolderAnswer]:
        return [answer_of(self.to_truncate, path) for path in paths]

    def refusal_to_open(self, path: str) -> Conflict:
        return Conflict(self.to_open)


@pytest.mark.parametrize(
    ("reason", "liveness"),
    [
        ("RecoveryInProgressException: lease recovery is in progress. Try again later.", HolderLiveness.DEAD),
        ("RecoveryInProgressException: another recovery is in progress by DFSClient_1.", HolderLiveness.UNKNOWN),
    ],
)
def test_a_dead_writer_of_a_file_being_cut_short_is_found_by_another_request(
    reason: str, liveness: HolderLiveness
) -> None:
    """FSDirTruncateOp refuses a second cut before it looks at the lease."""
    refused = "AlreadyBeingCreatedException: Failed to TRUNCATE_FILE /a for C on worker7 because /a is being truncated."
    namenode = NameNode(refused, reason)
    (answer,) = ask_holders(cast(LeaseHdfsPool, namenode), cast(NameNodeRpc, namenode), ["/a"])
    assert isinstance(answer, HolderAnswer)
    assert (answer.liveness, answer.recovering, answer.refusal) == (liveness, True, "")
