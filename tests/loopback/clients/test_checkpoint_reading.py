"""Checkpoints over WebHDFS, from a server on loopback that counts the requests: a real NameNode doesn't."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.progress import CommittedBatch
from airflow_kstream.model.streams.stream_policies import KafkaPolicy
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.engine import Newest
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from tests.simulated.servers import CLUSTER
from tests.simulated.strange_servers import HTML, NOW, Answer, StrangeServer, introduction, page, said, serving
from tests.simulated.yarn import TICKET_SPEC

ADA = Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab")


def listing(*names: str, at: int = 1000, owner: str = "ada") -> Answer:
    kinds = {"offsets": "DIRECTORY", "commits": "DIRECTORY"}
    file = {"modificationTime": at, "length": 9, "owner": owner}
    return page([{"pathSuffix": name, "type": kinds.get(name, "FILE"), **file} for name in names])


def metadata(content: object) -> Answer:
    return Answer(200, json.dumps(content).encode(), "application/octet-stream")


@pytest.fixture
def namenode() -> Iterator[StrangeServer]:
    script = {
        "/c?op=LISTSTATUS_BATCH": listing("metadata", "offsets", "commits"),
        "/c/offsets?op=LISTSTATUS_BATCH": listing("0", "1", ".2.uuid.tmp"),
        "/c/commits?op=LISTSTATUS_BATCH": listing("0", ".1.crc"),
        "/c/metadata?": metadata({"id": "7f"}),
    }
    with serving(script) as server:
        yield server


@pytest.fixture
def hdfs(namenode: StrangeServer) -> Iterator[Hdfs]:
    client = Hdfs((namenode.address,), ADA, Tls())
    yield client
    client.close()


@pytest.mark.parametrize(
    ("content", "query"),
    [({"id": "7f"}, "7f"), ({"ID": "7f"}, None), ({"id": ["7f"]}, None), ([], None), (7, None)],
)
def test_a_query_id_is_read_from_metadata_whatever_json_it_is(
    namenode: StrangeServer, hdfs: Hdfs, content: object, query: str | None
) -> None:
    namenode.script["/c/metadata?"] = metadata(content)
    assert hdfs.checkpoint("/c").query == query


@pytest.mark.parametrize("content", [b"[" * 100_000, b"9" * 5000, b"{", b"\xff"], ids=["deep", "long", "torn", "bytes"])
def test_metadata_that_python_does_not_read_names_no_query(namenode: StrangeServer, hdfs: Hdfs, content: bytes) -> None:
    namenode.script["/c/metadata?"] = Answer(200, content, "application/octet-stream")
    assert hdfs.checkpoint("/c").query is None


def test_a_checkpoint_of_dstreams_is_recognised_by_its_newest_file(namenode: StrangeServer, hdfs: Hdfs) -> None:
    names = ("checkpoint-1700000000000", "checkpoint-1700000010000.bk", "receivedData", "a1b2-c3d4")
    namenode.script["/c?op=LISTSTATUS_BATCH"] = listing(*names, at=5000)
    seen = hdfs.checkpoint("/c")
    assert seen.dstreams == datetime.fromtimestamp(5, UTC)
    assert seen.empty
    assert not seen.absent
    namenode.script["/c?op=LISTSTATUS_BATCH"] = listing("checkpoint-old", "checkpoint-1.bk")
    assert hdfs.checkpoint("/c").dstreams is None


def test_a_checkpoint_is_three_listings_and_its_metadata_is_read_once(namenode: StrangeServer, hdfs: Hdfs) -> None:
    first = hdfs.checkpoint("/c")
    assert (first.position.offset, first.position.commit) == (1, 0)
    namenode.requests.clear()
    assert hdfs.checkpoint("/c") == first
    assert len(namenode.requests) == 3
    assert not any("metadata" in request for request in namenode.requests)


def test_who_wrote_batches_is_read_along_and_who_wrote_anything_else_is_not(
    namenode: StrangeServer, hdfs: Hdfs
) -> None:
    assert hdfs.checkpoint("/c").writers == {"ada"}
    namenode.script["/c?op=LISTSTATUS_BATCH"] = listing("metadata", "offsets", "commits", owner="bob")
    namenode.script["/c/commits?op=LISTSTATUS_BATCH"] = listing("0", owner="mallory")
    assert hdfs.checkpoint("/c").writers == {"ada", "mallory"}


def test_a_query_has_read_what_the_plan_of_its_newest_committed_batch_says(namenode: StrangeServer, hdfs: Hdfs) -> None:
    """Batch 1 is planned, and not committed."""
    plan = b'v1\n{"batchTimestampMs":1}\n{"orders":{"0":42,"1":7}}\n{"logOffset":3}'
    namenode.script["/c/offsets/0?"] = Answer(200, plan, "application/octet-stream")
    session = ClusterSession(CLUSTER, ADA, hdfs, ResourceManager((), ADA, Tls()), KafkaEnds(ADA))
    read = SparkEngine().committed(session, hdfs.checkpoint("/c"))
    assert read == CommittedBatch(0, datetime.fromtimestamp(1, UTC), {"orders": {0: 42, 1: 7}}, reads_more=True)
    assert SparkEngine().committed(session, Checkpoint("/c", "7f", offsets={0: NOW})) is None


def test_a_defect_while_kafka_is_asked_ends_no_look(
    namenode: StrangeServer, hdfs: Hdfs, caplog: pytest.LogCaptureFixture
) -> None:
    """Here it is a principal that nobody could declare, whose name GSSAPI can't take."""
    namenode.script["/c/commits?op=LISTSTATUS_BATCH"] = listing("0", "1")
    plan = b'v1\n{"batchTimestampMs":1}\n{"orders":{"0":42}}'
    namenode.script["/c/offsets/1?"] = Answer(200, plan, "application/octet-stream")
    ends = KafkaEnds(Identity("\udcff@EXAMPLE.TEST", keytab="/no/such/keytab"))
    session = ClusterSession(CLUSTER, ADA, hdfs, ResourceManager((), ADA, Tls()), ends)
    with socket.create_server(("127.0.0.1", 0)) as broker:
        kafka = KafkaPolicy(f"127.0.0.1:{broker.getsockname()[1]}")
        (seen,) = SparkEngine().progress(session, replace(TICKET_SPEC, checkpoints=("/c",), kafka=kafka), Newest())
    assert seen.backlog is not None
    assert (seen.backlog.records, "UnicodeEncodeError" in seen.backlog.why) == (None, True)
    (record,) = (record for record in caplog.records if record.exc_info)
    assert "orders" in record.getMessage()


def test_a_checkpoint_that_was_replaced_by_another_querys_shows_it(namenode: StrangeServer, hdfs: Hdfs) -> None:
    hdfs.checkpoint("/c")
    namenode.script["/c?op=LISTSTATUS_BATCH"] = listing("metadata", "offsets", "commits", at=2000)
    namenode.script["/c/metadata?"] = metadata({"id": "another"})
    assert hdfs.checkpoint("/c").query == "another"


@pytest.mark.parametrize("odd", ["\ud800", "\0", "7" * 101])
def test_an_id_that_spark_would_not_write_is_none(namenode: StrangeServer, hdfs: Hdfs, odd: str) -> None:
    """The job's user can write anything there, and deferred tasks carry it through Airflow's database."""
    namenode.script["/c/metadata?"] = metadata({"id": odd})
    assert hdfs.checkpoint("/c").query is None


def test_a_checkpoint_that_was_deleted_is_empty_and_one_listing(namenode: StrangeServer, hdfs: Hdfs) -> None:
    hdfs.checkpoint("/c")
    gone = {"RemoteException": {"exception": "FileNotFoundException", "message": "File /c does not exist."}}
    namenode.script = {"": said(gone, 404)}
    namenode.requests.clear()
    empty = hdfs.checkpoint("/c")
    assert (empty.query, empty.offsets, empty.commits) == (None, {}, {})
    assert len(namenode.requests) == 1


def test_each_server_tells_its_own_name_for_us(namenode: StrangeServer, hdfs: Hdfs) -> None:
    namenode.script["op=GETHOMEDIRECTORY"] = said({"Path": "/user/ada"})
    assert hdfs.user() == "ada"
    users = {"/info": introduction(), "/userinfo": said({"clusterUserInfo": {"requestedUser": "svc_ada"}})}
    with ExitStack() as stack:
        server = stack.enter_context(serving(users))
        yarn = ResourceManager((server.address,), ADA, Tls())
        stack.callback(yarn.close)
        assert yarn.user() == "svc_ada"
        # Hadoop 3.3 has no outer object.
        server.script["/userinfo"] = said({"rmLoginUser": "yarn", "requestedUser": "ada"})
        assert yarn.user() == "ada"
        for nobody in ("dr.who", "UNKNOWN_USER"):
            server.script["/userinfo"] = said({"clusterUserInfo": {"requestedUser": nobody}})
            assert yarn.user() is None
        server.script["/userinfo"] = Answer(404, HTML, "text/html")
        assert yarn.user() is None
