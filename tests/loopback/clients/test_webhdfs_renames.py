"""A rename's answer is proven, not believed: what a NameNode, HttpFS and a proxy say to it, from a server on loopback.

Simulated, because a real HttpFS is not part of the minicluster; the answers are those of its source: HttpFSServer hands
RENAME to FSOperations.FSRename, which knows no options and answers 200 with a boolean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Conflict, InvalidInput, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from tests.simulated.strange_servers import Answer, StrangeServer, serving

ADA = Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab")
OF_A_NAMENODE = b""
TRUE_OF_HTTPFS, FALSE_OF_HTTPFS = b'{"boolean":true}', b'{"boolean":false}'
NONSENSE = [
    b"<html>Welcome to the proxy</html>",
    b"{}",
    b'{"boolean": "yes"}',
    b'{"boolean": null}',
    b'{"boolean": 0}',
    b"[]",
    b"true",
]


@pytest.fixture
def server() -> Iterator[StrangeServer]:
    with serving({"": Answer(200, OF_A_NAMENODE)}) as server:
        yield server


@pytest.fixture
def hdfs(server: StrangeServer) -> Iterator[Hdfs]:
    client = Hdfs(("http://127.0.0.1:1", server.address), ADA, Tls())
    yield client
    client.close()


def test_a_namenode_answers_without_a_word(hdfs: Hdfs, server: StrangeServer) -> None:
    hdfs.rename_onto_nothing("/a", "/b")
    hdfs.rename_over("/a", "/b")
    renames = [request for request in server.requests if "op=RENAME" in request]
    assert [re.search("renameoptions=([A-Z]+)", request)[1] for request in renames] == ["NONE", "OVERWRITE"]  # type: ignore[index]


@pytest.mark.parametrize("body", [TRUE_OF_HTTPFS, FALSE_OF_HTTPFS])
def test_a_server_that_ignores_the_options_grants_nothing_and_is_named(
    hdfs: Hdfs, server: StrangeServer, body: bytes
) -> None:
    server.script = {"": Answer(200, body)}
    with pytest.raises(InvalidInput, match=r"HttpFS.*name the NameNodes.*Retrying will not help") as refused:
        hdfs.rename_onto_nothing("/a", "/b")
    assert refused.value.server == server.address


def test_a_false_is_no_replacement(hdfs: Hdfs, server: StrangeServer) -> None:
    server.script = {"": Answer(200, TRUE_OF_HTTPFS)}
    hdfs.rename_over("/a", "/b")
    server.script = {"": Answer(200, FALSE_OF_HTTPFS)}
    with pytest.raises(Conflict, match="200 and false: nothing was renamed") as refused:
        hdfs.rename_over("/a", "/b")
    assert refused.value.server == server.address


@pytest.mark.parametrize("body", NONSENSE)
def test_a_page_with_status_200_is_no_rename(hdfs: Hdfs, server: StrangeServer, body: bytes) -> None:
    server.script = {"": Answer(200, body)}
    for rename in (hdfs.rename_onto_nothing, hdfs.rename_over):
        with pytest.raises(Unavailable, match=r"makes no sense|an HTML page"):
            rename("/a", "/b")
