"""A note of what was told of a subject: a small file of a state_dir, which outlives Airflow and its database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

from airflow_kstream.model.clusters.own_folders import DIGITS, file_about
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.event import Ledger
from airflow_kstream.model.versioned import read, write

_VERSION = 1
# The events of a cluster that those who watch its streams see. Each task that finds events has a key of its own.
WATCHED = "watched"
# Bytes of a note: of a fleet of thousands each may have its finding.
LONGEST = 16 << 20


@dataclass(frozen=True)
class ToldSubject:
    """A subject of notes: a stream, or with an empty `stream` what the `key` names of the cluster.

    Airflows that share a state_dir differ in their `installation`, or in the id of their `connection`.
    """

    installation: str
    connection: str
    stream: str = ""
    key: str = ""

    @property
    def file_name(self) -> str:
        """Return the name of its file."""
        # No stream's name has a dot.
        return file_about(self.stream or f"cluster.{self.key}", *astuple(self))


def written_told(subject: ToldSubject, ledger: Ledger, by: str) -> str:
    """Return a note's text. `by` is for people: who is believed is HDFS's owner of the file."""
    return write(_VERSION, {**asdict(subject), "by": by, "told": ledger.to_json()})


def read_told(text: str, subject: ToldSubject) -> Ledger | None:
    """Read a note; None if it can't be understood, or is of another subject."""
    try:
        note = read(text, _VERSION)
    except InvalidInput:
        return None
    return Ledger.from_json(note.get("told")) if note.items() >= asdict(subject).items() else None


def written_kept(subject: ToldSubject, kept: Mapping[str, Any], by: str) -> str:
    """Return the text of what a task keeps for its next run, plain data. It lies beside what was told."""
    return write(_VERSION, {**asdict(subject), "by": by, "kept": kept})


def read_kept(text: str, subject: ToldSubject) -> Mapping[str, Any]:
    """Read what `written_kept` wrote; nothing if it can't be understood, or is of another subject."""
    try:
        note = read(text, _VERSION)
    except InvalidInput:
        return {}
    kept = note.get("kept")
    return kept if isinstance(kept, Mapping) and note.items() >= asdict(subject).items() else {}


def is_told_of(stream: str, name: str) -> bool:
    """Return whether a file of this name is a note of the stream, in whatever installation."""
    return re.fullmatch(rf"{re.escape(stream)}-[0-9a-f]{{{DIGITS}}}", name) is not None
