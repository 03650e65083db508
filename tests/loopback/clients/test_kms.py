"""A KMS that refuses, answers strangely or is down.

How a real one answers is the business of tests/slow/clusters/three_datanodes/test_encryption_zones.py.
"""

from __future__ import annotations

import pytest

from airflow_kstream.clients.kms import Kms, is_in_clear
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Denied, InvalidInput, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from tests.simulated.strange_servers import STRANGE, Answer, said, serving

ETL = Identity("etl@EXAMPLE.COM", keytab="/no/such/keytab")


def kms(address: str) -> Kms:
    return Kms(f"kms://http@{address.removeprefix('http://')}/kms", ETL, Tls())


def test_a_kms_says_itself_why_it_refuses() -> None:
    refusal = said({"RemoteException": {"message": "User: etl is not allowed to impersonate root"}}, 403)
    with (
        serving({"/kms/v1/": refusal}) as server,
        pytest.raises(Denied, match="not allowed to impersonate root") as error,
    ):
        kms(server.address).mint()
    assert error.value.server == f"{server.address}/kms"
    assert error.value.principal == str(ETL)


@pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE.keys())
def test_what_no_kms_answers_is_an_error_of_ours(answer: Answer) -> None:
    with serving({"": answer}) as server, pytest.raises((Denied, Unavailable, InvalidInput)):
        kms(server.address).mint()


def test_hosts_that_are_down_are_all_named() -> None:
    with pytest.raises(Unavailable) as error:
        Kms("kms://http@localhost;127.0.0.1:1/kms", ETL, Tls()).mint()
    assert "http://localhost:1/kms, http://127.0.0.1:1/kms" in error.value.server
    assert error.value.retryable


def test_a_secret_is_in_no_error() -> None:
    token = {"Token": {"urlString": "c2VjcmV0"}}
    with serving({"op=GETDELEGATIONTOKEN": said(token)}) as server, pytest.raises(InvalidInput) as error:
        kms(server.address).mint()
    assert "c2VjcmV0" not in str(error.value)


@pytest.mark.parametrize("address", ["kms://ftp@host/kms", "kms://http@/kms", "kms://host:1/kms", "kms://http@h:x/kms"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="is not an address of a KMS"):
        Kms(address, ETL, Tls()).mint()


def test_tls_decides_whether_its_tokens_cross_in_clear() -> None:
    assert is_in_clear("kms://http@host:9600/kms")
    assert not is_in_clear("kms://https@host:9600/kms")
    assert not is_in_clear("")
