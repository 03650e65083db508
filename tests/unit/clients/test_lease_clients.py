"""What the clients that find and recover open files need is required by name, before any server is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_kstream.clients.hdfs.lease_recovery_debug import DebugRecoverer
from airflow_kstream.clients.hdfs.namenode import namenode_rpc
from airflow_kstream.clients.hdfs.native import NativeReads
from airflow_kstream.model.errors import InvalidInput
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
