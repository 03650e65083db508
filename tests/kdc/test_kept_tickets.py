"""Many tickets kept fresh against a real KDC: counted failures, silent realms, torn caches, the end of renewals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.minicluster.kdc import Kdc
from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.kerberos.declarations import RenewalPolicy, TicketDeclaration
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.keytab import FindingKind
from airflow_kstream.policy.tickets import TicketState
from airflow_kstream.supervise.doctor.keytabs import check_keytabs
from airflow_kstream.supervise.tickets.keytab_probe import KeytabPlace
from airflow_kstream.supervise.tickets.managed import ManagedTicket, kept_tickets
from airflow_kstream.supervise.tickets.renewal import RenewalOutcome, RenewalReport, renew_all, ticket_status
from tests.kdc.logins import brief, cluster, login
from tests.live.realms import silent_realm, without_kdc
from tests.live.streams import await_that
from tests.simulated.tickets import write_cache

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
POLICY = RenewalPolicy()
NO_CACHE = b"garbage, and no cache\n"
SILENT = "SILENCE.TEST"


def kept(identity: Identity, cache: Path) -> ManagedTicket:
    return ManagedTicket("away", identity, cache)


def renewed(*those: ManagedTicket, policy: RenewalPolicy = POLICY, force: bool = False) -> list[RenewalReport]:
    return list(renew_all(those, policy, force=force))


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
    assert (first.failing.failures, first.alert, first.error) == (0, False, "")


def test_one_that_fails_hides_no_other_and_is_counted_until_it_succeeds(kdc: Kdc, tmp_path: Path) -> None:
    broken = Identity(kdc.principal("gateway"), keytab=str(tmp_path / "gateway.keytab"))
    those = [
        kept(login(kdc, "watcher"), tmp_path / "watcher"),
        kept(broken, tmp_path / "gateway"),
        kept(login(kdc, "streamer"), tmp_path / "streamer"),
    ]
    for count in (1, 2):
        watcher, gateway, streamer = renewed(*those, force=True)
        assert watcher.outcome is streamer.outcome is RenewalOutcome.ACQUIRED
        assert (gateway.outcome, gateway.failing.failures, gateway.alert) == (RenewalOutcome.FAILED, count, True)
        assert gateway.error.startswith(
            f"log in from keytab {broken.keytab} as gateway@KSTREAM.TEST: there is no such file"
        )
        assert gateway.retryable is False
    assert ticket_status(those[1], POLICY).failures.count == 2
    assert ticket_status(those[1], POLICY).failures.since == gateway.failing.failing_since
    (tmp_path / "gateway.keytab").write_bytes(kdc.keytab("gateway").read_bytes())
    (_, gateway, _) = renewed(*those)
    assert (gateway.outcome, gateway.failing.failures, gateway.failing.failing_since) == (
        RenewalOutcome.ACQUIRED,
        0,
        None,
    )
    assert ticket_status(those[1], POLICY).failures.count == 0


def test_a_torn_cache_is_replaced_but_not_somebody_elses_nor_what_is_none(
    kdc: Kdc, edge: Identity, cache: Path, tmp_path: Path
) -> None:
    cache.write_bytes(cache.read_bytes()[:40])
    (torn,) = renewed(kept(edge, cache))
    assert torn.outcome is RenewalOutcome.ACQUIRED
    keytab = tmp_path / "keytab"
    keytab.write_bytes(kdc.keytab("watcher").read_bytes())
    for path, words in (
        (cache, "it is a cache of streamer@"),
        (keytab, "it is a keytab, not a ticket cache"),
    ):
        before = path.read_bytes()
        (refused,) = renewed(kept(login(kdc, "watcher"), path), force=True)
        assert (refused.outcome, refused.state) == (RenewalOutcome.FAILED, TicketState.MISSING)
        assert words in refused.error
        assert path.read_bytes() == before


def test_a_cache_that_can_be_nowhere_is_a_report_and_no_crash(kdc: Kdc, edge: Identity, tmp_path: Path) -> None:
    """A name that is too long, a folder that is a file: regardless of the system's error, the others are renewed."""
    (tmp_path / "file").touch()
    places = (tmp_path / ("x" * 300), tmp_path / "file" / "cache", tmp_path, tmp_path / "good")
    *wrong, good = renewed(*(kept(edge, place) for place in places))
    assert good.outcome is RenewalOutcome.ACQUIRED
    for report, words in zip(wrong, ("File name too long", "Not a directory", "no such file"), strict=True):
        assert (report.outcome, report.alert) == (RenewalOutcome.FAILED, True)
        assert words in report.error


def test_a_round_that_finds_all_fresh_starts_no_process_and_changes_no_file(kdc: Kdc, tmp_path: Path) -> None:
    those = [kept(login(kdc, name), tmp_path / name) for name in ("watcher", "gateway", "streamer")]
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


def test_a_kdc_that_is_away_is_a_warning_then_an_alert_and_its_return_mends_all(kdc: Kdc, tmp_path: Path) -> None:
    one = kept(login(kdc, "streamer"), tmp_path / "patient")
    with without_kdc(kdc, tmp_path):
        hold(one, left=40 * MINUTE)
        (early,) = renewed(one)
        hold(one, left=20 * MINUTE)
        (late,) = renewed(one)
    assert (early.outcome, early.state) == (RenewalOutcome.FAILED, TicketState.DUE)
    assert (early.failing.failures, early.alert, early.retryable) == (1, False, True)
    assert "Cannot contact any KDC" in early.error
    assert (late.state, late.failing.failures, late.alert) == (TicketState.URGENT, 2, True)
    assert late.failing.failing_since == early.failing.failing_since
    (back,) = renewed(one)
    assert (back.outcome, back.state) == (RenewalOutcome.ACQUIRED, TicketState.FRESH)
    assert (back.failing.failures, back.failing.failing_since, back.alert) == (0, None, False)


def hold(one: ManagedTicket, left: timedelta) -> None:
    """Let the cache hold a ticket of two hours, with so much left."""
    end = datetime.now(UTC) + left
    write_cache(one.cache, one.principal, end - 120 * MINUTE, end, end)


def test_a_realm_without_a_kdc_is_given_up_for_one_round_alone(kdc: Kdc, edge: Identity, tmp_path: Path) -> None:
    """If a KDC drops requests, libkrb5 waits for 25 s; hundreds of principals must not wait one by one."""
    those = [kept(edge, tmp_path / f"cache{number}") for number in range(12)]
    with without_kdc(kdc, tmp_path):
        silent = renewed(*those)
    assert {report.outcome for report in silent} == {RenewalOutcome.FAILED}
    assert sum("not contacted: no KDC of KSTREAM.TEST answered" in report.error for report in silent) >= 5
    assert {report.outcome for report in renewed(*those)} == {RenewalOutcome.ACQUIRED}


def test_a_silent_realm_delays_no_other_and_is_waited_for_once(kdc: Kdc, tmp_path: Path) -> None:
    """Its seven principals come first. Four ask at once; the other three, once it has not answered, ask no KDC."""
    silent = [kept(mute(kdc, number, tmp_path), tmp_path / f"mute{number}") for number in range(7)]
    streamer = kept(login(kdc, "streamer"), tmp_path / "streamer")
    with silent_realm(kdc, SILENT, tmp_path) as silence, ThreadPoolExecutor() as pool:
        round_of_all = pool.submit(renewed, *silent, streamer)
        await_that(lambda: len(silence.asked) == 4 and streamer.cache.exists(), "the other realm's is renewed", 20)
        assert not round_of_all.done()
        silence.hung_up.set()
        *unanswered, answered = round_of_all.result()
        assert len(silence.asked) == 4
    assert {report.outcome for report in unanswered} == {RenewalOutcome.FAILED}
    assert answered.outcome is RenewalOutcome.ACQUIRED


def test_a_check_waits_once_for_a_silent_kdc(kdc: Kdc, tmp_path: Path) -> None:
    watcher, other = mute(kdc, 0, tmp_path), mute(kdc, 1, tmp_path)
    with silent_realm(kdc, SILENT, tmp_path) as silence:
        silence.hung_up.set()
        checks = list(check_keytabs(cluster(watcher), None, [KeytabPlace(other.principal, str(other.keytab))]))
        asked = b"".join(silence.asked)
    assert (b"silent-0" in asked, b"silent-1" in asked) == (True, False)
    assert [check.findings[0].kind for check in checks] == [FindingKind.UNREACHABLE] * 2
    assert "no KDC of SILENCE.TEST answered an earlier request of this round" in checks[1].findings[0].words


def mute(kdc: Kdc, number: int, folder: Path) -> Identity:
    """Return a principal of the silent realm, with a keytab: each name is as long as the one that it replaces."""
    name, keytab = f"silent-{number}", folder / f"mute{number}.keytab"
    own = kdc.keytab("streamer").read_bytes()
    keytab.write_bytes(own.replace(kdc.plan.realm.encode(), SILENT.encode()).replace(b"streamer", name.encode()))
    keytab.chmod(0o600)
    return Identity(f"{name}@{SILENT}", str(keytab))


def test_a_ticket_without_a_keytab_is_renewed_to_its_end_and_copied_after_a_login(kdc: Kdc, tmp_path: Path) -> None:
    """Its life of 6 s is renewed to 8 s: within the first two seconds a renewal gains time, after that none does."""
    person, source = brief(kdc, "person", 6 * SECOND, 8 * SECOND), tmp_path / "source"
    often = RenewalPolicy(renew_at=0.01)
    tickets.acquire(person, source)
    one = kept(Identity(person.principal, ticket_cache=f"FILE:{source}"), tmp_path / "kept")
    outcomes = [renewed(one)[0].outcome]
    await_that(lambda: ticket_status(one, often).state is TicketState.DUE, "it is due")
    outcomes.append(renewed(one, policy=often)[0].outcome)
    await_that(lambda: renewed(one, policy=often)[0].failing.failures > 0, "a renewal no longer extends it")
    (warned,) = renewed(one, policy=often)
    assert warned.state.serves
    assert warned.failing.failures == 2
    assert "no renewal extends it beyond its end at 20" in warned.error
    await_that(lambda: over(one), "the end of the renewals has passed")
    (ended,) = renewed(one)
    assert (ended.state, ended.alert, ended.retryable) == (TicketState.EXPIRED, True, False)
    assert "it reached the end of its renewals at 20" in ended.error
    with pytest.raises(CredentialError, match=f"copy the ticket cache {source} .*its ticket expired at"):
        tickets.acquire(Identity(person.principal, ticket_cache=str(source)), tmp_path / "copy")
    tickets.acquire(person, source)
    outcomes.append(renewed(one)[0].outcome)
    assert outcomes == [RenewalOutcome.ACQUIRED, RenewalOutcome.RENEWED, RenewalOutcome.ACQUIRED]


def over(one: ManagedTicket) -> bool:
    granting = tickets.inspect(str(one.cache)).granting
    return granting is not None and datetime.now(UTC) > (granting.renew_until or granting.expiry)


def test_a_file_of_another_kind_is_replaced_in_our_own_folder_alone(kdc: Kdc, tmp_path: Path) -> None:
    declaration = {"principal": kdc.principal("streamer"), "keytab": str(kdc.keytab("streamer"))}
    named = {**declaration, "cache": str(tmp_path / "named")}
    for fields, outcome in ((declaration, RenewalOutcome.ACQUIRED), (named, RenewalOutcome.FAILED)):
        asked = TicketDeclaration.from_mapping({"principals": [fields], "folder": str(tmp_path / "ours")})
        one = kept_tickets(cluster(login(kdc, "watcher")), asked)[1]
        one.cache.parent.mkdir(parents=True, exist_ok=True)
        one.cache.write_bytes(NO_CACHE)
        (report,) = renewed(one, force=True)
        assert report.outcome is outcome, report.error
        assert (one.cache.read_bytes() == NO_CACHE) is (outcome is RenewalOutcome.FAILED)
    assert "it was named as the cache: delete it, or name another file" in report.error
