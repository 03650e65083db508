"""Events: what somebody may have to be told of a stream or a cluster. Each begins once and ends once.

A trouble is what is seen now; an event is what was told of it. A ledger keeps what was told and is not over, in words
of its own: it is stored outside of the process, so that neither a restart nor an upgrade tells anything twice.

What was told of a subject is noted in a small file of a state_dir, which outlives Airflow and its database.

Each event has a heading in docs/runbook.md with its way out, and shares it with the alert that is made of it:

    heading("checkpoint_changed") == heading("KstreamCheckpointChanged") == "Checkpoint changed"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from html import escape
from textwrap import shorten
from typing import Any

from airflow_kstream.model.clusters.authors import DIGITS, file_about
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.names import called
from airflow_kstream.model.plain import as_mapping, as_moment, as_text, as_whole, list_of, plain
from airflow_kstream.model.printable import printable_line
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.versioned import read, write

_PAGE = "runbook.html"
_ALERTS = "Kstream"
_WORD = re.compile(r"[A-Z][a-z]*|[a-z]+")

_VERSION = 1
# The events of a cluster that those who watch its streams see. Each task that finds events has a key of its own.
WATCHED = "watched"
# Bytes of a note: of a fleet of thousands each may have its finding.
LONGEST = 16 << 20

# Characters of the cause that a ledger keeps: the begin's message has all of it.
_KEPT = 200


class EventKind(StrEnum):
    """The subject matter of an event. The values are stored, and notifiers compare them: they stay as they are."""

    OVERDUE = "restart_overdue"
    BLOCKED = "restart_blocked"
    BREAKER = "breaker_open"
    STALLED = "stalled"
    STARVING = "nothing_works"
    NOT_REPLACEABLE = "not_replaceable"
    KEEPER = "keeper_silent"
    CHANGED = "checkpoint_changed"
    QUEUED = "queued_too_long"
    KILLED = "waits_for_a_person"
    FROZEN = "frozen_past_its_time"
    FORMER_SPEC = "former_spec"
    NO_CHECKPOINT = "no_checkpoint"
    BLIND = "blind"
    KEYTAB_ROTATED = "keytab_rotated"
    NOT_REFRESHED = "not_refreshed"
    UNREACHABLE = "cluster_unreachable"
    ENVIRONMENT = "environment"
    UNDECLARED = "undeclared"
    UNWATCHED = "nobody_watches"
    TICKET = "ticket_not_renewed"
    KEYTAB = "keytab_unusable"
    STUCK = "stuck_files_left_alone"
    FINDING = "doctor_finding"


@dataclass(frozen=True)
class Trouble:
    """A state that somebody should know of. `about` tells troubles of one kind apart: a principal, a server's name.

    `foretold` is what else the doctor expects of the stream: the message has it, and nothing keeps it.
    """

    kind: EventKind
    why: str
    about: str = ""
    foretold: str = ""

    @property
    def key(self) -> tuple[EventKind, str]:
        return self.kind, self.about


@dataclass(frozen=True)
class Event:
    """The begin of an event, or its end if `until` is set. Without a `stream` it is the cluster's.

    Times are of the host that saw it. `cluster` is the connection's id, `app_name` what people call the stream, if that
    is known and not its name. `foretold` is as in `Trouble`.
    """

    kind: EventKind
    cluster: str
    stream: str
    since: datetime
    why: str
    about: str = ""
    until: datetime | None = None
    app_name: str = ""
    foretold: str = ""

    @property
    def ended(self) -> bool:
        return self.until is not None

    @property
    def key(self) -> tuple[EventKind, str]:
        return self.kind, self.about

    @property
    def subject(self) -> str:
        return f"{self.cluster}/{called(self.stream, self.app_name)}" if self.stream else self.cluster

    @property
    def words(self) -> str:
        """Return the message: one sentence about the subject, with the cause at a begin, on one line.

        It quotes what others wrote, such as a driver's error: see `in_all_forms` for what renders markup.
        """
        begins, ends = WORDS[self.kind]
        about = f" ({self.about})" if self.about else ""
        if self.until is None:
            return _shown(f"{self.subject}: {begins}{about}: {self._whole}")
        return _shown(f"{self.subject}: {ends}{about}, after {format_duration(self.until - self.since)}")

    @property
    def _whole(self) -> str:
        return f"{self.why}; foretold: {self.foretold}" if self.foretold else self.why

    def to_json(self) -> dict[str, Any]:
        """Return plain data: times in ISO 8601, `lasted` in seconds, texts as one line, words `in_all_forms`."""
        lasted: timedelta | None = self.until - self.since if self.until else None
        return {
            "kind": self.kind.value,
            "ended": self.ended,
            "cluster": self.cluster,
            "stream": self.stream or None,
            "app_name": _shown(self.app_name) or None,
            "about": _shown(self.about),
            "since": self.since.isoformat(),
            "until": self.until.isoformat() if self.until else None,
            "lasted": lasted.total_seconds() if lasted is not None else None,
            "why": _shown(self._whole),
            **in_all_forms(self.words),
        }


def in_all_forms(words: str) -> Mapping[str, str]:
    """Return a message as it is, as text of HTML, and for Slack, where <!channel> and <URL|words> would be markup."""
    return {"words": words, "html": escape(words), "mrkdwn": escape(words, quote=False)}


@dataclass(frozen=True)
class LastingEvent:
    """An event that began and has not ended."""

    kind: EventKind
    since: datetime
    why: str
    about: str = ""

    @property
    def key(self) -> tuple[EventKind, str]:
        return self.kind, self.about


@dataclass(frozen=True)
class EndedEvent:
    """An event that began and ended."""

    kind: EventKind
    since: datetime
    until: datetime
    why: str
    about: str = ""


@dataclass(frozen=True)
class Ledger:
    """The events of one subject that were told and last. The newer of two ledgers has more `changes`.

    `past` are the last ones that ended, oldest first. One that is `alone` was continued by somebody who could not read
    what others had told. `under_way` is how many more changes were on their way when it was handed on.
    """

    lasting: Mapping[tuple[EventKind, str], LastingEvent] = field(default_factory=dict)
    changes: int = 0
    past: tuple[EndedEvent, ...] = ()
    alone: bool = False
    under_way: int = 0

    @property
    def kinds(self) -> frozenset[EventKind]:
        return frozenset(event.kind for event in self.lasting.values())

    def to_json(self) -> dict[str, Any]:
        """Return plain data: times in ISO 8601, each cause cut to a line."""
        told = [
            {"kind": event.kind.value, "about": event.about, "since": event.since.isoformat(), "why": _line(event.why)}
            for event in self.lasting.values()
        ]
        over = [{**plain(event), "why": _line(event.why)} for event in self.past]
        more = {"past": over, "alone": self.alone, "under_way": self.under_way}
        rare = {name: value for name, value in more.items() if value}
        return {"version": 1, "changes": self.changes, "lasting": told, **rare}

    @classmethod
    def from_json(cls, data: object) -> Ledger:
        """Read what `to_json` wrote. What can't be read, such as a kind of a later version, is left out."""
        if not isinstance(data, Mapping) or not isinstance(data.get("lasting"), list):
            return cls()
        read, over = list_of(_lasting)(data["lasting"]), list_of(_over)(data.get("past"))
        changes, under_way = (as_whole(data.get(name)) or 0 for name in ("changes", "under_way"))
        return cls({event.key: event for event in read}, changes, tuple(over), data.get("alone") is True, under_way)


# How each kind begins and ends, after its subject.
WORDS: Mapping[EventKind, tuple[str, str]] = {
    EventKind.OVERDUE: ("its planned restart is overdue", "its restart is overdue no longer"),
    EventKind.BLOCKED: ("its restart is blocked", "its restart is blocked no longer"),
    EventKind.BREAKER: ("its circuit breaker is open", "its circuit breaker is closed"),
    EventKind.STALLED: ("it runs and makes no progress", "it is stalled no longer"),
    EventKind.STARVING: ("it runs, and no process of it works", "its processes work again"),
    EventKind.NOT_REPLACEABLE: ("a process that it loses can't be replaced", "a process that it loses can be replaced"),
    EventKind.KEEPER: ("nobody confirms its new processes' tokens", "its new processes' tokens are confirmed"),
    EventKind.CHANGED: ("its checkpoint changed while it runs", "its checkpoint goes on where it was"),
    EventKind.QUEUED: ("it waits in YARN's queue", "it waits in YARN's queue no longer"),
    EventKind.KILLED: ("a person killed it, and it waits for one", "it waits for a person no longer"),
    EventKind.FROZEN: ("a freeze keeps it from its restart", "no freeze keeps it from its restart"),
    EventKind.FORMER_SPEC: ("it runs as it was declared before", "it no longer runs as it was declared before"),
    EventKind.NO_CHECKPOINT: ("it writes no checkpoint where one is declared", "it writes the declared checkpoint"),
    EventKind.BLIND: ("nothing can be concluded about it", "it is seen again"),
    EventKind.KEYTAB_ROTATED: ("its keytab was rotated", "it no longer runs with a rotated keytab"),
    EventKind.NOT_REFRESHED: ("it gets no fresh tokens", "it gets fresh tokens"),
    EventKind.UNREACHABLE: ("the cluster is unreachable, so none of its streams is seen", "the cluster is reachable"),
    EventKind.ENVIRONMENT: ("streams end or starve without a fault of theirs", "the streams work again"),
    EventKind.UNDECLARED: ("a stream runs and is declared no longer", "the stream no longer runs undeclared"),
    EventKind.UNWATCHED: ("nobody watches a stream", "the stream is watched again"),
    EventKind.TICKET: ("a ticket is not renewed", "the ticket is renewed"),
    EventKind.KEYTAB: ("a keytab can't be used", "the keytab can be used"),
    EventKind.STUCK: ("stuck files are left alone", "no stuck file is left alone"),
    EventKind.FINDING: ("something will go wrong", "it will no longer go wrong"),
}


def _lasting(item: object) -> LastingEvent | None:
    read = as_mapping(item)
    kind, since = as_text(read.get("kind")), as_moment(read.get("since"))
    if kind not in [*EventKind] or since is None:
        return None
    return LastingEvent(EventKind(kind), since, as_text(read.get("why")), as_text(read.get("about")))


def _over(item: object) -> EndedEvent | None:
    event, until = _lasting(item), as_moment(as_mapping(item).get("until"))
    return EndedEvent(event.kind, event.since, until, event.why, event.about) if event and until else None


def _line(text: str) -> str:
    return shorten(_shown(text), _KEPT, placeholder="…")


def _shown(text: str) -> str:
    """Return what others wrote as it may leave: one line, with what looks like a secret masked."""
    return printable_line(without_secrets(text))


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


def heading(name: str) -> str:
    """Return the words of an event's kind, or of an alert's name, as a heading."""
    return " ".join(word.lower() for word in _WORD.findall(name.removeprefix(_ALERTS))).capitalize()


def anchor(name: str) -> str:
    """Return the anchor of the heading, as GitHub and the site make it."""
    return heading(name).lower().replace(" ", "-")


def link(docs_url: str, name: str) -> str:
    """Return the address of the heading on the site at `docs_url`; empty where nobody serves one."""
    return f"{docs_url.rstrip('/')}/{_PAGE}#{anchor(name)}" if docs_url else ""
