"""The diagnosis of an application from its logs: the cause, the line that proves it, and what followed from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from airflow_kstream.model.logs.signature import Signature
from airflow_kstream.model.plain import fields_of


class DiagnosisOutcome(StrEnum):
    """CAUSE: one cause is named. UNKNOWN: something failed, and no signature explains it. FINE: nothing failed."""

    CAUSE = "cause"
    UNKNOWN = "unknown"
    FINE = "fine"


class Confidence(StrEnum):
    """HIGH: the cause was active until the end that the logs show, and nothing competes with it. MEDIUM: the logs don't
    show the end, or tell no times, or another cause was active as well. LOW: it may as well be another one."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Role(StrEnum):
    """The program that wrote a log; DAEMON is any other server: Kafka, ZooKeeper, a JournalNode, a KDC."""

    DRIVER = "driver"
    EXECUTOR = "executor"
    JOBMANAGER = "JobManager"
    TASKMANAGER = "TaskManager"
    NODEMANAGER = "NodeManager"
    RESOURCEMANAGER = "ResourceManager"
    NAMENODE = "NameNode"
    DATANODE = "DataNode"
    DAEMON = "daemon"
    UNKNOWN = "unknown"

    @property
    def is_daemon(self) -> bool:
        """Return whether it serves all applications, and goes on when one ends."""
        return self in _DAEMONS


_DAEMONS = (Role.NODEMANAGER, Role.RESOURCEMANAGER, Role.NAMENODE, Role.DATANODE, Role.DAEMON)


@dataclass(frozen=True)
class LogSource:
    """A log: the file that it is in, its container if it is one's, and its writer."""

    file: str
    container: str = ""
    role: Role = Role.UNKNOWN

    def __str__(self) -> str:
        return self.container or self.file


@dataclass(frozen=True)
class Mark:
    """A line of a log. `when` is its record's moment, None if that has no date; `level` that record's."""

    source: LogSource
    line: int
    text: str
    when: datetime | None = None
    level: str = ""
    # Of the record that the line belongs to: its first line's number, 0 if that is not known.
    record: int = 0

    def to_json(self) -> dict[str, Any]:
        plain = fields_of(self)
        return {**plain, "source": fields_of(self.source)}


@dataclass(frozen=True)
class Sighting:
    """The lines of one signature in one log: the marks that were kept, in their order, and how many there are.

    Between the two marks of `gap` there were others, which were not kept.
    """

    signature: str
    marks: tuple[Mark, ...]
    count: int
    gap: tuple[Mark, Mark] | None = None

    @property
    def first(self) -> Mark:
        return self.marks[0]

    @property
    def last(self) -> Mark:
        return self.marks[-1]

    @property
    def source(self) -> LogSource:
        return self.first.source


@dataclass(frozen=True)
class Template:
    """Lines that differ in their variables only: one of them, how often they came, and where first."""

    text: str
    count: int
    first: Mark
    # Whether its log had none of them before its last part.
    new: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text, "count": self.count, "new": self.new, "first": self.first.to_json()}


@dataclass(frozen=True)
class Step:
    """A line of the timeline: what was seen first there, in how many logs, and how often."""

    signature: str
    title: str
    kind: str
    mark: Mark
    logs: int
    count: int
    until: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        plain = fields_of(self)
        return {**plain, "mark": self.mark.to_json()}


@dataclass(frozen=True)
class ScanExtent:
    """The extent of the logs that were read, and what could not be read."""

    logs: int = 0
    lines: int = 0
    size: int = 0
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """The verdict on the logs of an application. The cause's id, signature and confidence are empty if none is named.

    `chain` leads from the cause to what it ended in. `others` are causes that were active as well, `earlier` are
    troubles that were over by then. `templates` are the lines that no signature knows. `hint` says where to look next.
    """

    outcome: DiagnosisOutcome
    cause: str = ""
    signature: Signature | None = None
    confidence: Confidence | None = None
    evidence: Mark | None = None
    chain: tuple[str, ...] = ()
    timeline: tuple[Step, ...] = ()
    others: tuple[Step, ...] = ()
    earlier: tuple[Step, ...] = ()
    templates: tuple[Template, ...] = ()
    hint: str = ""
    scanned: ScanExtent = ScanExtent()

    @property
    def title(self) -> str:
        return self.signature.title if self.signature else _TITLES[self.outcome]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        known = self.signature
        return {
            "outcome": self.outcome.value,
            "cause": self.cause or None,
            "title": self.title,
            "confidence": self.confidence.value if self.confidence else None,
            "means": known.means if known else "",
            "remedy": known.remedy if known else "",
            "references": list(known.references) if known else [],
            "versions": known.versions if known else None,
            "evidence": self.evidence.to_json() if self.evidence else None,
            "chain": list(self.chain),
            "timeline": [step.to_json() for step in self.timeline],
            "others": [step.to_json() for step in self.others],
            "earlier": [step.to_json() for step in self.earlier],
            "templates": [template.to_json() for template in self.templates],
            "hint": self.hint,
            "scanned": fields_of(self.scanned),
        }


_TITLES = {
    DiagnosisOutcome.CAUSE: "",
    DiagnosisOutcome.UNKNOWN: "unknown: it failed, and no signature explains it",
    DiagnosisOutcome.FINE: "nothing failed in these logs",
}
