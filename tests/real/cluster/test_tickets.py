"""Tickets of a real KDC: acquired whole, renewed, inspected, damaged, kept fresh while things fail."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import krb5
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_kstream.clients.kerberos import ccache, tickets
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import CredentialError, MiniclusterError, Unavailable
from airflow_kstream.model.identity import Identity
from airflow_kstream.model.ticket import CacheKind, Ticket
from airflow_kstream.policy.tickets.renewal import RenewalPolicy, TicketState
from airflow_kstream.supervise.tickets.managed import ManagedTicket
from airflow_kstream.supervise.tickets.renewal import RenewalOutcome, RenewalReport, renew_all, ticket_status
from tests.live.streams import await_that

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
POLICY = RenewalPolicy()


@pytest.fixture
def edge(minicluster: Minicluster) -> Identity:
    return login(minicluster, "streamer")


@pytest.fixture
def cache(edge: Identity, tmp_path: Path) -> Path:
    path = tmp_path / "caches" / "edge"
    tickets.acquire(edge, path)
    return path


def login(minicluster: Minicluster, name: str) -> Identity:
    return Identity(minicluster.principal(name), keytab=str(minicluster.keytab(name)))


def brief(minicluster: Minicluster, name: str, life: timedelta, renewable: timedelta = timedelta()) -> Identity:
    """A principal of its own whose tickets live for seconds."""
    if not minicluster.keytab(name).exists():
        minicluster.add_principal(name)
    minicluster.limit_life(name, life, renewable)
    return login(minicluster, name)


def kinit(identity: Identity, cache: Path, *options: str) -> None:
    """Get a ticket as a person does, with a lifetime and flags of its own."""
    argv = ["kinit", *options, "-k", "-t", str(identity.keytab), "-c", f"FILE:{cache}", identity.principal]
    cache.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(argv, check=True, capture_output=True)


def not_renewable(identity: Identity, cache: Path) -> None:
    """Get a ticket that is not renewable, which kinit can't request if krb5.conf requests renewable ones."""
    context = krb5.init_context()
    owner = krb5.parse_name_flags(context, identity.principal.encode())
    options = krb5.get_init_creds_opt_alloc(context)
    krb5.get_init_creds_opt_set_renew_life(options, 0)
    keys = krb5.kt_resolve(context, f"FILE:{identity.keytab}".encode())
    ccache.store(context, f"FILE:{cache}", owner, iter([krb5.get_init_creds_keytab(context, owner, options, keys)]))


def test_a_ticket_has_the_requested_lifetime_and_flags(edge: Identity, cache: Path) -> None:
    before = datetime.now(UTC)
    kinit(edge, cache, "-l", "5m", "-r", "20m", "-F")
    left = tickets.acquire(Identity(edge.principal, ticket_cache=str(cache)), cache.with_name("copy"))
    took = datetime.now(UTC) - before
    source = tickets.inspect(str(cache))
    assert source.principal == edge.principal
    assert source.granting is not None
    # The ends are counted from when we asked, the start from when the KDC answered; both in whole seconds.
    assert 5 * MINUTE - took - SECOND < left <= 5 * MINUTE
    assert 5 * MINUTE - took - SECOND < source.granting.life <= 5 * MINUTE + SECOND
    assert source.granting.renew_until == source.granting.expiry + 15 * MINUTE
    assert "renewable" in source.granting.flags
    assert "forwardable" not in source.granting.flags
    assert (source.granting.kvno, source.granting.enctype) == (1, "aes256-cts-hmac-sha1-96")


def test_the_folder_of_a_cache_is_made_private(cache: Path) -> None:
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cache.parent, cache)] == [0o700, 0o600]


_WRITER = """
import sys
from pathlib import Path
from airflow_kstream.clients.kerberos import ccache, tickets
from airflow_kstream.model.identity import Identity
for _ in range(20):
    tickets.acquire(Identity(sys.argv[1], keytab=sys.argv[2]), Path(sys.argv[3]))
"""


def test_concurrent_writers_of_a_cache_succeed_and_no_reader_sees_a_torn_one(edge: Identity, cache: Path) -> None:
    command = [sys.executable, "-c", _WRITER, edge.principal, str(edge.keytab), str(cache)]
    writers = [subprocess.Popen(command) for _ in range(2)]
    reads = 0
    with ThreadPoolExecutor(4) as pool:
        threads = [pool.submit(lambda: [tickets.acquire(edge, cache) for _ in range(20)]) for _ in range(2)]
        while any(writer.poll() is None for writer in writers) or not all(thread.done() for thread in threads):
            granting = tickets.inspect(str(cache)).granting
            assert granting is not None
            reads += 1
        for thread in threads:
            thread.result()
    assert [writer.returncode for writer in writers] == [0, 0]
    assert reads > 20
    assert [file.name for file in cache.parent.iterdir()] == [cache.name]


def test_what_killed_processes_left_is_swept_and_what_others_write_now_is_not(edge: Identity, cache: Path) -> None:
    old, young = (cache.with_name(f".{cache.name}.{name}.tmp") for name in ("old", "young"))
    for left in (old, young):
        left.touch()
    hour_ago = time.time() - 3600
    os.utime(old, (hour_ago, hour_ago))
    tickets.acquire(edge, cache)
    assert (old.exists(), young.exists()) == (False, True)


_WITHOUT_ROOM = """
import resource, sys
from pathlib import Path
from airflow_kstream.clients.kerberos import ccache, tickets
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.identity import Identity
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
try:
    tickets.acquire(Identity(sys.argv[1], keytab=sys.argv[2]), Path(sys.argv[3]))
except KstreamError as error:
    print(type(error).__name__, error)
"""


def test_a_cache_for_which_there_is_no_room_stays_as_it_was(edge: Identity, cache: Path) -> None:
    """libkrb5 says "I/O operation failed"; the error must contain the system's own words."""
    before = cache.read_bytes()
    command = [sys.executable, "-c", _WITHOUT_ROOM, edge.principal, str(edge.keytab), str(cache)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"can't write to the folder {cache.parent}: File too large" in printed
    assert cache.read_bytes() == before
    assert [file.name for file in cache.parent.iterdir()] == [cache.name]


def test_a_folder_that_takes_no_file_is_named(edge: Identity) -> None:
    with pytest.raises(
        CredentialError, match=r"write the ticket cache /proc/self/tickets .*can't write to the folder /proc/self:"
    ):
        tickets.acquire(edge, Path("/proc/self/tickets"))


def test_a_renewal_needs_no_keytab_and_keeps_the_end_of_renewals(edge: Identity, cache: Path) -> None:
    kinit(edge, cache, "-l", "5m", "-r", "20m")
    before = tickets.inspect(str(cache)).granting
    assert before is not None
    await_that(lambda: datetime.now(UTC) > before.start + 2 * SECOND, "a second passes")
    renewed = tickets.renew(before, cache)
    assert renewed == tickets.inspect(str(cache)).granting
    assert renewed.expiry > before.expiry
    assert renewed.life == before.life
    assert renewed.renew_until == before.renew_until


def held(identity: Identity, cache: Path) -> Ticket:
    return tickets.granting_ticket(cache, identity.principal, f"read {cache}")


def test_what_can_not_be_renewed_says_why_and_stays_as_it_was(
    minicluster: Minicluster, edge: Identity, cache: Path
) -> None:
    not_renewable(edge, cache)
    before = cache.read_bytes()
    with pytest.raises(CredentialError, match=r"it is not renewable: .*kinit -r.*or give a keytab"):
        tickets.renew(held(edge, cache), cache)
    with pytest.raises(CredentialError, match=r"it is a cache of streamer@"):
        held(replace(edge, principal=minicluster.principal("watcher")), cache)
    with pytest.raises(CredentialError, match="there is no such file"):
        held(edge, cache.with_name("gone"))
    assert cache.read_bytes() == before


def test_past_the_end_of_its_renewals_a_ticket_is_over(minicluster: Minicluster, tmp_path: Path) -> None:
    mayfly, cache = brief(minicluster, "mayfly", 6 * SECOND, 8 * SECOND), tmp_path / "cache"
    tickets.acquire(mayfly, cache)
    await_that(lambda: over(cache), "the end of the renewals has passed")
    with pytest.raises(CredentialError, match=r"it reached the end of its renewals at 20.* UTC\. Get another ticket"):
        tickets.renew(held(mayfly, cache), cache)
    with pytest.raises(CredentialError, match=f"copy the ticket cache {cache} .*its ticket expired at"):
        tickets.acquire(Identity(mayfly.principal, ticket_cache=str(cache)), tmp_path / "copy")


def over(cache: Path) -> bool:
    granting = tickets.inspect(str(cache)).granting
    return granting is not None and datetime.now(UTC) > (granting.renew_until or granting.expiry)


def test_a_folder_of_caches_is_its_primary_one_and_all_its_members(
    minicluster: Minicluster, edge: Identity, cache: Path, tmp_path: Path
) -> None:
    """kinit writes such a cache; the settings that it keeps in there are no tickets."""
    environment = {**os.environ, "KRB5_CONFIG": str(minicluster.krb5_conf), "KRB5CCNAME": f"DIR:{tmp_path}/many"}
    (tmp_path / "many").mkdir(0o700)
    for name in ("streamer", "watcher"):
        kinit = ["kinit", "-k", "-t", str(minicluster.keytab(name)), minicluster.principal(name)]
        subprocess.run(kinit, check=True, env=environment)
    caches = [tickets.inspect(name) for name in tickets.members(f"DIR:{tmp_path}/many")]
    assert {member.principal for member in caches} == {
        minicluster.principal("streamer"),
        minicluster.principal("watcher"),
    }
    assert {len(member.tickets) for member in caches} == {1}
    primary = tickets.inspect(f"DIR:{tmp_path}/many")
    assert primary.kind is CacheKind.DIR
    assert primary.principal in {member.principal for member in caches}
    tickets.acquire(Identity(primary.principal, ticket_cache=f"DIR:{tmp_path}/many"), tmp_path / "copy")
    assert tickets.inspect(str(tmp_path / "copy")).granting == primary.granting


def test_a_cache_in_memory_is_looked_into_like_any_other(edge: Identity, cache: Path) -> None:
    import krb5

    from airflow_kstream.clients.kerberos import ccache

    ccache.copy(krb5.init_context(), f"FILE:{cache}", "MEMORY:kstream-test")
    assert tickets.inspect("MEMORY:kstream-test").granting == tickets.inspect(f"FILE:{cache}").granting
    with pytest.raises(CredentialError):
        tickets.inspect("MEMORY:nobody")


@pytest.mark.parametrize("name", ["KCM:0", "KEYRING:persistent:0"])
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


@settings(max_examples=400, deadline=60_000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_cache_is_read_or_a_clear_error(cache: Path, tmp_path: Path, data: st.DataObject) -> None:
    """Never a crash, never a hang: bytes flipped, cut off and doubled anywhere."""
    whole = cache.read_bytes()
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole)
    for _ in range(data.draw(st.integers(1, 4)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.sampled_from([0, 1, 127, 128, 255]))
    (tmp_path / "damaged").write_bytes(damaged + data.draw(st.sampled_from([b"", b"\0" * 9, whole])))
    try:
        tickets.inspect(str(tmp_path / "damaged"))
    except CredentialError as error:
        assert "read the ticket cache" in str(error)  # noqa: PT017  there may be none


# ---- Many kept fresh


def kept(identity: Identity, cache: Path) -> ManagedTicket:
    return ManagedTicket("minicluster", identity, cache)


def renewed(*those: ManagedTicket, force: bool = False) -> list[RenewalReport]:
    return list(renew_all(those, POLICY, force=force))


def test_what_is_missing_is_acquired_and_what_is_fresh_is_kept(edge: Identity, tmp_path: Path) -> None:
    one = kept(edge, tmp_path / "folder" / "edge")
    assert ticket_status(one, POLICY).state is TicketState.MISSING
    (first,), (second,), (forced,) = renewed(one), renewed(one), renewed(one, force=True)
    assert [report.outcome for report in (first, second, forced)] == [
        RenewalOutcome.ACQUIRED,
        RenewalOutcome.KEPT,
        RenewalOutcome.ACQUIRED,
    ]
    assert ticket_status(one, POLICY).state is TicketState.FRESH
    assert (first.failures, first.alert, first.error) == (0, False, "")


def test_one_that_fails_hides_no_other_and_is_counted_until_it_succeeds(
    minicluster: Minicluster, tmp_path: Path
) -> None:
    broken = Identity(minicluster.principal("gateway"), keytab=str(tmp_path / "gateway.keytab"))
    those = [
        kept(login(minicluster, "watcher"), tmp_path / "watcher"),
        kept(broken, tmp_path / "gateway"),
        kept(login(minicluster, "streamer"), tmp_path / "streamer"),
    ]
    for count in (1, 2):
        watcher, gateway, streamer = renewed(*those, force=True)
        assert watcher.outcome is streamer.outcome is RenewalOutcome.ACQUIRED
        assert (gateway.outcome, gateway.failures, gateway.alert) == (RenewalOutcome.FAILED, count, True)
        assert gateway.error.startswith(
            f"log in from keytab {broken.keytab} as gateway@KSTREAM.TEST: there is no such file"
        )
        assert gateway.retryable is False
    assert ticket_status(those[1], POLICY).failures.count == 2
    assert ticket_status(those[1], POLICY).failures.since == gateway.failing_since
    (tmp_path / "gateway.keytab").write_bytes(minicluster.keytab("gateway").read_bytes())
    (_, gateway, _) = renewed(*those)
    assert (gateway.outcome, gateway.failures, gateway.failing_since) == (RenewalOutcome.ACQUIRED, 0, None)
    assert ticket_status(those[1], POLICY).failures.count == 0


@pytest.fixture
def without_kdc(minicluster: Minicluster) -> Iterator[Minicluster]:
    """Let a test kill the KDC, which is back at the end."""
    yield minicluster
    with suppress(MiniclusterError):
        minicluster.start("kdc")


def test_a_kdc_that_is_away_is_a_warning_then_an_alert_and_its_return_mends_all(
    without_kdc: Minicluster, tmp_path: Path
) -> None:
    one = kept(brief(without_kdc, "patient", 40 * SECOND), tmp_path / "patient")
    renewed(one)
    without_kdc.kill("kdc")
    await_that(lambda: ticket_status(one, POLICY).state is TicketState.DUE, "the ticket is due")
    (early,) = renewed(one)
    assert (early.outcome, early.state) == (RenewalOutcome.FAILED, TicketState.DUE)
    assert (early.failures, early.alert, early.retryable) == (1, False, True)
    assert "Cannot contact any KDC" in early.error
    await_that(lambda: ticket_status(one, POLICY).state is TicketState.URGENT, "the ticket is urgent")
    (late,) = renewed(one)
    assert (late.state, late.failures, late.alert) == (TicketState.URGENT, 2, True)
    assert late.failing_since == early.failing_since
    without_kdc.start("kdc")
    (back,) = renewed(one)
    assert (back.outcome, back.state) == (RenewalOutcome.ACQUIRED, TicketState.FRESH)
    assert (back.failures, back.failing_since, back.alert) == (0, None, False)


def test_a_silent_realm_is_given_up_for_one_round_alone(
    without_kdc: Minicluster, edge: Identity, tmp_path: Path
) -> None:
    """If a KDC drops requests, libkrb5 waits for 25 s; hundreds of principals must not wait one by one."""
    those = [kept(edge, tmp_path / f"cache{number}") for number in range(12)]
    without_kdc.kill("kdc")
    silent = renewed(*those)
    assert {report.outcome for report in silent} == {RenewalOutcome.FAILED}
    assert sum("not contacted: no KDC of KSTREAM.TEST answered" in report.error for report in silent) >= 5
    without_kdc.start("kdc")
    assert {report.outcome for report in renewed(*those)} == {RenewalOutcome.ACQUIRED}


def test_a_ticket_without_a_keytab_is_renewed_and_copied_again_after_a_login(
    minicluster: Minicluster, tmp_path: Path
) -> None:
    person, source = brief(minicluster, "person", 16 * SECOND, 28 * SECOND), tmp_path / "source"
    tickets.acquire(person, source)
    one = kept(Identity(person.principal, ticket_cache=f"FILE:{source}"), tmp_path / "kept")
    outcomes = [renewed(one)[0].outcome]
    await_that(lambda: ticket_status(one, POLICY).state is not TicketState.FRESH, "it is due")
    outcomes.append(renewed(one)[0].outcome)
    await_that(lambda: renewed(one)[0].failures > 0, "a renewal no longer extends it")
    (warned,) = renewed(one)
    assert warned.state.serves
    assert warned.failures == 2
    assert "no renewal extends it beyond its end at 20" in warned.error
    await_that(lambda: over(one.cache), "the end of the renewals has passed")
    (ended,) = renewed(one)
    assert (ended.state, ended.alert, ended.retryable) == (TicketState.EXPIRED, True, False)
    assert "it reached the end of its renewals" in ended.error
    tickets.acquire(person, source)
    outcomes.append(renewed(one)[0].outcome)
    assert outcomes == [RenewalOutcome.ACQUIRED, RenewalOutcome.RENEWED, RenewalOutcome.ACQUIRED]


def test_a_torn_cache_is_replaced_but_not_somebody_elses_nor_what_is_none(
    minicluster: Minicluster, edge: Identity, cache: Path, tmp_path: Path
) -> None:
    cache.write_bytes(cache.read_bytes()[:40])
    (torn,) = renewed(kept(edge, cache))
    assert torn.outcome is RenewalOutcome.ACQUIRED
    keytab = tmp_path / "keytab"
    keytab.write_bytes(minicluster.keytab("watcher").read_bytes())
    for path, words in ((cache, "it is a cache of streamer@"), (keytab, "Bad format in credentials cache")):
        before = path.read_bytes()
        (refused,) = renewed(kept(login(minicluster, "watcher"), path), force=True)
        assert (refused.outcome, refused.state) == (RenewalOutcome.FAILED, TicketState.MISSING)
        assert words in refused.error
        assert path.read_bytes() == before


def test_a_cache_that_can_be_nowhere_is_a_report_and_no_crash(
    minicluster: Minicluster, edge: Identity, tmp_path: Path
) -> None:
    """A name that is too long, a folder that is a file: regardless of the system's error, the others are renewed."""
    (tmp_path / "file").touch()
    places = (tmp_path / ("x" * 300), tmp_path / "file" / "cache", tmp_path, tmp_path / "good")
    *wrong, good = renewed(*(kept(edge, place) for place in places))
    assert good.outcome is RenewalOutcome.ACQUIRED
    for report, words in zip(wrong, ("File name too long", "Not a directory", "no such file"), strict=True):
        assert (report.outcome, report.alert) == (RenewalOutcome.FAILED, True)
        assert words in report.error


def test_a_source_that_java_can_not_read_is_refused_in_words(minicluster: Minicluster, tmp_path: Path) -> None:
    (refused,) = renewed(kept(Identity(minicluster.principal("watcher"), ticket_cache="KCM:0"), tmp_path / "cache"))
    assert "a KCM cache is kept by the system" in refused.error
    assert refused.alert is True


def test_a_round_that_finds_all_fresh_starts_no_process_and_changes_no_file(
    minicluster: Minicluster, tmp_path: Path
) -> None:
    those = [kept(login(minicluster, name), tmp_path / name) for name in ("watcher", "gateway", "streamer")]
    renewed(*those)
    before = {file: file.stat() for file in tmp_path.iterdir()}
    assert {report.outcome for report in renewed(*those)} == {RenewalOutcome.KEPT}
    assert {file: (file.stat().st_ino, file.stat().st_mtime_ns) for file in tmp_path.iterdir()} == {
        file: (status.st_ino, status.st_mtime_ns) for file, status in before.items()
    }


def test_nothing_depends_on_an_ambient_cache(edge: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that the environment names is neither used nor touched."""
    ambient = tmp_path / "ambient"
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{ambient}")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", f"FILE:{tmp_path}/nothing")
    (report,) = renewed(kept(edge, tmp_path / "own"))
    assert report.outcome is RenewalOutcome.ACQUIRED
    assert not ambient.exists()


def test_a_kdc_that_is_away_is_unavailable_and_a_refusal_is_not(
    without_kdc: Minicluster, edge: Identity, cache: Path
) -> None:
    without_kdc.kill("kdc")
    with pytest.raises(Unavailable, match="Cannot contact any KDC"):
        tickets.acquire(edge, cache)
    with pytest.raises(Unavailable, match="Cannot contact any KDC"):
        tickets.renew(held(edge, cache), cache)
