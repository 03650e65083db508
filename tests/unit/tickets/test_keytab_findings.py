"""Findings from a keytab and the KDC's answer, and their remedies."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.finding import Severity
from airflow_kstream.model.kerberos.keytab import FindingKind, KdcStatus, KeytabEntry, KeytabFile, LoginResult
from airflow_kstream.policy.tickets import keytab_findings

PRINCIPAL = "streamer/edge@EXAMPLE.COM"
WRITTEN = datetime(2026, 1, 1, 8, 30, tzinfo=UTC)
KEYTAB = KeytabFile("/s.keytab", 0o600, "streamer", (KeytabEntry(PRINCIPAL, 3, 18, WRITTEN, "digest"),))
FINE = KdcStatus(LoginResult.ACCEPTED, kvno=3, salt=b"EXAMPLE.COMstreameredge", offset=timedelta(seconds=2))
ERROR, WARNING, NOTE = Severity


@pytest.mark.parametrize(
    ("answer", "kind", "severity", "words"),
    [
        ({"login": LoginResult.KEY_REFUSED, "kvno": 5}, FindingKind.BEHIND, ERROR, "after 2026-01-01 08:30:00 UTC"),
        ({"kvno": 5}, FindingKind.BEHIND, NOTE, "its key is the current one: somebody wrote the number"),
        (
            {"kvno": 2},
            FindingKind.AHEAD,
            NOTE,
            "the KDC has kvno 2, this keytab kvno 3, and its key is the current",
        ),
        (
            {"login": LoginResult.KEY_REFUSED, "kvno": 1},
            FindingKind.AHEAD,
            ERROR,
            "deleted and made again after 2026-01-01 08:30:00 UTC, or the KDC that answered is a replica",
        ),
        ({"login": LoginResult.KEY_REFUSED}, FindingKind.KEY_REFUSED, ERROR, "although both have kvno 3"),
        (
            {"login": LoginResult.KEY_REFUSED, "kvno": None},
            FindingKind.KEY_REFUSED,
            ERROR,
            "most likely it was rotated",
        ),
        ({"login": LoginResult.UNKNOWN}, FindingKind.UNKNOWN, ERROR, f"does not know {PRINCIPAL}"),
        ({"login": LoginResult.EXPIRED}, FindingKind.EXPIRED, ERROR, "has expired"),
        ({"login": LoginResult.LOCKED}, FindingKind.LOCKED, ERROR, "locked"),
        ({"login": LoginResult.PASSWORD_EXPIRED}, FindingKind.PASSWORD_EXPIRED, ERROR, "can't change it"),
        ({"login": LoginResult.ENCTYPES_REFUSED}, FindingKind.ENCTYPES_REFUSED, ERROR, "none of the keytab's enctypes"),
        (
            {"login": LoginResult.NO_KEY},
            FindingKind.ENCTYPES_REFUSED,
            ERROR,
            "in an enctype that this host and the KDC",
        ),
        ({"login": LoginResult.SKEWED}, FindingKind.CLOCK, ERROR, "refuses this host's clock"),
        ({"login": LoginResult.UNREACHABLE}, FindingKind.UNREACHABLE, WARNING, "nothing is concluded"),
        ({"login": LoginResult.REFUSED, "detail": "policy"}, FindingKind.REFUSED, ERROR, "refuses a login of"),
        ({"refused_enctypes": (23,)}, FindingKind.ENCTYPES_REFUSED, WARNING, "arcfour-hmac"),
        ({"salt": b"EXAMPLE.COMold"}, FindingKind.SALT, NOTE, "b'EXAMPLE.COMold'"),
        ({"offset": timedelta(minutes=-6)}, FindingKind.CLOCK, ERROR, "6m behind"),
        ({"offset": timedelta(seconds=90)}, FindingKind.CLOCK, WARNING, "1m 30s ahead of"),
        ({"kvno": None, "kvno_unknown": "no SPN"}, FindingKind.KVNO_NOT_LEARNED, NOTE, "no SPN"),
    ],
)
def test_each_answer_of_the_kdc_is_one_finding(
    answer: dict[str, object], kind: FindingKind, severity: Severity, words: str
) -> None:
    (finding,) = keytab_findings(KEYTAB, PRINCIPAL, replace(FINE, **answer))  # type: ignore[arg-type]
    assert (finding.kind, finding.severity) == (kind, severity)
    assert words in finding.words
    assert finding.remedy


def test_a_keytab_that_fits_has_no_finding() -> None:
    assert keytab_findings(KEYTAB, PRINCIPAL, FINE) == ()


def test_a_key_that_worked_later_than_it_was_written_was_rotated_after_that() -> None:
    answer = replace(FINE, login=LoginResult.KEY_REFUSED, kvno=5)
    (finding,) = keytab_findings(KEYTAB, PRINCIPAL, answer, WRITTEN + timedelta(days=2))
    assert "it was rotated after 2026-01-03 08:30:00 UTC" in finding.words


def test_errors_come_before_warnings_and_notes() -> None:
    answer = replace(FINE, login=LoginResult.LOCKED, refused_enctypes=(18,), salt=b"other")
    assert [finding.severity for finding in keytab_findings(KEYTAB, PRINCIPAL, answer)] == [ERROR, WARNING, NOTE]


def test_a_keytab_without_the_principal_names_those_that_it_has() -> None:
    (finding,) = keytab_findings(KEYTAB, "nobody@EXAMPLE.COM", None)
    assert finding.kind is FindingKind.NO_ENTRY
    assert PRINCIPAL in finding.words


@pytest.mark.parametrize(("mode", "severity"), [(0o604, ERROR), (0o640, WARNING), (0o400, None)])
def test_a_keytab_readable_by_others_is_a_finding(mode: int, severity: Severity | None) -> None:
    findings = keytab_findings(replace(KEYTAB, mode=mode), PRINCIPAL, FINE)
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    assert all(f"{mode:04o}" in finding.words for finding in findings)


def test_only_silence_and_clock_skew_are_not_lasting_failures() -> None:
    assert {login for login in LoginResult if not login.lasting} == {
        LoginResult.ACCEPTED,
        LoginResult.UNREACHABLE,
        LoginResult.SKEWED,
    }
