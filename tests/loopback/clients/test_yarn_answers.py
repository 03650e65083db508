"""Answers that no ResourceManager gives, from a server on loopback: a proxy's page, another product's JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from tests.simulated.strange_servers import Answer, StrangeServer, said, serving

ACTIVE = b'{"clusterInfo": {"haState": "ACTIVE", "hadoopVersion": "3.4.3", "startedOn": 1}}'


@pytest.fixture
def server() -> Iterator[StrangeServer]:
    with serving({"/info": Answer(200, ACTIVE)}) as server:
        yield server


@pytest.fixture
def yarn(server: StrangeServer) -> Iterator[ResourceManager]:
    yarn = ResourceManager((server.address,), Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab"), Tls())
    yield yarn
    yarn.close()


@pytest.mark.parametrize(
    "body",
    [
        b'{"apps": {"app": [{"name": "no id"}]}}',
        b'{"apps": {"app": [{"id": "a", "state": "ON HOLIDAY"}]}}',
        b'{"apps": {"app": [{"id": "a", "state": "RUNNING", "startedTime": 1e30}]}}',
        b'{"apps": {"app": [{"id": "a", "state": "RUNNING", "startedTime": "soon"}]}}',
        b'{"apps": [' * 100_000,
        b"{",
        b"[]",
        b"7",
    ],
)
def test_json_of_another_shape_proves_nothing_about_any_application(
    server: StrangeServer, yarn: ResourceManager, body: bytes
) -> None:
    server.script["/apps"] = Answer(200, body)
    with pytest.raises(Unavailable, match=r"list applications tagged kstream on http://127.0.0.1.*makes no sense"):
        yarn.applications("kstream")


@pytest.mark.parametrize("started", [b"1e30", b"-1e30", b"NaN", b'"soon"', b"[]"])
def test_a_start_that_is_no_time_is_no_active_resourcemanager(
    server: StrangeServer, yarn: ResourceManager, started: bytes
) -> None:
    server.script["/info"] = Answer(200, ACTIVE.replace(b'"startedOn": 1', b'"startedOn": ' + started))
    with pytest.raises(Unavailable, match="makes no sense"):
        yarn.active()


RUNNING = {"id": "a", "state": "RUNNING", "startedTime": 1}
LIMITED = {"type": "LIFETIME", "expiryTime": "2026-01-01T00:10:00.000+0000", "remainingTimeInSeconds": 600}
UNLIMITED = {"type": "LIFETIME", "expiryTime": "UNLIMITED", "remainingTimeInSeconds": -1}


@pytest.mark.parametrize(
    ("timeouts", "left"),
    [
        ({"timeouts": {"timeout": [LIMITED]}}, timedelta(minutes=10)),
        ({"timeouts": {"timeout": [UNLIMITED]}}, None),
        ({"timeouts": {"timeout": []}}, None),
        ({"timeouts": None}, None),
        ({}, None),
    ],
)
def test_yarns_lifetime_limit_is_part_of_the_listing(
    server: StrangeServer, yarn: ResourceManager, timeouts: dict[str, object], left: timedelta | None
) -> None:
    server.script["/apps"] = said({"apps": {"app": [RUNNING | timeouts]}})
    assert [app.lifetime_left for app in yarn.applications("kstream")] == [left]


def test_a_resourcemanager_that_tells_no_lifetime_limits_is_named_once(
    server: StrangeServer, yarn: ResourceManager, caplog: pytest.LogCaptureFixture
) -> None:
    server.script["/apps"] = said({"apps": {"app": [RUNNING, RUNNING]}})
    yarn.applications("kstream"), yarn.applications("kstream")
    assert [record.message for record in caplog.records] == [
        f"{server.address} tells no lifetime limits: none is known for any stream"
    ]
