"""Requests about a token: which reach no server, and that no error of one shows the token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.clients.local.credential_files import read_credentials
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Denied, InvalidInput, Unavailable
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.tokens import files
from tests.live.token_makers import leaked
from tests.simulated.hadoop_writers import java_file
from tests.simulated.servers import CLUSTER
from tests.simulated.strange_servers import StrangeServer, said, serving
from tests.simulated.token_cases import HDFS, private, shown

OURS = replace(HDFS, alias="ha-hdfs:simulated", service="ha-hdfs:simulated")
# As Hadoop's AbstractDelegationTokenSecretManager, tests/contract/test_delegation_tokens.py has it say so.
REFUSED = "gateway tries to renew a token with non-matching renewer yarn"


@pytest.fixture
def namenode() -> Iterator[StrangeServer]:
    """A NameNode that refuses whatever is asked of it."""
    exception = {"exception": "AccessControlException", "javaClassName": "AccessControlException", "message": REFUSED}
    with serving({"": said({"RemoteException": exception}, 403)}) as server:
        yield server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return private(tmp_path / "token", java_file([OURS]))


@pytest.mark.parametrize(
    ("request_", "error", "away"),
    [
        (files.renew, Denied, False),
        (files.cancel, Denied, False),
        (files.renew, Unavailable, True),
        (files.cancel, Unavailable, True),
    ],
    ids=["a renewal is refused", "a cancellation is refused", "nobody renews", "nobody cancels"],
)
def test_no_error_of_a_request_holds_the_token(
    namenode: StrangeServer,
    file: Path,
    request_: Callable[[ClusterSession, files.ChosenToken], object],
    error: type[Exception],
    away: bool,
) -> None:
    """Neither the error's words nor a variable of any frame, its own or its causes', hold it."""
    servers = ("http://localhost:1",) if away else (namenode.address,)
    who = CLUSTER.watcher
    hdfs, yarn = Hdfs(servers, who, Tls()), ResourceManager(("http://localhost:1",), who, Tls())
    with closing(hdfs), closing(yarn):
        session = ClusterSession(CLUSTER, who, hdfs, yarn, KafkaEnds(who))
        with pytest.raises(error) as refused:
            request_(session, files.choose(CLUSTER, file, None))
    assert not leaked(file, *shown(refused.value))


def test_a_server_that_can_not_be_trusted_is_no_judge_of_a_token(namenode: StrangeServer, file: Path) -> None:
    untrusted = replace(CLUSTER, namenodes=(namenode.address.replace("http://", "https://"),))
    (validity,) = files.validities(untrusted, read_credentials(file))
    assert validity.honoured is None
    assert "TLS" in validity.detail


def test_another_clusters_token_is_not_shown_to_this_one(namenode: StrangeServer, tmp_path: Path) -> None:
    cluster = replace(CLUSTER, namenodes=(namenode.address,))
    other = private(tmp_path / "token", java_file([HDFS]))
    (validity,) = files.validities(cluster, read_credentials(other))
    assert validity.honoured is None
    assert validity.detail.startswith("not asked: its service 'ha-hdfs:prod' is none of hdfs://simulated")
    with pytest.raises(InvalidInput, match="is not sent to cluster simulated: its service"):
        files.choose(cluster, other, None)
    assert namenode.requests == []


def test_a_token_among_several_is_named_by_its_alias(tmp_path: Path) -> None:
    several = private(tmp_path / "token", java_file([OURS, HDFS]))
    assert files.choose(CLUSTER, several, OURS.alias).identifier.renewer == "yarn"
    aliases = "of: 'ha-hdfs:simulated', 'ha-hdfs:prod'"
    with pytest.raises(InvalidInput, match=f"0 tokens of a NameNode with alias 'other'.* {aliases}"):
        files.choose(CLUSTER, several, "other")
    with pytest.raises(InvalidInput, match=f"2 tokens of a NameNode in all.* {aliases}"):
        files.choose(CLUSTER, several, None)
