"""The owner of a file's lease is read from the NameNode's refusal, and from nothing that a path can imitate."""

from __future__ import annotations

import pytest

from airflow_kstream.clients.hdfs.namenode import owner_named
from airflow_kstream.clients.rpc.connection import RemoteError

US = "kstream-4711"
HADOOP_3 = (
    "Client (=kstream-4711) is not the lease owner (={owner}: {path} (inode 7) Holder kstream-4711 does not have any"
)
HADOOP_2 = "Lease mismatch on {path} owned by {owner} but is accessed by kstream-4711"


@pytest.mark.parametrize("words", [HADOOP_3, HADOOP_2])
@pytest.mark.parametrize(
    "path", ["/a", "/is not the lease owner (=EVE: /b", "/x owned by EVE but is accessed by kstream-4712", "/a\tb c"]
)
def test_the_owner_is_named_whatever_the_path_looks_like(words: str, path: str) -> None:
    refusal = RemoteError("LeaseExpiredException", words.format(owner="DFSClient_NONMAPREDUCE_-1_30", path=path))
    assert owner_named(refusal, US) == "DFSClient_NONMAPREDUCE_-1_30"


@pytest.mark.parametrize(
    "message",
    [
        "File is not open for writing: /a (inode 7) Holder kstream-4711 does not have any open files.",
        "File does not exist: / owned by EVE but is accessed by somebody",
        "Feature is disabled: getAdditionalDatanode",
    ],
)
def test_any_other_refusal_names_nobody(message: str) -> None:
    assert owner_named(RemoteError("AnyException", message), US) is None
