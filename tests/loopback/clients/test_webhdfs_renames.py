"""A rename's answer is proven, not believed: what a NameNode, HttpFS and a proxy say to it, from a server on loopback.

Simulated, because a real HttpFS is no part of the minicluster; the answers are those of its source: HttpFSServer hands
RENAME to FSOperations.FSRename, which knows no options and answers 200 with a boolean.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.cluster import Tls
from airflow_kstream.model.errors import Conflict, InvalidInput, Unavailable
from airflow_kstream.model.identity import Identity
from tests.simulated.served import Quiet, served

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


class _Answers(Quiet):
    body = OF_A_NAMENODE

    def do_PUT(self) -> None:
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)


@pytest.fixture
def server() -> Iterator[str]:
    with served(_Answers) as address:
        yield f"http://{address}"


@pytest.fixture
def hdfs(server: str) -> Iterator[Hdfs]:
    client = Hdfs(("http://127.0.0.1:1", server), ADA, Tls())
    yield client
    client.close()


def answer_with(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Answers, "body", body)


def test_a_namenode_answers_without_a_word(hdfs: Hdfs) -> None:
    hdfs.rename_onto_nothing("/a", "/b")
    hdfs.rename_over("/a", "/b")


@pytest.mark.parametrize("body", [TRUE_OF_HTTPFS, FALSE_OF_HTTPFS])
def test_a_server_that_ignores_the_options_grants_nothing_and_is_named(
    hdfs: Hdfs, server: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(body, monkeypatch)
    with pytest.raises(InvalidInput, match=r"HttpFS.*name the NameNodes.*Retrying will not help") as refused:
        hdfs.rename_onto_nothing("/a", "/b")
    assert refused.value.server == server


def test_a_false_is_no_replacement(hdfs: Hdfs, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(TRUE_OF_HTTPFS, monkeypatch)
    hdfs.rename_over("/a", "/b")
    answer_with(FALSE_OF_HTTPFS, monkeypatch)
    with pytest.raises(Conflict, match="200 and false: nothing was renamed") as refused:
        hdfs.rename_over("/a", "/b")
    assert refused.value.server == server


@pytest.mark.parametrize("body", NONSENSE)
def test_a_page_with_status_200_is_no_rename(hdfs: Hdfs, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(body, monkeypatch)
    for rename in (hdfs.rename_onto_nothing, hdfs.rename_over):
        with pytest.raises(Unavailable, match="makes no sense"):
            rename("/a", "/b")
