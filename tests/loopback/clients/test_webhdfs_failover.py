"""Two NameNodes, one of which errs or is a proxy's page: the healthy one is asked, and what all refuse names each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.waiting import at_most
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Conflict, Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from tests.simulated.strange_servers import STRANGE, Answer, StrangeServer, page, said, serving

ADA = Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab")
NOBODY = "http://127.0.0.1:1"
FILE = {"pathSuffix": "a", "modificationTime": 1, "length": 2, "type": "FILE"}
CONTENT = Answer(200, b"content", "application/octet-stream")


def java(exception: str, status: int) -> Answer:
    return said({"RemoteException": {"exception": exception, "message": "the NameNode's words"}}, status)


HEALTHY = {
    "op=GETFILESTATUS": said({"FileStatus": FILE}),
    "op=GETCONTENTSUMMARY": said({"ContentSummary": {"fileCount": 2, "directoryCount": 1, "length": 9}}),
    "op=LISTSTATUS_BATCH": page([FILE, FILE]),
    "op=OPEN": CONTENT,
    "op=MKDIRS": said({"boolean": True}),
    "op=DELETE": said({"boolean": True}),
    "op=RENAME": Answer(200, b"", "application/octet-stream"),
    "op=CANCELDELEGATIONTOKEN": Answer(200, b"", "application/octet-stream"),
    "op=RENEWDELEGATIONTOKEN": said({"long": 1000}),
}
ASK: dict[str, Callable[[Hdfs], object]] = {
    "status": lambda hdfs: hdfs.status("/a"),
    "sum up": lambda hdfs: hdfs.contents("/a"),
    "list": lambda hdfs: hdfs.list("/a"),
    "read": lambda hdfs: hdfs.read("/a"),
    "write": lambda hdfs: hdfs.write("/a", "text"),
    "make a folder": lambda hdfs: hdfs.make_folder("/a"),
    "delete": lambda hdfs: hdfs.delete("/a"),
    "rename": lambda hdfs: hdfs.rename_onto_nothing("/a", "/b"),
    "cancel a token": lambda hdfs: hdfs.cancel_token("token"),
    "renew a token": lambda hdfs: hdfs.renew_token("token"),
}


class Pair:
    """Two servers and a client of both, in this order."""

    def __init__(self, first: StrangeServer, second: StrangeServer) -> None:
        self.first, self.second = first, second
        self.hdfs = Hdfs((first.address, second.address), ADA, Tls())


@pytest.fixture
def pair() -> Iterator[Pair]:
    with serving(HEALTHY) as first, serving(HEALTHY) as second:
        to_a_datanode = {"Location": f"{second.address}/a-datanode"}
        second.script |= {"op=CREATE": Answer(307, headers=to_a_datanode), "/a-datanode": Answer(201)}
        both = Pair(first, second)
        yield both
        both.hdfs.close()


@pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
def test_one_wrong_answer_of_the_first_does_not_hide_the_healthy_second(
    pair: Pair, ask: Callable[[Hdfs], object], answer: Answer
) -> None:
    pair.first.script = {"": answer}
    ask(pair.hdfs)
    assert pair.first.requests
    assert pair.second.requests


@pytest.mark.parametrize("answer", [java("StandbyException", 403), java("RetriableException", 500)])
def test_a_namenode_that_is_not_active_sends_to_the_next(pair: Pair, answer: Answer) -> None:
    pair.first.script = {"": answer}
    assert pair.hdfs.read("/a") == "content"


def state(name: str) -> dict[str, Answer]:
    return {"/jmx": said({"beans": [{"name": "Hadoop:service=NameNode,name=NameNodeStatus", "State": name}]})}


def test_an_observer_is_not_asked_because_its_answers_may_be_old(pair: Pair) -> None:
    pair.first.script = {**state("standby"), "op=": java("StandbyException", 403)}
    pair.second.script |= state("active")
    with serving(HEALTHY | state("observer")) as observer:
        servers = (observer.address, pair.first.address, pair.second.address)
        with closing(Hdfs(servers, ADA, Tls())) as hdfs:
            for _ in range(3):
                hdfs.status("/a")
        assert [request for request in observer.requests if "op=" in request] == []
    assert len([request for request in pair.second.requests if "/jmx" in request]) == 1


@pytest.mark.parametrize("answer", [Answer(404), Answer(403), Answer(200, b"<html>", "text/html")], ids=str)
def test_what_tells_no_state_is_no_observer(pair: Pair, answer: Answer) -> None:
    pair.first.script |= {"/jmx": answer}
    with closing(Hdfs((pair.first.address, NOBODY, pair.second.address), ADA, Tls())) as hdfs:
        hdfs.status("/a")
    assert not pair.second.requests


@pytest.mark.parametrize(
    ("exception", "status", "kind"),
    [
        ("FileNotFoundException", 404, NotFound),
        ("AccessControlException", 403, Denied),
        ("FileAlreadyExistsException", 403, Conflict),
    ],
)
def test_what_the_active_namenode_refuses_is_refused_without_asking_another(
    pair: Pair, exception: str, status: int, kind: type[KstreamError]
) -> None:
    pair.first.script = {"": java(exception, status)}
    with pytest.raises(kind, match="the NameNode's words"):
        pair.hdfs.status("/a")
    assert not pair.second.requests


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (STRANGE["401"], STRANGE["403 of a proxy"], Denied),
        (STRANGE["404 of a proxy"], STRANGE["404 of a proxy"], Unavailable),
        (STRANGE["401"], java("StandbyException", 403), Unavailable),
        (STRANGE["HTML with 200"], STRANGE["truncated JSON"], Unavailable),
        (java("StandbyException", 403), java("StandbyException", 403), Unavailable),
    ],
)
def test_when_all_refuse_each_is_named_with_its_answer(
    pair: Pair, first: Answer, second: Answer, kind: type[KstreamError]
) -> None:
    pair.first.script, pair.second.script = {"": first}, {"": second}
    with pytest.raises(kind) as caught:
        pair.hdfs.status("/a")
    assert type(caught.value) is kind
    for server in (pair.first, pair.second):
        assert server.address in caught.value.message


def test_what_was_refused_earlier_is_not_told_again(pair: Pair) -> None:
    pair.first.script = {"": STRANGE["503"]}
    pair.hdfs.status("/a")
    pair.first.script, pair.second.script = {"": java("StandbyException", 403)}, {"": java("StandbyException", 403)}
    with pytest.raises(Unavailable) as caught:
        pair.hdfs.status("/a")
    assert "answered 503" not in str(caught.value)


@pytest.mark.parametrize("operation", ["op=LISTSTATUS_BATCH", "op=OPEN"])
@pytest.mark.parametrize("in_the_head", [False, True])
def test_a_byte_a_second_of_the_first_ends(operation: str, in_the_head: bool) -> None:
    slow = Answer(200, HEALTHY[operation].body * 9, HEALTHY[operation].kind, drip=0.1, dripping_head=in_the_head)
    with serving({"": slow}) as server, at_most(0.4):
        hdfs = Hdfs((server.address, NOBODY), ADA, Tls())
        with pytest.raises(Unavailable, match=r"its answer was not complete after 0\.4 s"):
            hdfs.list("/a") if operation == "op=LISTSTATUS_BATCH" else hdfs.read("/a")
        hdfs.close()


def test_a_byte_a_second_of_the_first_does_not_hide_the_healthy_second() -> None:
    with serving({"": Answer(200, b"x" * 100, drip=0.1)}) as first, serving(HEALTHY) as second, at_most(0.4):
        hdfs = Hdfs((first.address, second.address), ADA, Tls())
        assert hdfs.status("/a").length == 2
        hdfs.close()


FAR_AHEAD = datetime(2098, 1, 1, tzinfo=UTC)


def test_only_an_active_namenodes_clock_counts(pair: Pair) -> None:
    ahead = {"Date": "Thu, 01 Jan 2099 00:00:00 GMT"}
    pair.first.script = {"": replace(STRANGE["503"], headers=ahead)}
    assert pair.hdfs.now() < FAR_AHEAD
    pair.first.script = {"": replace(java("StandbyException", 403), headers=ahead)}
    pair.hdfs.status("/a")
    assert pair.hdfs.now() < FAR_AHEAD


def test_a_datanodes_clock_does_not_count(pair: Pair) -> None:
    ahead = {"Date": "Thu, 01 Jan 2099 00:00:00 GMT"}
    pair.second.script["/a-datanode"] = replace(CONTENT, headers=ahead)
    pair.first.script["op=OPEN"] = Answer(307, headers={"Location": f"{pair.second.address}/a-datanode"})
    assert pair.hdfs.read("/a") == "content"
    assert pair.hdfs.now() < FAR_AHEAD
