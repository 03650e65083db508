"""What a round over many streams asks of the servers: real clients, counted at two servers on loopback.

Before the folder was listed once, the lifetime limit came with the listing and a checkpoint's metadata was remembered,
a stream cost 7 requests a round (4 listings, 2 for the metadata, 1 for its lifetime limit), and 2 went to a DataNode
and the ResourceManager.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.kafka_ends import KafkaEnds
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.clusters.authors import ALL_STREAMS, order_name
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.streams.contract import claim_file, fence_name
from airflow_kstream.model.streams.freeze import Freeze
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream_policies import RestartPolicy
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft, written_claim, written_freeze
from airflow_kstream.supervise.streams.look.watch import Subject, Watch
from tests.simulated.servers import CLUSTER
from tests.simulated.strange_servers import NOW, Answer, StrangeServer, introduction, page, said, serving
from tests.simulated.yarn import TICKET_SPEC

STREAMS = 5
MILLIS = NOW.timestamp() * 1000
STATE_DIR = f"{CLUSTER.state_dir}?op=LISTSTATUS_BATCH"


def listing(*names: str, **more: object) -> Answer:
    return page([{"pathSuffix": name, **status(**more)} for name in names])


def status(**more: object) -> dict[str, object]:
    return {"modificationTime": MILLIS, "length": 1, "owner": "streamer", "type": "FILE", **more}


def content(text: str) -> Answer:
    return Answer(200, text.encode(), "application/octet-stream")


def state_dir() -> dict[str, Answer]:
    """Script a state_dir in which nobody gave an order, and whose supervisors are."""
    return {
        STATE_DIR: listing(),
        "/v1/?op=GETFILESTATUS": said({"FileStatus": status(owner="hdfs", type="DIRECTORY")}),
        f"{CLUSTER.state_dir}?op=GETFILESTATUS": said({"FileStatus": status(type="DIRECTORY")}),
    }


def ordered(*texts: str) -> dict[str, Answer]:
    """Script a folder of a supervisor's orders on the brake, given a minute ago."""
    folder = f"{CLUSTER.state_dir}/orders.streamer"
    files = {order_name(ALL_STREAMS, number): text for number, text in enumerate(texts, start=1)}
    return {
        STATE_DIR: listing("orders.streamer", type="DIRECTORY", modificationTime=MILLIS - 60_000),
        f"{folder}?op=LISTSTATUS_BATCH": listing(*files),
        **{f"{folder}/{name}?offset": content(text) for name, text in files.items()},
    }


def namenode_of(name: str) -> dict[str, Answer]:
    """Script what the NameNode has of one stream: its folder with a claim, and its checkpoint."""
    folder, checkpoint = StreamId(name, CLUSTER.state_dir).folder, f"/data/{name}"
    spec = replace(TICKET_SPEC, name=name, checkpoints=(checkpoint,), restart=RestartPolicy(jitter_ratio=0))
    lifetimes = TokenLifetimes(timedelta(days=1), timedelta(days=7))
    draft = ClaimDraft(1, "nonce", spec, lifetimes, positions={}, reason="a test")
    return {
        f"{folder}?op=LISTSTATUS_BATCH": listing(claim_file(1), fence_name(1, "nonce"), "started-000001"),
        f"{folder}/{claim_file(1)}?offset": content(written_claim(draft, "somebody")),
        f"{folder}/{claim_file(1)}?op=GETFILESTATUS": said({"FileStatus": status()}),
        f"{checkpoint}?op=LISTSTATUS_BATCH": listing("metadata", "offsets", "commits"),
        f"{checkpoint}/offsets?op=LISTSTATUS_BATCH": listing("0", "1"),
        f"{checkpoint}/commits?op=LISTSTATUS_BATCH": listing("0", "1"),
        f"{checkpoint}/metadata?": content(json.dumps({"id": "query"})),
    }


def application_of(name: str) -> dict[str, object]:
    tags = StreamId(name, CLUSTER.state_dir).tags(1)
    app = {"id": f"application_1_{name}", "state": "RUNNING", "user": "streamer", "startedTime": MILLIS}
    return app | {"applicationTags": ",".join(tags), "timeouts": {"timeout": []}}


class Counted:
    """A watch over streams on a NameNode and a ResourceManager that count."""

    def __init__(self, namenode: StrangeServer, resourcemanager: StrangeServer) -> None:
        self.namenode, self.resourcemanager = namenode, resourcemanager
        self.names = [f"s{number}" for number in range(STREAMS)]
        hdfs = Hdfs((namenode.address,), CLUSTER.watcher, Tls())
        yarn = ResourceManager((resourcemanager.address,), CLUSTER.watcher, Tls())
        self.session = ClusterSession(CLUSTER, CLUSTER.watcher, hdfs, yarn, KafkaEnds(CLUSTER.watcher))
        self.watch = Watch(self.session)

    def round(self) -> Counter[str]:
        """Count the requests of one round by their kind."""
        self.namenode.requests.clear()
        self.resourcemanager.requests.clear()
        verdicts = self.watch.round(self.names)
        assert {verdict.why for verdict in verdicts.values()} == {
            f"application_1_{name} is RUNNING" for name in self.names
        }
        operations = [request.partition("op=")[2].partition("&")[0] for request in self.namenode.requests]
        return Counter([*operations, *("ResourceManager" for _ in self.resourcemanager.requests)])


@pytest.fixture
def counted() -> Iterator[Counted]:
    names = [f"s{number}" for number in range(STREAMS)]
    files = state_dir() | {path: answer for name in names for path, answer in namenode_of(name).items()}
    applications = {"/info": introduction(), "/apps": said({"apps": {"app": [application_of(name) for name in names]}})}
    with ExitStack() as stack:
        counted = Counted(stack.enter_context(serving(files)), stack.enter_context(serving(applications)))
        stack.callback(counted.session.hdfs.close)
        stack.callback(counted.session.yarn.close)
        yield counted


def test_a_round_costs_two_requests_for_all_streams_and_four_listings_for_each(counted: Counted) -> None:
    counted.round()
    assert counted.round() == {"ResourceManager": 1, "LISTSTATUS_BATCH": 1 + 4 * STREAMS}, "one more for all"


def test_a_freeze_is_read_once_and_its_folder_listed_once(counted: Counted) -> None:
    word = Freeze(1, NOW + timedelta(hours=4), "ada (HDFS user streamer)", "a new NameNode")
    counted.namenode.script |= ordered(written_freeze(word.until, "ada", word.reason, "nonce"))
    assert counted.round()["OPEN"] == 2 * STREAMS + 1
    assert counted.round() == {"ResourceManager": 1, "LISTSTATUS_BATCH": 1 + 4 * STREAMS}
    assert {verdict.people.freeze for verdict in counted.watch.round(counted.names).values()} == {str(word)}


def test_nobody_sees_a_stream_while_the_freeze_cannot_be_read(counted: Counted) -> None:
    counted.round()
    counted.namenode.script |= {STATE_DIR: Answer(503, b"")}
    verdicts = counted.watch.round(counted.names)
    assert all(verdict.step is None and verdict.shared for verdict in verdicts.values()), verdicts


def test_namenodes_that_fall_silent_in_a_round_are_asked_once_more(counted: Counted) -> None:
    """Not once for each of a thousand streams, each of which would wait for 50 seconds."""
    counted.round()
    looks = counted.watch.looks([Subject(name) for name in counted.names])
    assert next(looks)[1].step
    counted.namenode.script = {"": Answer(503, b"")}
    counted.namenode.requests.clear()
    rest = dict(looks)
    assert list(rest) == counted.names[1:]
    assert all(verdict.step is None and verdict.shared for verdict in rest.values())
    asked = [request for request in counted.namenode.requests if counted.names[1] not in request]
    assert {request.partition("?")[0] for request in asked} == {f"GET /webhdfs/v1{CLUSTER.state_dir}"}


def test_a_stream_whose_files_alone_cannot_be_read_ends_no_round(counted: Counted) -> None:
    counted.round()
    counted.namenode.script |= {f"/data/{counted.names[1]}/commits?op=LISTSTATUS_BATCH": Answer(503, b"")}
    verdicts = counted.watch.round(counted.names)
    assert [name for name, verdict in verdicts.items() if verdict.step is None] == [counted.names[1]]


def test_the_first_round_reads_claims_and_metadata_once(counted: Counted) -> None:
    first = counted.round()
    assert first["OPEN"] == 2 * STREAMS
    assert first["ResourceManager"] == 2, "who is active, and the applications"


@pytest.mark.parametrize(
    "info",
    [introduction("INITIALIZING"), introduction(since=NOW - timedelta(seconds=30)), Answer(503, b"")],
    ids=["it recovers", "it took over a moment ago", "it is away"],
)
def test_a_resourcemanager_that_lost_its_applications_from_sight_is_no_conclusion(
    counted: Counted, info: Answer
) -> None:
    counted.round()
    hour_later = {"Date": format_datetime(NOW + timedelta(hours=1), usegmt=True)}
    for path, answer in counted.namenode.script.items():
        assert isinstance(answer, Answer)
        counted.namenode.script[path] = replace(answer, headers=hour_later)
    counted.resourcemanager.script = {"/apps": said({"apps": None}), "/info": info}
    verdicts = counted.watch.round(counted.names)
    assert all(verdict.step is None for verdict in verdicts.values()), verdicts


def test_a_resourcemanager_that_is_away_is_no_dead_stream(counted: Counted) -> None:
    counted.round()
    lists = counted.resourcemanager.script
    counted.resourcemanager.script = {"": Answer(503, b"")}
    away = counted.watch.round(counted.names)
    assert all(verdict.step is None and verdict.shared for verdict in away.values())
    assert all("Retrying may help" in verdict.why for verdict in away.values())
    counted.resourcemanager.script = lists
    counted.round()
