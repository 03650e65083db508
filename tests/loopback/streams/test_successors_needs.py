"""What a successor needs is asked before its predecessor is stopped: queue, files, checkpoints.

Simulated servers, because a queue that drains and a folder that refuses are wanted by the moment; what the real
ResourceManager's page and the real NameNode say is the business of tests/real/cluster/test_successor.py.
"""

from __future__ import annotations

import pytest

from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.clients.yarn_rpc import ResourceManagerRpc
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.formats.protobuf import Message, encode
from tests.simulated.servers import CLUSTER
from tests.simulated.strange_servers import STRANGE, Answer, introduction, said, serving


@pytest.mark.parametrize("answer", [*STRANGE.values(), said({"scheduler": {"schedulerInfo": {}}})])
def test_a_strange_page_of_the_scheduler_is_no_queue(answer: Answer) -> None:
    with serving({"/info": introduction(), "/scheduler": answer}) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls())
        with pytest.raises((Unavailable, Denied, NotFound)):
            yarn.queues()
        yarn.close()


class Rpc(ResourceManagerRpc):
    """The RPC of a ResourceManager that gives this answer. Simulated: a real one begins with a Kerberos login, and is
    of one release; tests/contract asks it."""

    servers = "rm:8032"

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    def _call(self, tried: str, method: str, request: bytes) -> Message:
        assert (method, request) == ("getQueueUserAcls", b"")
        return Message(self.answer)


def queue(name: str, *acls: int) -> bytes:
    return encode({1: name, 2: acls})


def test_either_of_two_rights_lets_a_user_submit() -> None:
    queues = (queue("root"), queue("root.a", 1), queue("root.b", 2), queue("root.c", 1, 2))
    assert Rpc(encode({1: queues})).queue_rights() == {"root": False, "root.a": True, "root.b": True, "root.c": True}


def test_one_of_two_queues_by_a_name_is_enough() -> None:
    assert Rpc(encode({1: (queue("a", 1), queue("a"))})).queue_rights() == {"a": True}


def test_an_answer_without_queues_tells_of_none() -> None:
    assert Rpc(b"").queue_rights() == {}


@pytest.mark.parametrize("answer", [encode({1: b"\xff"}), encode({1: (encode({1: 7}),)})])
def test_strange_bytes_tell_no_rights(answer: bytes) -> None:
    with pytest.raises(Unavailable, match="ask which queues take our applications on rm:8032: its answer makes no"):
        Rpc(answer).queue_rights()


def test_a_connection_without_rpc_tells_no_rights() -> None:
    yarn = ResourceManager(("http://127.0.0.1:9",), CLUSTER.watcher, Tls())
    with pytest.raises(InvalidInput, match="no hadoop_conf_dir"):
        yarn.queue_rights()
    yarn.close()


def acl_enable(*values: str) -> Answer:
    return said({"properties": [{"key": "yarn.acl.enable", "value": value, "resource": "x"} for value in values]})


@pytest.mark.parametrize(
    ("answer", "checked"),
    [(acl_enable("true"), True), (acl_enable("TRUE "), True), (acl_enable("false"), False), (acl_enable(), False)],
)
def test_a_server_says_whether_it_looks_at_acls(answer: Answer, checked: bool) -> None:
    with serving({"/info": introduction(), "/conf": answer}) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls())
        assert yarn.checks_rights() is checked
        yarn.close()


@pytest.mark.parametrize("answer", STRANGE.values())
def test_a_strange_configuration_does_not_say_whether_acls_count(answer: Answer) -> None:
    with serving({"/info": introduction(), "/conf": answer}) as server:
        yarn = ResourceManager((server.address,), CLUSTER.watcher, Tls())
        with pytest.raises(KstreamError):
            yarn.checks_rights()
        yarn.close()
