"""A line's form costs nothing: the verdict on a log is the same whatever stands around its lines and before them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest

from airflow_kstream.model.logs.diagnosis import Diagnosis, DiagnosisOutcome
from airflow_kstream.model.logs.signature import SignatureKind
from airflow_kstream.supervise.triage.scan import own_catalogue
from tests.simulated.envelopes import ENVELOPES, HEADS, Wrap
from tests.simulated.logs import DRIVER, diagnosed, died, driver, failing
from tests.triage.score import all_cases

ALL = own_catalogue().signatures
# Beside the end of a job that failed these mean nothing.
_OF_FAILURES = [name for name, each in ALL.items() if each.kind is not SignatureKind.SUCCESS]


def in_a_failed_job(example: str, count: int) -> Mapping[str, str]:
    repeated = "".join(failing(f"10:00:{second:02}", "failed", example) for second in range(count))
    return {DRIVER: driver(repeated, died("10:00:30"))}


@cache
def examples() -> dict[str, Mapping[str, str]]:
    """Each example of the catalogue, at the end of a job in Spark's own form."""
    named = [(name, number) for name in _OF_FAILURES for number in range(len(ALL[name].examples))]
    return {f"{name} {number}": in_a_failed_job(ALL[name].examples[number], ALL[name].count) for name, number in named}


@cache
def cases() -> dict[str, Mapping[str, str]]:
    return {case.name: case.logs for case in all_cases()}


@cache
def plain_verdicts() -> dict[str, Diagnosis]:
    return {name: diagnosed(logs) for name, logs in {**cases(), **examples()}.items()}


def changed(logs: Mapping[str, Mapping[str, str]], wrap: Wrap) -> dict[str, str]:
    """Return the logs on which the verdict differs once they are wrapped, with the other verdict."""
    verdicts = {
        name: (plain_verdicts()[name], diagnosed({file: wrap(text) for file, text in plain.items()}))
        for name, plain in logs.items()
    }
    return {
        name: after.cause or after.outcome.value
        for name, (before, after) in verdicts.items()
        if (before.outcome, before.cause) != (after.outcome, after.cause)
    }


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_what_stands_around_a_line_changes_no_verdict(envelope: str) -> None:
    assert changed(cases(), ENVELOPES[envelope]) == {}
    assert changed(examples(), ENVELOPES[envelope]) == {}


@pytest.mark.parametrize("head", HEADS)
def test_the_head_of_a_record_changes_no_verdict(head: str) -> None:
    """The causes are the catalogue's examples, because not all cases have records in Spark's form."""
    assert changed(examples(), HEADS[head]) == {}


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_the_last_line_of_a_traceback_is_shown_in_any_form(envelope: str) -> None:
    (case,) = (case for case in all_cases() if case.name == "raw-traceback")
    verdict = diagnosed({file: ENVELOPES[envelope](text) for file, text in case.logs.items()})
    assert case.is_helped_by(verdict), verdict.templates


def test_airflow_may_say_much_before_the_first_line_of_a_driver() -> None:
    said = "[2026-03-01T09:00:00.123+0000] {dagbag.py:588} INFO - Filling up the DagBag\n" * 400
    plain = in_a_failed_job("java.io.IOException: No space left on device", 1)[DRIVER]
    verdict = diagnosed({"attempt=1.log": said + ENVELOPES["airflow 2.10"](plain)})
    assert (verdict.cause, verdict.confidence) == ("disk-full", "high")


def test_a_failure_in_any_form_is_never_all_clear() -> None:
    failed = "26/03/01 10:00:00 INFO Job: begins\n26/03/01 10:00:01 ERROR Job: month 2026-02 is closed\n"
    for wrap in (*ENVELOPES.values(), *HEADS.values()):
        assert diagnosed({"job.log": wrap(failed)}).outcome is DiagnosisOutcome.UNKNOWN, wrap(failed)
