"""The doctor's report for people: one row for each root, however many streams it concerns."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from airflow_kstream.model.finding import (
    AcceptedFinding,
    Concern,
    DoctorReport,
    Finding,
    NotChecked,
    Severity,
    UndecidedCheck,
)
from airflow_kstream.views.doctor import findings_table, lines_of_report, sentence, undecided_sentences
from airflow_kstream.views.tables import lines

SINCE = datetime(2026, 5, 14, 3, 12, tzinfo=UTC)
CONCERNS = tuple(Concern(f"s{number}", "its second attempt will fail", SINCE) for number in range(12))
FINDING = Finding(
    "second-attempt", Severity.WARNING, "it fails", "attempts=1", "its [conf]", "YARN-1", concerns=CONCERNS
)
REFUSED = UndecidedCheck(
    "rm-recovery", NotChecked("the configuration", "it answered 403.", "a place in yarn.admin.acl"), ("a",)
)


def test_a_row_has_the_first_streams_with_their_dates_and_how_many_more() -> None:
    shown = " ".join(" ".join(lines(findings_table([FINDING]))).replace("│", " ").split())
    assert "s0: its second attempt will fail from 2026-05-14 03:12 UTC on" in shown
    assert "s9: " in shown
    assert "s10: " not in shown
    assert "and 2 more" in shown
    assert "[its [conf]]" in shown


def test_a_finding_of_nobody_by_name_is_the_cluster_s() -> None:
    assert "the cluster" in " ".join(lines(findings_table([replace(FINDING, concerns=())])))


def test_below_the_table_stand_what_was_accepted_not_asked_and_passed() -> None:
    accepted = AcceptedFinding(FINDING, "jane", "known", "2027-01-01")
    report = DoctorReport((), (REFUSED,), (accepted,), ("yarn-acls",), ("token-end",), ("a note",))
    assert [line.plain for line in lines_of_report(report)] == [
        "accepted until 2027-01-01 by jane: second-attempt: known",
        "rm-recovery (a): the configuration could not be asked, because it answered 403; it needs a place in "
        "yarn.admin.acl",
        "a note",
        "1 checks passed: yarn-acls",
        "1 checks had no stream to look at: token-end",
    ]


def test_one_reason_is_named_once_for_all_checks_and_streams() -> None:
    """In safe mode a NameNode answers nothing, and each check of each stream would say so."""
    safe = "SafeModeException: Name node is in safe mode (http://nn:9870)"
    undecided = [
        UndecidedCheck(check, NotChecked(f"the claim of s{number}", safe), (f"s{number}",))
        for check in ("token-end", "second-attempt")
        for number in range(12)
    ]
    shown, other = undecided_sentences([*undecided[:5], REFUSED, *undecided[5:]])
    assert shown.startswith("token-end, second-attempt (s0, s1, s2, ")
    assert ", s9 and 2 more): the claim of s0, the claim of s1, " in shown
    assert shown.endswith(f"the claim of s9 and 2 more could not be asked, because {safe}")
    assert other.startswith("rm-recovery (a): ")


def test_one_line_for_a_log_has_all_that_a_person_needs() -> None:
    assert sentence(replace(FINDING, concerns=CONCERNS[:1])) == (
        "second-attempt: it fails (s0: its second attempt will fail from 2026-05-14 03:12 UTC on). Fix: attempts=1. "
        "Proof: its [conf]. Source: YARN-1"
    )


def test_a_stream_s_own_sentences_leave_notes_out() -> None:
    note = replace(FINDING, check="speculation", severity=Severity.NOTE)
    assert DoctorReport((FINDING, note)).foretells("s3") == (
        "its second attempt will fail from 2026-05-14 03:12 UTC on (second-attempt)",
    )
