"""Keytabs against a real KDC: each fault has a name and a remedy."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from airflow_kstream.clients.kerberos.keytabs import ask_kdc, read
from airflow_kstream.minicluster.kdc import Kdc
from airflow_kstream.model.finding import Severity
from airflow_kstream.model.kerberos.keytab import FindingKind, KeytabFinding, LoginResult
from airflow_kstream.policy.tickets import keytab_findings
from tests.live.realms import shifted, without_kdc

AES128 = "aes128-cts-hmac-sha1-96"


def findings(kdc: Kdc, name: str, *, helped: bool = True) -> dict[FindingKind, KeytabFinding]:
    keytab = read(str(kdc.keytab(name)))
    principal = kdc.principal(name)
    answer = ask_kdc(keytab, principal, [kdc.ticket("gateway")] if helped else [])
    return {finding.kind: finding for finding in keytab_findings(keytab, principal, answer)}


def by_hand(kdc: Kdc, name: str, password: str, number: int) -> None:
    """Make the keytab of the principal from a password."""
    kdc.keytab(name).unlink()
    script = f"addent -password -p {kdc.principal(name)} -k {number} -e {AES128}\n{password}\nwkt {kdc.keytab(name)}\n"
    subprocess.run(["ktutil"], input=script, text=True, check=True, env=kdc.environment(), capture_output=True)


def test_a_keytab_of_the_day_has_no_findings_and_the_kdcs_kvno(kdc: Kdc) -> None:
    kdc.add("sound")
    keytab = read(str(kdc.keytab("sound")))
    began = time.monotonic()
    answer = ask_kdc(keytab, kdc.principal("sound"))
    took = time.monotonic() - began
    assert keytab_findings(keytab, kdc.principal("sound"), answer) == ()
    assert (answer.login, answer.kvno, answer.salt) == (LoginResult.ACCEPTED, 1, b"KSTREAM.TESTsound")
    assert answer.offset is not None
    assert abs(answer.offset.total_seconds()) <= 2 + took


def test_what_is_read_is_what_klist_reads(kdc: Kdc) -> None:
    kdc.add("twice/host.kstream.test")
    kdc.rotate("twice/host.kstream.test")
    keytab = read(str(kdc.keytab("twice/host.kstream.test")))
    listed = subprocess.run(["klist", "-kte", keytab.path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()[3:]]
    assert [(int(row[0]), row[3]) for row in rows] == [(entry.kvno, entry.principal) for entry in keytab.entries]
    assert keytab.entries[0].kvno == 2
    assert all(entry.stamped for entry in keytab.entries)


def test_a_rotated_keytab_is_behind_with_both_numbers_and_the_time_of_rotation(kdc: Kdc) -> None:
    kdc.add("rotated")
    written = read(str(kdc.keytab("rotated"))).version(kdc.principal("rotated"))
    kdc.change_key("rotated")
    kdc.change_key("rotated")
    findings_by_kind = findings(kdc, "rotated")
    assert set(findings_by_kind) == {FindingKind.BEHIND}
    assert written is not None
    assert findings_by_kind[FindingKind.BEHIND].words == (
        f"the KDC has kvno 3, this keytab kvno 1: it was rotated after {written.stamped:%Y-%m-%d %H:%M:%S %Z}"
    )
    assert findings_by_kind[FindingKind.BEHIND].severity is Severity.ERROR
    kdc.export("rotated")
    assert findings(kdc, "rotated") == {}


@pytest.mark.parametrize("preauthentication", ["-requires_preauth", "+requires_preauth"])
def test_an_old_key_is_refused_for_logins_even_where_the_kdc_keeps_it(kdc: Kdc, preauthentication: str) -> None:
    """MIT's KDC keeps the old key for tickets that are sealed with it."""
    name = f"kept{preauthentication}".replace("+", "-with-")
    kdc.add(name)
    kdc.administer([f"modprinc {preauthentication} {name}"])
    kdc.change_key(name, "-keepold")
    keytab = read(str(kdc.keytab(name)))
    assert ask_kdc(keytab, kdc.principal(name)).login is LoginResult.KEY_REFUSED


def test_without_any_ticket_of_the_realm_the_key_is_refused_and_the_kvno_not_known(kdc: Kdc) -> None:
    kdc.add("alone")
    kdc.change_key("alone")
    findings_by_kind = findings(kdc, "alone", helped=False)
    assert set(findings_by_kind) == {FindingKind.KEY_REFUSED, FindingKind.KVNO_NOT_LEARNED}
    assert "most likely it was rotated after" in findings_by_kind[FindingKind.KEY_REFUSED].words
    assert "no ticket of its realm is at hand" in findings_by_kind[FindingKind.KVNO_NOT_LEARNED].words


def test_a_principal_that_may_be_no_service_has_a_kvno_that_is_not_learned(kdc: Kdc) -> None:
    """Active Directory treats users without a service name this way."""
    kdc.add("noservice")
    kdc.administer(["modprinc -allow_svr noservice"])
    findings_by_kind = findings(kdc, "noservice")
    assert {kind: finding.severity for kind, finding in findings_by_kind.items()} == {
        FindingKind.KVNO_NOT_LEARNED: Severity.NOTE
    }


@pytest.mark.parametrize(
    ("option", "kind"),
    [
        ("-allow_tix", FindingKind.LOCKED),
        ("-expire yesterday", FindingKind.EXPIRED),
        ("-pwexpire yesterday", FindingKind.PASSWORD_EXPIRED),
    ],
)
def test_a_principal_that_may_not_log_in_is_a_finding_of_its_own(kdc: Kdc, option: str, kind: FindingKind) -> None:
    name = f"not-{kind.value.replace(' ', '-')}"
    kdc.add(name)
    kdc.administer([f"modprinc {option} {name}"])
    findings_by_kind = findings(kdc, name)
    assert [*findings_by_kind] == [kind]
    assert findings_by_kind[kind].severity is Severity.ERROR
    assert "modprinc" in findings_by_kind[kind].remedy


def test_a_principal_that_was_renamed_is_unknown_and_its_successor_has_another_salt(kdc: Kdc) -> None:
    kdc.add("before")
    kdc.administer(["renprinc -force before after"])
    assert [*findings(kdc, "before")] == [FindingKind.UNKNOWN]
    kdc.export("after")
    findings_by_kind = findings(kdc, "after")
    assert [*findings_by_kind] == [FindingKind.SALT]
    assert "b'KSTREAM.TESTbefore'" in findings_by_kind[FindingKind.SALT].words


def test_an_enctype_that_was_removed_is_named(kdc: Kdc) -> None:
    kdc.add("weak")
    kdc.change_key("weak", f"-e {AES128}:normal")
    findings_by_kind = findings(kdc, "weak")
    assert "aes256-cts-hmac-sha1-96" in findings_by_kind[FindingKind.ENCTYPES_REFUSED].words
    assert FindingKind.BEHIND in findings_by_kind


def test_an_older_kdc_makes_the_keytab_look_ahead(kdc: Kdc) -> None:
    kdc.add("ahead")
    old = Path(f"{kdc.keytab('ahead')}.old")
    shutil.copy(kdc.keytab("ahead"), old)
    kdc.rotate("ahead")
    assert findings(kdc, "ahead") == {}
    kdc.administer(["modprinc -kvno 1 ahead"])
    findings_by_kind = findings(kdc, "ahead")
    assert "this keytab kvno 2" in findings_by_kind[FindingKind.AHEAD].words


@pytest.mark.parametrize("number", [1, 2, 255])
def test_a_number_that_was_written_by_hand_is_a_note_for_the_key_is_the_current_one(kdc: Kdc, number: int) -> None:
    name = f"numbered{number}"
    kdc.add(name)
    kdc.change_key(name)
    kdc.administer([f"cpw -pw third3 {name}"])
    by_hand(kdc, name, "third3", number)
    findings_by_kind = findings(kdc, name)
    assert [finding.severity for finding in findings_by_kind.values()] == [Severity.NOTE]
    words = f"the KDC has kvno 3, this keytab kvno {number}, and its key is the current one"
    assert words in str(findings_by_kind)
    assert "rotated" not in str(findings_by_kind)


def test_a_principal_that_was_made_again_is_named_beside_a_replica_that_lags(kdc: Kdc) -> None:
    kdc.add("again")
    kdc.rotate("again")
    kdc.administer(["delprinc -force again", "addprinc -randkey again"])
    findings_by_kind = findings(kdc, "again")
    assert [*findings_by_kind] == [FindingKind.AHEAD]
    assert findings_by_kind[FindingKind.AHEAD].severity is Severity.ERROR
    assert "the principal was deleted and made again after" in findings_by_kind[FindingKind.AHEAD].words


def test_keys_of_other_times_in_the_same_file_are_what_logins_take(kdc: Kdc) -> None:
    kdc.add("merged")
    kdc.rotate("merged")
    kdc.administer(["delprinc -force merged", "addprinc -randkey merged"])
    kdc.administer([f"ktadd -norandkey -k {kdc.keytab('merged')} merged"])
    findings_by_kind = findings(kdc, "merged")
    assert [*findings_by_kind] == [FindingKind.AHEAD]
    assert (
        "this keytab has keys of 1 and of 2, and logins take the highest" in findings_by_kind[FindingKind.AHEAD].words
    )
    assert "export into a new file" in findings_by_kind[FindingKind.AHEAD].remedy
    kdc.export("merged")
    assert findings(kdc, "merged") == {}


def test_a_key_made_by_hand_is_refused_though_its_number_is_right(kdc: Kdc) -> None:
    kdc.add("handmade")
    by_hand(kdc, "handmade", "wrong", 1)
    findings_by_kind = findings(kdc, "handmade")
    assert "although both have kvno 1" in findings_by_kind[FindingKind.KEY_REFUSED].words
    assert "the KDC's salt is b'KSTREAM.TESThandmade'" in findings_by_kind[FindingKind.KEY_REFUSED].words


@pytest.mark.parametrize(
    ("seconds", "severity"), [(930, Severity.ERROR), (-930, Severity.ERROR), (150, Severity.WARNING)]
)
def test_a_wrong_clock_is_reported_with_its_offset(kdc: Kdc, seconds: int, severity: Severity, tmp_path: Path) -> None:
    name = f"skewed{seconds}".replace("-", "minus")
    kdc.add(name)
    with shifted(kdc, seconds, tmp_path):
        findings_by_kind = findings(kdc, name, helped=False)
    assert {kind: finding.severity for kind, finding in findings_by_kind.items()} == {FindingKind.CLOCK: severity}
    which = "ahead of" if seconds > 0 else "behind"
    assert which in findings_by_kind[FindingKind.CLOCK].words
    assert f"{abs(seconds) // 60}m" in findings_by_kind[FindingKind.CLOCK].words


def test_a_kdc_that_is_away_proves_nothing_about_the_keytab(kdc: Kdc, tmp_path: Path) -> None:
    kdc.add("enduring")
    ticket, keytab = kdc.ticket("gateway"), read(str(kdc.keytab("enduring")))
    with without_kdc(kdc, tmp_path):
        answer = ask_kdc(keytab, kdc.principal("enduring"), [ticket])
    reported = keytab_findings(keytab, kdc.principal("enduring"), answer)
    assert [(finding.kind, finding.severity) for finding in reported] == [(FindingKind.UNREACHABLE, Severity.WARNING)]
