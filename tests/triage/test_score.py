"""The score: what triage makes of logs whose cause a source states. `./kstream test -m triage` prints it as a table."""

from __future__ import annotations

from functools import cache

import pytest

from airflow_kstream.model.logs.diagnosis import Confidence, Diagnosis
from airflow_kstream.supervise.triage.scan import own_catalogue
from tests.simulated.logs import diagnosed
from tests.triage.score import Case, Grade, all_cases, table_of

FAILED = [case for case in all_cases() if not case.fine]
HEALTHY = [case for case in all_cases() if case.fine]


@cache
def verdicts() -> list[tuple[Case, Diagnosis]]:
    return [(case, diagnosed(case.logs)) for case in all_cases()]


def with_grade(*grades: Grade) -> list[tuple[Case, Diagnosis]]:
    return [(case, verdict) for case, verdict in verdicts() if case.grade(verdict) in grades]


def test_no_verdict_is_a_confident_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{table_of(verdicts())}")
    mistakes = with_grade(Grade.WRONG)
    assert {case.name: verdict.cause for case, verdict in mistakes if verdict.confidence is not Confidence.LOW} == {}


def test_no_failure_is_all_clear() -> None:
    assert [case.name for case, _ in with_grade(Grade.ALL_CLEAR)] == []


def test_nine_failures_in_ten_get_the_right_cause() -> None:
    others = {case.name: verdict.cause for case, verdict in verdicts() if case.grade(verdict) is not Grade.RIGHT}
    assert len(others) <= len(all_cases()) / 10, others


def test_a_healthy_log_names_no_cause_and_is_hardly_ever_unknown() -> None:
    graded = {case.name: case.grade(verdict) for case, verdict in verdicts() if case.fine}
    assert Grade.WRONG not in graded.values(), graded
    assert sum(grade is Grade.UNKNOWN for grade in graded.values()) <= len(HEALTHY) / 10


def test_a_right_verdict_says_what_to_do_or_what_to_read() -> None:
    assert [case.name for case, verdict in with_grade(Grade.RIGHT) if not case.is_helped_by(verdict)] == []


def test_the_cases_are_many_and_of_many_kinds() -> None:
    causes = {case.cause for case in FAILED}
    assert causes - {""} <= own_catalogue().signatures.keys()
    assert (len(FAILED) >= 60, len(HEALTHY) >= 30, len(causes) >= 40) == (True, True, True)
    assert len({case.name for case in all_cases()}) == len(all_cases())
