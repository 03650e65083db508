"""Keytab files: read as they are written, and refused in words when they are not whole."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

import pytest

from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.formats.keytab import read_entries
from airflow_kstream.model.kerberos.keytab import KeytabFile
from tests.simulated.keytabs import AES128, AES256, Key, keytab_bytes


def keytab(*keys: Key) -> KeytabFile:
    return KeytabFile("/s.keytab", 0o600, "streamer", read_entries(keytab_bytes(*keys)))


def test_an_entry_contains_everything_but_its_key() -> None:
    (entry,) = read_entries(keytab_bytes(Key(3, secret=b"very secret bytes", name=("streamer", "edge.kstream.test"))))
    assert (entry.principal, entry.kvno, entry.enctype) == ("streamer/edge.kstream.test@KSTREAM.TEST", 3, AES256)
    assert entry.stamped == datetime.fromtimestamp(1_700_000_000, UTC)
    assert "secret" not in repr(entry)


def test_a_version_beyond_255_is_read_from_behind_the_key() -> None:
    assert read_entries(keytab_bytes(Key(300)))[0].kvno == 300
    assert read_entries(keytab_bytes(Key(7), long_kvno=False))[0].kvno == 7


def test_the_hole_of_a_deleted_entry_is_skipped() -> None:
    content = keytab_bytes(Key(1))
    hole = struct.pack(">i", -20) + bytes(20)
    assert [entry.kvno for entry in read_entries(content[:2] + hole + content[2:])] == [1]


def test_the_newest_version_is_the_one_that_counts() -> None:
    both = keytab(Key(3), Key(4), Key(4, AES128))
    version = both.version("streamer@KSTREAM.TEST")
    assert version is not None
    assert version.kvno == 4
    assert [entry.enctype for entry in both.newest("streamer@KSTREAM.TEST")] == [AES256, AES128]
    assert both.version("somebody@KSTREAM.TEST") is None


def test_the_key_and_not_its_number_or_export_makes_a_version() -> None:
    def version(key: Key) -> str:
        version = keytab(key).version("streamer@KSTREAM.TEST")
        assert version is not None
        return version.fingerprint

    assert version(Key(3)) != version(Key(3, secret=b"x" * 32))
    assert version(Key(3)) != version(Key(4))
    assert version(Key(3)) == version(Key(3, stamp=1_800_000_000))


def test_an_older_keytab_that_is_put_back_is_no_rotation() -> None:
    old, new = (keytab(Key(number)).version("streamer@KSTREAM.TEST") for number in (3, 4))
    assert old is not None
    assert new is not None
    assert new.succeeds(old)
    assert not old.succeeds(new)
    assert not new.succeeds(new)


@pytest.mark.parametrize(("stamp", "later"), [(1_900_000_000, True), (1_600_000_000, False), (0, False)])
def test_when_a_key_was_written_goes_before_its_number(stamp: int, later: bool) -> None:
    """A principal that was deleted and made again begins with 1 again; 0 is no moment, as Active Directory has it."""
    old = keytab(Key(7, stamp=1_800_000_000)).version("streamer@KSTREAM.TEST")
    new = keytab(Key(1, secret=b"x" * 32, stamp=stamp)).version("streamer@KSTREAM.TEST")
    assert old
    assert new
    assert new.succeeds(old) is later


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_a_keytab_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(CredentialError, match=r"cut off|corrupt|begin"):
        read_entries(keytab_bytes(Key(1))[:cut])
