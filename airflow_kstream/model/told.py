"""A note of what was told of a subject: a small file of a state_dir, which outlives Airflow and its database."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from urllib.parse import quote

from airflow_kstream.model.event import Ledger

# The events of a cluster that those who watch its streams see. Each task that finds events has a key of its own.
WATCHED = "watched"
# HDFS's names have at most 255 bytes.
_READABLE, _DIGITS = 100, 32
_DRAFT = ".told-"


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
        """Return the name of its file: readable for people, and made unique by a digest of all that it is."""
        told = json.dumps([self.installation, self.connection, self.stream, self.key])
        digest = hashlib.sha256(told.encode()).hexdigest()[:_DIGITS]
        # No stream's name has a dot.
        readable = self.stream or f"cluster.{quote(self.key, safe='')}"[:_READABLE]
        return f"{readable}-{digest}"


def written_told(subject: ToldSubject, ledger: Ledger, by: str) -> str:
    """Return a note's text. `by` is for people: who is believed is HDFS's owner of the file."""
    return json.dumps({"version": 1, **asdict(subject), "by": by, "told": ledger.to_json()}, indent=1)


def read_told(text: str, subject: ToldSubject) -> Ledger | None:
    """Read a note; None if it can't be understood, or is of another subject."""
    try:
        note = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(note, Mapping) or any(note.get(name) != value for name, value in asdict(subject).items()):
        return None
    return Ledger.from_json(note.get("told"))


def told_draft(nonce: str) -> str:
    """Return the name of a note that is being written."""
    return f"{_DRAFT}{nonce}"


def is_told_draft(name: str) -> bool:
    return name.startswith(_DRAFT)


def is_told_of(stream: str, name: str) -> bool:
    """Return whether a file of this name is a note of the stream, in whatever installation."""
    return re.fullmatch(rf"{re.escape(stream)}-[0-9a-f]{{{_DIGITS}}}", name) is not None
