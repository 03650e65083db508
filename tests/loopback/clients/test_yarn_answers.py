"""Answers that no ResourceManager gives, from a server on loopback: a proxy's page, another product's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.cluster import Tls
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.identity import Identity
from tests.simulated.served import Quiet, served

ACTIVE = b'{"clusterInfo": {"haState": "ACTIVE", "hadoopVersion": "3.4.3", "startedOn": 1}}'


class _Answers(Quiet):
    applications = b""
    info = ACTIVE

    def do_GET(self) -> None:
        body = self.info if self.path.endswith("/info") else self.applications
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[str]:
    with served(_Answers) as address:
        yield f"http://{address}"


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
    server: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Answers, "applications", body)
    yarn = ResourceManager((server,), Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab"), Tls())
    try:
        with pytest.raises(Unavailable, match=r"list applications tagged kstream on http://127.0.0.1.*makes no sense"):
            yarn.applications("kstream")
    finally:
        yarn.close()


@pytest.mark.parametrize("started", [b"1e30", b"-1e30", b"NaN", b'"soon"', b"[]"])
def test_a_start_that_is_no_time_is_no_active_resourcemanager(
    server: str, started: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Answers, "info", ACTIVE.replace(b'"startedOn": 1', b'"startedOn": ' + started))
    yarn = ResourceManager((server,), Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab"), Tls())
    try:
        with pytest.raises(Unavailable, match="makes no sense"):
            yarn.active()
    finally:
        yarn.close()


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
    server: str, timeouts: dict[str, object], left: timedelta | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Answers, "applications", json.dumps({"apps": {"app": [RUNNING | timeouts]}}).encode())
    yarn = ResourceManager((server,), Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab"), Tls())
    assert [app.lifetime_left for app in yarn.applications("kstream")] == [left]
    yarn.close()


def test_a_resourcemanager_that_tells_no_lifetime_limits_is_named_once(
    server: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_Answers, "applications", json.dumps({"apps": {"app": [RUNNING, RUNNING]}}).encode())
    yarn = ResourceManager((server,), Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab"), Tls())
    yarn.applications("kstream"), yarn.applications("kstream")
    assert [record.message for record in caplog.records] == [
        f"{server} tells no lifetime limits: none is known for any stream"
    ]
    yarn.close()
