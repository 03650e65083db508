"""The cases: logs with the cause that their source states, and how a verdict on one compares with that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import yaml

from airflow_kstream.model.logs.diagnosis import Diagnosis, DiagnosisOutcome

CASES = Path(__file__).with_name("cases")


class Grade(StrEnum):
    """RIGHT: the verdict is what the source states. PARTLY: another one is named, and the right one beside it.
    UNKNOWN: none is named. ALL_CLEAR: the failure is "nothing failed". WRONG: another cause is named alone.
    """

    RIGHT = "right"
    PARTLY = "partly"
    UNKNOWN = "unknown"
    ALL_CLEAR = "all-clear"
    WRONG = "wrong"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Logs by their names, and what their source says: the cause, or `fine`, or without either that it is unknown.

    The remedy has the text `remedy`; `shows` is in one of the lines that an unknown failure shows.
    """

    name: str
    source: str
    logs: Mapping[str, str]
    cause: str = ""
    fine: bool = False
    remedy: str = ""
    shows: str = ""

    def grade(self, verdict: Diagnosis) -> Grade:
        if self.fine:
            return _OF_FINE[verdict.outcome]
        if verdict.outcome is DiagnosisOutcome.FINE:
            return Grade.ALL_CLEAR
        if not self.cause:
            return Grade.RIGHT if verdict.outcome is DiagnosisOutcome.UNKNOWN else Grade.WRONG
        if verdict.outcome is DiagnosisOutcome.UNKNOWN:
            return Grade.UNKNOWN
        if verdict.cause == self.cause:
            return Grade.RIGHT
        beside = {*verdict.chain, *(step.signature for step in verdict.others)}
        return Grade.PARTLY if self.cause in beside else Grade.WRONG

    def is_helped_by(self, verdict: Diagnosis) -> bool:
        """Return whether the verdict says what its reader should do, or shows the line that he should read."""
        remedy = verdict.signature.remedy if verdict.signature else ""
        shown = any(self.shows in template.first.text for template in verdict.templates)
        return self.remedy in remedy and (shown or not self.shows)


_OF_FINE = {
    DiagnosisOutcome.FINE: Grade.RIGHT,
    DiagnosisOutcome.UNKNOWN: Grade.UNKNOWN,
    DiagnosisOutcome.CAUSE: Grade.WRONG,
}


def all_cases() -> list[Case]:
    """Return the cases of all files, in their order."""
    return [
        Case(name=name, **fields)
        for file in sorted(CASES.glob("*.yaml"))
        for name, fields in yaml.safe_load(file.read_text())["cases"].items()
    ]


def table_of(graded: Iterable[tuple[Case, Diagnosis]]) -> str:
    """Return how many verdicts there are of each grade, by the confidence with which they name a cause."""
    counts = Counter(
        ("healthy" if case.fine else "failed", case.grade(verdict), str(verdict.confidence or "-"))
        for case, verdict in graded
    )
    return "\n".join(
        f"{kind:8} {grade:10} {sure:7} {number:4}" for (kind, grade, sure), number in sorted(counts.items())
    )
