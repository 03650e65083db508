"""Names of caches, which ticket counts, and which key a ticket is sealed with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.errors import CredentialError, InvalidInput
from airflow_kstream.model.formats.ticket import TicketKey, ticket_key
from airflow_kstream.model.kerberos.identity import CacheKind, split_cache_name
from airflow_kstream.model.kerberos.ticket import Ticket, TicketCache, cache_file_name
from tests.simulated.tickets import AES256, CIPHER, WITH_KVNO, der, sealed

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TGT = Ticket("me@R", "krbtgt/R@R", NOW, NOW + timedelta(hours=1), None, frozenset(), "", 1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/tmp/a", (CacheKind.FILE, "/tmp/a")),
        ("FILE:/tmp/a", (CacheKind.FILE, "/tmp/a")),
        ("/tmp/a:b", (CacheKind.FILE, "/tmp/a:b")),
        ("DIR::/tmp/d/tkt", (CacheKind.DIR, ":/tmp/d/tkt")),
        ("KEYRING:persistent:0", (CacheKind.KEYRING, "persistent:0")),
        ("kcm:0", (CacheKind.KCM, "0")),
    ],
)
def test_a_caches_name_says_its_kind(name: str, expected: tuple[CacheKind, str]) -> None:
    assert split_cache_name(name) == expected


def test_an_unknown_cache_kind_is_refused() -> None:
    with pytest.raises(InvalidInput, match="its kind is 'API'; known kinds are FILE, DIR, MEMORY, KCM, KEYRING"):
        split_cache_name("API:1")


def test_java_reads_only_files() -> None:
    assert {kind for kind in CacheKind if kind.java_reads} == {CacheKind.FILE, CacheKind.DIR}


def test_the_ticket_of_the_own_realm_that_is_valid_longest_counts() -> None:
    longer = replace(TGT, expiry=TGT.expiry + timedelta(hours=1))
    foreign = replace(longer, server="krbtgt/OTHER@R", expiry=longer.expiry + timedelta(hours=1))
    anothers = replace(longer, client="you@R", expiry=longer.expiry + timedelta(hours=1))
    assert TicketCache("FILE:/a", "me@R", (TGT, longer, foreign, anothers)).granting == longer
    assert TicketCache("FILE:/a", "me@R", (foreign, anothers)).granting is None


def test_a_services_cache_file_can_still_be_recognised() -> None:
    assert cache_file_name("hdfs/nn.test@KSTREAM.TEST") == "hdfs%2Fnn.test@KSTREAM.TEST.ccache"


def test_a_ticket_names_version_and_type_of_the_key_that_seals_it() -> None:
    assert ticket_key(WITH_KVNO) == TicketKey(kvno=261, enctype=18)


def test_a_ticket_may_have_no_key_version() -> None:
    assert ticket_key(sealed(AES256, CIPHER)) == TicketKey(kvno=None, enctype=18)


def test_active_directory_uses_all_32_bits_of_the_version() -> None:
    assert ticket_key(sealed(AES256, der(0xA1, der(2, b"\xff\xff\x00\x01")), CIPHER)).kvno == 0xFFFF0001


@pytest.mark.parametrize("end", range(len(WITH_KVNO)))
def test_a_truncated_ticket_is_refused(end: int) -> None:
    with pytest.raises(CredentialError, match="not a Kerberos ticket"):
        ticket_key(WITH_KVNO[:end])
