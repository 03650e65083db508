"""A Hadoop exception means the same, regardless of the protocol that brings it."""

from __future__ import annotations

import pytest
from hdfs.util import HdfsError

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.rpc.connection import RemoteError, Terms
from airflow_kstream.clients.rpc.failover import ActiveServer
from airflow_kstream.clients.rpc.java_exceptions import ERRORS, error_of, simple_name
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

NOBODY = Identity("nobody@NOWHERE.TEST", keytab="/nonexistent")
UNKNOWN = "SomethingNewException"


def over_rpc(java_class: str) -> KstreamError:
    namenode = ActiveServer(("nn.test:8020",), NOBODY, Terms("protocol", "nn/_HOST@NOWHERE.TEST", (), 1.0, 1.0))
    return namenode.error(RemoteError(java_class, "words"), "ask")


def over_webhdfs(java_class: str) -> KstreamError:
    hdfs = Hdfs(("http://nn.test",), NOBODY, Tls())

    def refused() -> None:
        raise HdfsError("words", exception=java_class)

    with pytest.raises(KstreamError) as caught:
        hdfs._ask("ask", refused)
    return caught.value


@pytest.mark.parametrize("java_class", sorted([*ERRORS, UNKNOWN]))
def test_an_exception_is_one_error_however_it_comes(java_class: str) -> None:
    assert {type(over_rpc(java_class)), type(over_webhdfs(java_class))} == {error_of(java_class)}


def test_a_class_is_known_without_its_package_and_the_class_around_it() -> None:
    inner = "security.token.SecretManager$InvalidToken"
    assert (simple_name(inner), error_of(inner)) == ("InvalidToken", error_of("InvalidToken"))


def test_an_unknown_exception_proves_nothing() -> None:
    assert error_of(UNKNOWN) is Unavailable
