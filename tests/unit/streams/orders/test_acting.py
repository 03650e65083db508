"""The identity with which stop and hold act while the stream's own keytab is bad."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import CredentialError, Denied
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.stream import KeytabCredentials, TicketCredentials
from airflow_kstream.supervise.streams.orders.desired import open_as_stream
from tests.simulated.yarn import TICKET_SPEC

WATCHER = Identity("watcher@EXAMPLE.TEST", keytab="/no/such/watcher.keytab")
CLUSTER = Cluster("prod", ("http://rm:1",), ("http://nn:1",), "hdfs://nn", WATCHER, "/kstream")


def test_a_stream_whose_keytab_is_bad_is_acted_on_as_the_connection(tmp_path: Path) -> None:
    (tmp_path / "a.keytab").write_bytes(b"rubbish")
    spec = replace(TICKET_SPEC, credentials=KeytabCredentials("ada@EXAMPLE.TEST", str(tmp_path / "a.keytab")))
    lines: list[str] = []
    with open_as_stream(CLUSTER, spec, lines.append) as session:
        assert session.identity == WATCHER
    assert str(tmp_path / "a.keytab") in lines[0]
    assert "going on as watcher@EXAMPLE.TEST" in lines[0]


def test_what_the_connection_may_not_do_names_the_keytab_to_be_repaired() -> None:
    spec = replace(TICKET_SPEC, credentials=KeytabCredentials("ada@EXAMPLE.TEST", "/no/such/a.keytab"))
    with (
        pytest.raises(CredentialError, match=r"/no/such/a\.keytab.*watcher@EXAMPLE\.TEST may not: it has no right"),
        open_as_stream(CLUSTER, spec, lambda line: None),
    ):
        raise Denied("it has no right")


def test_a_stream_that_logs_in_as_the_connection_acts_as_that_at_once() -> None:
    spec = replace(TICKET_SPEC, credentials=TicketCredentials())
    lines: list[str] = []
    with open_as_stream(CLUSTER, spec, lines.append) as session:
        assert session.identity == WATCHER
    assert lines == []
