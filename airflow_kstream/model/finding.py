"""Findings of the doctor: what will happen, to whom and from when, with the fix, the proof and the source.

A finding is proven by what servers, files and tools said. What could not be asked is a value of its own, and never a
finding. A person may accept a finding, and writes down who accepts it, why, and until when.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any

from annotated_types import MaxLen

from airflow_kstream.model.declared import read
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import STRICT, Line, StreamName, must
from airflow_kstream.model.plain import fields_of
from airflow_kstream.model.yaml_text import read_mapping


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


def check_of(finding_id: str) -> str:
    """Return the check that a finding of this id comes from."""
    return finding_id.partition(":")[0]


@dataclass(frozen=True)
class Concern:
    """The meaning of a finding for one stream. `since` is the moment from which it holds; None if it holds already."""

    stream: str
    words: str
    since: datetime | None = None

    @property
    def sentence(self) -> str:
        """Return the words with the date."""
        return f"{self.words} from {self.since:%Y-%m-%d %H:%M} UTC on" if self.since else self.words


@dataclass(frozen=True)
class Finding:
    """One cause of trouble. `about` tells findings of one check apart: a server, a defect, a principal.

    `words` say what will happen, `fix` is the line of configuration or the command that ends it, `proof` is what was
    said and by whom, `source` is where the rule comes from. Without `concerns` it is the whole cluster's.
    """

    check: str
    severity: Severity
    words: str
    fix: str
    proof: str
    source: str
    about: str = ""
    concerns: tuple[Concern, ...] = ()

    @property
    def id(self) -> str:
        """Identify its cause from one run to the next."""
        return f"{self.check}:{self.about}" if self.about else self.check

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(concern.stream for concern in self.concerns)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, times in ISO 8601."""
        return {"id": self.id, **fields_of(self)}


@dataclass(frozen=True)
class NotChecked:
    """A fact that could not be asked. `right` is what the asking principal lacks, empty if it lacks none."""

    what: str
    why: str
    right: str = ""

    @property
    def sentence(self) -> str:
        needed = f"; it needs {self.right}" if self.right else ""
        return f"{self.what} could not be asked, because {self.why.rstrip('.')}{needed}"


@dataclass(frozen=True)
class UndecidedCheck:
    """A check that reached no conclusion, for want of a fact; for `streams` alone, or for the whole cluster."""

    check: str
    fact: NotChecked
    streams: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return fields_of(self)


@dataclass(frozen=True)
class AcceptedFinding:
    """A finding that a person accepted: who, why and until when."""

    finding: Finding
    by: str
    why: str
    until: str

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**self.finding.to_json(), "accepted": {"by": self.by, "why": self.why, "until": self.until}}


@dataclass(frozen=True)
class DoctorReport:
    """The result of a run: what was found, what a person accepted, what stayed undecided, and which checks passed.

    `idle` are checks of streams that had no stream to look at. `notes` are about the baseline itself: acceptances that
    ended, or that nothing needs any longer. `blind` is whether neither HDFS nor YARN told its configuration.
    """

    findings: tuple[Finding, ...]
    undecided: tuple[UndecidedCheck, ...] = ()
    accepted: tuple[AcceptedFinding, ...] = ()
    passed: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    blind: bool = False

    @property
    def failed(self) -> bool:
        """Return whether something was found that is more than a note, or the servers told nothing."""
        return self.blind or any(finding.severity is not Severity.NOTE for finding in self.findings)

    def of(self, stream: str) -> tuple[tuple[Finding, Concern], ...]:
        """Return what concerns this stream by name, with its own words and date."""
        return tuple(
            (finding, concern) for finding in self.findings for concern in finding.concerns if concern.stream == stream
        )

    def foretells(self, stream: str) -> tuple[str, ...]:
        """Return what this stream has to expect, without notes: each as one sentence with its date and its finding."""
        return tuple(
            f"{concern.sentence} ({finding.id})"
            for finding, concern in self.of(stream)
            if finding.severity is not Severity.NOTE
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "findings": [finding.to_json() for finding in self.findings],
            "accepted": [one.to_json() for one in self.accepted],
            "undecided": [one.to_json() for one in self.undecided],
            "passed": list(self.passed),
            "idle": list(self.idle),
            "notes": list(self.notes),
            "blind": self.blind,
        }


def by_severity(findings: Collection[Finding]) -> tuple[Finding, ...]:
    """Return errors first, and in each severity by id."""
    order = list(Severity)
    return tuple(sorted(findings, key=lambda finding: (order.index(finding.severity), finding.id)))


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


# As YAML leaves it: text.
Day = Annotated[str, must(_is_day, "a day like 2027-06-30")]


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """One accepted finding. `finding` is its id, such as `rm-privileges`; without `streams` it is accepted for all.

    From the day `until` on it is reported again.
    """

    __pydantic_config__ = STRICT

    finding: Line
    by: Line
    why: Line
    until: Day
    streams: Annotated[tuple[StreamName, ...], MaxLen(1000)] = ()

    @property
    def ends(self) -> date:
        return date.fromisoformat(self.until)


@dataclass(frozen=True)
class Baseline:
    """The content of the file:

    accepted:
      - finding: nm-recovery
        by: jane@example.com
        why: NodeManagers are restarted in the streams' maintenance window only
        until: 2027-06-30
        streams: [orders]
    """

    __pydantic_config__ = STRICT

    accepted: Annotated[tuple[Acceptance, ...], MaxLen(1000)] = ()

    def __post_init__(self) -> None:
        keys = [(one.finding, one.streams) for one in self.accepted]
        twice = sorted({finding for finding, streams in keys if keys.count((finding, streams)) > 1})
        if twice:
            raise InvalidInput(f"accepted names {', '.join(twice)} twice for the same streams")

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> Baseline:
        """Read plain data. Raises InvalidInput: when a field is wrong; the error names each."""
        return read(Baseline, fields)

    @classmethod
    def from_yaml(cls, text: str) -> Baseline:
        """Read YAML; an empty text accepts nothing. Raises InvalidInput: also when the text is not YAML."""
        return cls.from_mapping(read_mapping(text))
