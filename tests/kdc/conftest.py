"""A real KDC and nothing else: no HDFS, no YARN."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.minicluster.kdc import Kdc
from airflow_kstream.model.kerberos.identity import Identity
from tests.commands import TicketCommands
from tests.kdc.logins import connection, login
from tests.live.realms import realm, using


@pytest.fixture(scope="session")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """One realm for all tests of this worker: a test that changes a key or a limit has a principal of its own."""
    with realm(tmp_path_factory.mktemp("realm")) as kdc:
        yield kdc


@pytest.fixture(autouse=True)
def in_the_realm(kdc: Kdc) -> Iterator[None]:
    """Make this process use the realm during the test alone: others on this worker use a minicluster's."""
    with using(str(kdc.folders.krb5_conf)):
        yield


@pytest.fixture
def edge(kdc: Kdc) -> Identity:
    return login(kdc, "streamer")


@pytest.fixture
def cache(edge: Identity, tmp_path: Path) -> Path:
    """A cache with a ticket of `edge`, in a folder of its own."""
    path = tmp_path / "caches" / "edge"
    tickets.acquire(edge, path)
    return path


@pytest.fixture
def kstream(kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TicketCommands:
    """`kstream tickets` at a pipe's width, for a cluster that has a KDC and nothing else."""
    monkeypatch.setenv("COLUMNS", "80")
    commands = TicketCommands(tmp_path)
    commands.cluster(connection(kdc, "watcher"))
    commands.declaration()
    return commands
