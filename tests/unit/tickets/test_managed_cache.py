"""A kept ticket's cache is read once and classified; a renewal that fails leaves it as it is. Without a KDC."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.kerberos.declarations import RenewalPolicy
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.policy.tickets import TicketState
from airflow_kstream.supervise.tickets.managed import CacheCondition, ManagedTicket, read_cache
from airflow_kstream.supervise.tickets.renewal import (
    RealmCircuitBreaker,
    RenewalOutcome,
    _renew_one,
    renew_all,
    ticket_status,
)
from tests.simulated.tickets import write_cache

ME, YOU = "me@NOWHERE.TEST", "you@NOWHERE.TEST"
HOUR = timedelta(hours=1)
NO_CACHE, TORN = b"garbage, and no cache\n", b"\x05\x04torn"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def kept(cache: Path, *, ours: bool = False) -> ManagedTicket:
    return ManagedTicket("prod", Identity(ME, keytab=str(cache.with_name("gone.keytab"))), cache, in_our_folder=ours)


def fill(cache: Path, principal: str = ME, left: timedelta = HOUR) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    write_cache(cache, principal, now - HOUR, now + left, now + 2 * HOUR)


def test_a_good_cache_is_ok_and_gives_its_ticket(cache: Path) -> None:
    fill(cache)
    state = read_cache(kept(cache))
    assert (state.condition, state.error) == (CacheCondition.OK, None)
    assert state.ticket == tickets.granting_ticket(cache, ME, "read it")


def test_no_file_is_a_missing_cache_and_no_error(cache: Path) -> None:
    state = read_cache(kept(cache))
    assert (state.condition, state.ticket, state.error) == (CacheCondition.MISSING, None, None)


@pytest.mark.parametrize(
    ("content", "ours", "condition"),
    [
        (TORN, True, CacheCondition.DAMAGED),
        (TORN, False, CacheCondition.DAMAGED),
        (b"", False, CacheCondition.DAMAGED),
        (NO_CACHE, True, CacheCondition.DAMAGED),
        (NO_CACHE, False, CacheCondition.FOREIGN),
    ],
)
def test_a_file_that_is_no_cache_is_damaged_if_torn_or_in_our_folder(
    cache: Path, content: bytes, ours: bool, condition: CacheCondition
) -> None:
    cache.write_bytes(content)
    state = read_cache(kept(cache, ours=ours))
    replaced = condition is CacheCondition.DAMAGED
    assert state.condition is condition
    assert state.ticket is None
    assert ("the next renewal replaces it" if replaced else "it is left as it is") in str(state.error)


@pytest.mark.parametrize("ours", [True, False])
def test_another_principals_cache_and_a_folder_are_foreign(cache: Path, ours: bool) -> None:
    fill(cache, YOU)
    state = read_cache(kept(cache, ours=ours))
    assert state.condition is CacheCondition.FOREIGN
    assert f"it is a cache of {YOU}: {'delete it' if ours else 'name another file'}" in str(state.error)
    assert read_cache(kept(cache.parent, ours=ours)).condition is CacheCondition.FOREIGN


def test_a_path_that_can_not_be_reached_is_foreign(cache: Path) -> None:
    cache.write_bytes(b"a file, no folder")
    state = read_cache(kept(cache / "below"))
    assert state.condition is CacheCondition.FOREIGN
    assert "Not a directory" in str(state.error)


def test_a_source_that_java_can_not_read_is_refused_in_words(cache: Path) -> None:
    (refused,) = renew_all([ManagedTicket("prod", Identity(ME, ticket_cache="KCM:0"), cache)], RenewalPolicy())
    assert "a KCM cache is kept by the system" in refused.error
    assert refused.alert


def test_a_pipe_is_foreign_and_not_waited_for(cache: Path) -> None:
    os.mkfifo(cache)
    assert read_cache(kept(cache, ours=True)).condition is CacheCondition.FOREIGN


@pytest.mark.parametrize("principal", [ME, YOU])
def test_a_renewal_that_fails_leaves_the_file_as_it_was(cache: Path, principal: str) -> None:
    fill(cache, principal, left=timedelta(minutes=1))
    before = cache.read_bytes()
    (report,) = renew_all([kept(cache)], RenewalPolicy(), force=True)
    assert (report.outcome, report.failing.failures) == (RenewalOutcome.FAILED, 1)
    assert cache.read_bytes() == before


@pytest.mark.parametrize(("ours", "error"), [(True, "log in from keytab"), (False, "it is left as it is")])
def test_a_damaged_cache_is_logged_in_for_and_a_foreign_one_is_not(cache: Path, ours: bool, error: str) -> None:
    cache.write_bytes(NO_CACHE)
    (report,) = renew_all([kept(cache, ours=ours)], RenewalPolicy())
    assert error in report.error
    assert (report.outcome, report.state) == (RenewalOutcome.FAILED, TicketState.MISSING)
    assert cache.read_bytes() == NO_CACHE


def test_a_fresh_ticket_is_kept_and_its_failures_are_forgotten(cache: Path) -> None:
    fill(cache, left=timedelta(minutes=1))
    assert [report.failing.failures for _ in range(2) for report in renew_all([kept(cache)], RenewalPolicy())] == [1, 2]
    fill(cache, left=10 * HOUR)
    (report,) = renew_all([kept(cache)], RenewalPolicy())
    assert (report.outcome, report.state) == (RenewalOutcome.KEPT, TicketState.FRESH)
    assert ticket_status(kept(cache), RenewalPolicy()).failures.count == 0


@pytest.mark.parametrize(
    ("principal", "outcome", "state"),
    [(ME, RenewalOutcome.KEPT, TicketState.FRESH), (YOU, RenewalOutcome.FAILED, TicketState.MISSING)],
)
def test_a_cache_replaced_meanwhile_is_reported_as_it_is_afterwards(
    cache: Path, principal: str, outcome: RenewalOutcome, state: TicketState
) -> None:
    fill(cache, left=timedelta(minutes=1))

    class Meanwhile(RealmCircuitBreaker):
        @contextmanager
        def request(self, principal_: str, tried: str) -> Iterator[None]:
            fill(cache, principal, left=10 * HOUR)
            yield

    report = _renew_one(kept(cache), RenewalPolicy(), Meanwhile(), force=False)
    assert (report.outcome, report.state) == (outcome, state)


def test_a_renewal_leaves_alone_what_became_another_principals_cache_or_vanished(cache: Path) -> None:
    fill(cache)
    held = tickets.granting_ticket(cache, ME, "read it")
    fill(cache, YOU)
    before = cache.read_bytes()
    with pytest.raises(CredentialError, match="renew the ticket in"):
        tickets.renew(held, cache)
    assert cache.read_bytes() == before
    cache.unlink()
    with pytest.raises(CredentialError, match="renew the ticket in"):
        tickets.renew(held, cache)
    assert not cache.exists()
