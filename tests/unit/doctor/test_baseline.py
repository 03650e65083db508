"""Accepted findings: read strictly, taken out of a report for their time, and told when nobody needs them."""

from __future__ import annotations

import re
from datetime import date

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.finding import Baseline, Concern, DoctorReport, Finding, NotChecked, Severity, UndecidedCheck
from airflow_kstream.policy.doctor.news import without_accepted

TODAY = date(2026, 5, 10)
CONCERNS = (Concern("orders", "it fails"), Concern("clicks", "it fails"))
FINDING = Finding("token-end", Severity.WARNING, "they end", "a keytab", "its claim", "HDFS", concerns=CONCERNS)
OTHER = Finding("yarn-acls", Severity.WARNING, "every user", "yarn.acl.enable=true", "the conf", "YARN")
REPORT = DoctorReport((FINDING, OTHER))


def baseline(finding: str = "token-end", until: str = "2026-06-30", streams: str = "[]") -> Baseline:
    return Baseline.from_yaml(
        f"accepted:\n- {{finding: {finding}, by: jane, why: known, until: {until}, streams: {streams}}}\n"
    )


def test_an_accepted_finding_is_no_failure_and_is_still_shown() -> None:
    report = without_accepted(DoctorReport((FINDING,)), baseline(), TODAY)
    assert (report.findings, report.failed, report.notes) == ((), False, ())
    (accepted,) = report.accepted
    assert (accepted.finding, accepted.by, accepted.until) == (FINDING, "jane", "2026-06-30")


def test_a_finding_that_is_accepted_for_one_stream_stays_for_the_others() -> None:
    report = without_accepted(REPORT, baseline(streams="[orders]"), TODAY)
    assert [finding.streams for finding in report.findings] == [("clicks",), ()]
    assert [one.finding.streams for one in report.accepted] == [("orders",)]


@pytest.mark.parametrize(("until", "holds"), [("2026-05-11", True), ("2026-05-10", False)])
def test_an_acceptance_ends_at_the_beginning_of_its_day(until: str, holds: bool) -> None:
    report = without_accepted(REPORT, baseline(until=until), TODAY)
    assert bool(report.accepted) is holds
    assert report.notes == (() if holds else (f"the acceptance of token-end by jane ended on {until}",))


def test_an_acceptance_that_fits_nothing_is_a_note() -> None:
    report = without_accepted(REPORT, baseline("rm-recovery:recovery"), TODAY)
    assert report.notes == (
        "nothing is found any longer that rm-recovery:recovery accepts: remove it from the baseline",
    )


def test_an_acceptance_of_a_check_that_does_not_exist_names_the_one_that_was_meant() -> None:
    report = without_accepted(REPORT, baseline("nm-recoverry"), TODAY)
    assert report.notes == (
        "the baseline accepts nm-recoverry: there is no check nm-recoverry (did you mean nm-recovery?)",
    )


def test_an_acceptance_of_what_could_not_be_asked_is_no_note() -> None:
    undecided = UndecidedCheck("rm-recovery", NotChecked("it", "the server is away"))
    report = without_accepted(DoctorReport((), (undecided,)), baseline("rm-recovery:recovery"), TODAY)
    assert report.notes == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("accepted: [{finding: a, by: b, why: c}]", "accepted.0.until is missing"),
        ("accepted: [{finding: a, by: b, why: c, until: soon}]", "until is 'soon'; allowed is a day like 2027-06-30"),
        ("accepted: [{finding: a, by: '', why: c, until: 2027-01-01}]", "accepted.0.by is empty"),
        ("accept: []", "accept: there is no such field; the fields are accepted"),
        (
            "accepted:\n- &one {finding: a, by: b, why: c, until: 2027-01-01}\n- {<<: *one, why: d}",
            "accepted names a twice for the same streams",
        ),
        ("accepted: [{finding: a, by: b, why: c, until: 2027-01-01, streams: [A B]}]", "streams"),
    ],
)
def test_a_wrong_baseline_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(words)):
        Baseline.from_yaml(text)


def test_an_empty_file_accepts_nothing() -> None:
    assert Baseline.from_yaml("").accepted == ()
