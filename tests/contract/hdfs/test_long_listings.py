"""Folders with more entries than one answer of a NameNode has (dfs.ls.limit, a thousand)."""

from __future__ import annotations

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.http import kerberos_session
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.supervise.leases.session import LeaseSession
from tests.contract.hdfs.conftest import FOLDER, MANY


@pytest.fixture(scope="module")
def hdfs(owner: LeaseSession) -> Hdfs:
    return owner.base.hdfs


@pytest.mark.usefixtures("opened")
def test_all_pages_of_a_long_folder_are_one_listing_sorted_by_bytes(hdfs: Hdfs) -> None:
    names = [entry.name for entry in hdfs.list(f"{FOLDER}/many")]
    assert len(names) == len(MANY)
    assert names == sorted(names, key=str.encode)


@pytest.mark.usefixtures("opened")
def test_a_listing_can_begin_at_a_prefix(hdfs: Hdfs) -> None:
    found = {entry.name for entry in hdfs.listing(f"{FOLDER}/many", "10").entries}
    assert found == {path.rpartition("/")[2] for path in MANY if path.rpartition("/")[2].startswith("10")}


def test_an_empty_folder_and_a_missing_one_have_nothing_and_a_file_is_none(hdfs: Hdfs, folder: str) -> None:
    assert hdfs.list(folder) == hdfs.list(f"{folder}/nowhere") == ()
    hdfs.write(f"{folder}/file", "")
    with pytest.raises(KstreamError, match="is not a directory"):
        hdfs.list(f"{folder}/file")


def test_an_operation_that_a_namenode_does_not_know_is_named_in_its_refusal(
    minicluster: Minicluster, owner: LeaseSession
) -> None:
    """So does one of Hadoop 2 refuse LISTSTATUS_BATCH, and then LISTSTATUS is asked."""
    with kerberos_session(owner.identity, owner.cluster.tls) as session:
        answers = [session.get(f"{url}/webhdfs/v1/?op=LISTSTATUS_LATER") for url in minicluster.namenodes]
    for answer in answers:
        said = answer.json()["RemoteException"]
        assert (answer.status_code, said["exception"]) == (400, "IllegalArgumentException")
        assert "LISTSTATUS_LATER" in said["message"]
