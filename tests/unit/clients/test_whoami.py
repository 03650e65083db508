"""The user that a record names, including in a container with a random uid."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from airflow_kstream.clients.local.whoami import user_at_host


@pytest.fixture(autouse=True)
def unasked() -> Iterator[None]:
    """A process that has not asked for its user yet, and one that forgets afterwards whom the test made of it."""
    user_at_host.cache_clear()
    yield
    user_at_host.cache_clear()


def test_a_user_that_has_no_name_is_its_uid(nameless: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    assert user_at_host() == f"{os.getuid()}@{socket.gethostname()}"


def test_a_user_is_named_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "alice")
    assert user_at_host() == f"alice@{socket.gethostname()}"


def test_a_process_asks_for_its_user_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A triggerer looks at a thousand streams, and a directory service is asked over the network."""
    monkeypatch.setenv("LOGNAME", "alice")
    first = user_at_host()
    monkeypatch.setenv("LOGNAME", "bob")
    assert user_at_host() == first == f"alice@{socket.gethostname()}"
