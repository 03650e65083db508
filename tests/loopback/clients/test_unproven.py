"""Web servers that want no proof of who asks, from a server on loopback: one request without a login tells.

The answers are those that Hadoop 3.4 gives with other settings (tests/slow/clusters/test_web_without_kerberos.py).
"""

from __future__ import annotations

import pytest

from airflow_kstream.clients.server_conf import open_namenode, open_nodemanager
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.clusters.cluster_facts import OpenWeb
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from tests.simulated.strange_servers import HTML, STRANGE, Answer, said, serving

ADA = Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab")
KERBEROS = Answer(401, HTML, "text/html", {"WWW-Authenticate": "Negotiate"})
A_NAME = Answer(401, HTML, "text/html", {"WWW-Authenticate": "PseudoAuth"})
NAMELESS = said(
    {
        "RemoteException": {
            "exception": "SecurityException",
            "message": "Failed to obtain user group information: java.io.IOException: Security enabled but user not "
            "authenticated by filter",
        }
    },
    403,
)
STANDBY = said({"RemoteException": {"exception": "StandbyException", "message": "not supported in state standby"}}, 403)
CLOSED = [KERBEROS, *(answer for name, answer in STRANGE.items() if name != "broken gzip")]


@pytest.mark.parametrize(("answer", "user"), [(said({"Path": "/user/dr.who"}), "dr.who"), (A_NAME, ""), (NAMELESS, "")])
def test_webhdfs_is_open_that_takes_a_caller_without_a_login_or_wants_a_name_alone(answer: Answer, user: str) -> None:
    with serving({"/webhdfs/v1/": answer}) as server:
        assert open_namenode(f"{server.address}/", ADA, Tls()) == OpenWeb(server.address, user)


@pytest.mark.parametrize("answer", [said({"nodeInfo": {"id": "nm1:8041"}}), A_NAME])
def test_a_nodemanager_is_open_that_tells_a_caller_without_a_login(answer: Answer) -> None:
    with serving({"/ws/v1/node/info": answer}) as server:
        assert open_nodemanager(server.address, ADA, Tls()) == OpenWeb(server.address)


@pytest.mark.parametrize("answer", [*CLOSED, STANDBY])
def test_what_demands_a_ticket_or_is_no_answer_of_hadoop_is_not_called_open(answer: Answer) -> None:
    with serving({"": answer}) as server:
        assert open_namenode(server.address, ADA, Tls()) is None
        assert open_nodemanager(server.address, ADA, Tls()) is None


def test_neither_a_redirection_nor_a_proxy_answers_for_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    everybody = said({"Path": "/user/dr.who", "nodeInfo": {"id": "nm1:8041"}})
    with serving({"": everybody}) as other:
        monkeypatch.setenv("http_proxy", other.address)
        elsewhere = Answer(307, headers={"Location": f"{other.address}/webhdfs/v1/"})
        for answer in (elsewhere, KERBEROS):
            with serving({"": answer}) as server:
                assert open_namenode(server.address, ADA, Tls()) is None
                assert open_nodemanager(server.address, ADA, Tls()) is None
        assert other.requests == []


def test_a_server_that_is_away_is_not_called_open() -> None:
    for ask in (open_namenode, open_nodemanager):
        with pytest.raises(Unavailable, match="refused"):
            ask("http://127.0.0.1:1", ADA, Tls())
