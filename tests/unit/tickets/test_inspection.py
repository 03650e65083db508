"""What is read of a ticket cache, and of paths that are none. Without a KDC."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import krb5
import pytest

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.kerberos.keytabs import read
from airflow_kstream.model.errors import CredentialError
from tests.simulated.tickets import write_cache

HOUR = timedelta(hours=1)


def test_a_cache_in_memory_is_looked_into_like_any_other(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    write_cache(tmp_path / "cache", "me@R", now, now + HOUR, now + HOUR)
    tickets.copy_cache(krb5.init_context(), f"FILE:{tmp_path}/cache", "MEMORY:kstream-test")
    granting = tickets.inspect("MEMORY:kstream-test").granting
    assert granting
    assert granting == tickets.inspect(f"FILE:{tmp_path}/cache").granting
    with pytest.raises(CredentialError):
        tickets.inspect("MEMORY:nobody")


@pytest.mark.parametrize("name", ["KCM:", "KCM:0", "KEYRING:persistent:0"])
def test_a_cache_that_java_can_not_read_is_explained(name: str) -> None:
    with pytest.raises(CredentialError, match=r"is not a file, so Hadoop's and Spark's Java programs can't read it"):
        tickets.inspect(name)


def test_a_path_that_is_no_cache_is_reported_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    for name in (tmp_path / "pipe", tmp_path / "empty", tmp_path, tmp_path / "gone", f"DIR:{tmp_path}/gone", __file__):
        with pytest.raises(CredentialError, match="read the ticket cache"):
            tickets.inspect(str(name))
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "it is empty: no login has written it, or its disk was full"), (b"\x05\x02\0\0", "it is a keytab, not a")],
)
def test_what_people_take_for_a_ticket_cache_is_named_for_what_it_is(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "cache").write_bytes(content)
    with pytest.raises(CredentialError, match=why):
        tickets.inspect(str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("name", "why"),
    [("text", "does not begin like a keytab"), ("none", "No such file"), (".", "Is a directory")],
)
def test_a_file_that_is_no_keytab_is_reported_as_such(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "text").write_text("not a keytab")
    with pytest.raises(CredentialError, match=why):
        read(str(tmp_path / name))
