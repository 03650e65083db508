"""A NameNode that keeps no ACLs: it refuses to tell one. Hadoop 3.3 and later keep them unless they are told not to."""

from __future__ import annotations

from contextlib import closing

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from tests.simulated.strange_servers import Answer, said, serving

ADA = Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab")


def refused(exception: str, message: str) -> Answer:
    return said({"RemoteException": {"exception": exception, "message": message}}, 403)


def acl_from(answer: Answer) -> tuple[str, ...] | None:
    with serving({"op=GETACLSTATUS": answer}) as server, closing(Hdfs((server.address,), ADA, Tls())) as hdfs:
        return hdfs.acl("/kstream")


def test_a_namenode_without_acls_has_none_to_tell() -> None:
    words = "Support for ACLs has been disabled by setting dfs.namenode.acls.enabled to false."
    assert acl_from(refused("AclException", words)) is None


def test_another_refusal_is_one() -> None:
    with pytest.raises(InvalidInput):
        acl_from(refused("IllegalArgumentException", "Invalid value for webhdfs parameter"))
