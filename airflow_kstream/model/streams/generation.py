"""Generations of a stream: their ids, tags and claims, the desired state, and what pages draw of their lives."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.fields import is_stream_name
from airflow_kstream.model.kerberos.keytab import KeyVersion
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.plain import Group, fields_of
from airflow_kstream.model.streams.contract import fence_name
from airflow_kstream.model.streams.horizon import Horizon, LaunchToken
from airflow_kstream.model.streams.resume import ResumePoint, StartWord
from airflow_kstream.model.versioned import UnknownSpec

if TYPE_CHECKING:
    from airflow_kstream.model.streams.stream import StreamSpec

ALL_STREAMS_TAG = "kstream"
_STREAM_TAG = f"{ALL_STREAMS_TAG}-stream-"


@cache
def _digest(state_dir: str) -> str:
    return hashlib.sha256(state_dir.rstrip("/").encode()).hexdigest()[:8]


@dataclass(frozen=True)
class StreamId:
    """A name plus a short hash of `state_dir`, so that two installations don't adopt each other's streams."""

    name: str
    state_dir: str

    @classmethod
    def of_tags(cls, tags: frozenset[str], state_dir: str) -> StreamId | None:
        """Return the stream of this state_dir that an application's tags name, None if they name none of it."""
        names = (tag.removeprefix(_STREAM_TAG).rpartition("-")[0] for tag in tags if tag.startswith(_STREAM_TAG))
        streams = (cls(name, state_dir) for name in sorted(names) if is_stream_name(name))
        return next((stream for stream in streams if stream.tag in tags), None)

    def __str__(self) -> str:
        return self._text

    # A look names the stream and its files some ten times.
    @cached_property
    def _text(self) -> str:
        return f"{self.name}-{_digest(self.state_dir)}"

    @property
    def folder(self) -> str:
        return f"{self.state_dir.rstrip('/')}/{self}"

    @property
    def tag(self) -> str:
        return f"{_STREAM_TAG}{self}"

    def generation_tag(self, generation: int) -> str:
        return f"{ALL_STREAMS_TAG}-gen-{self}-{generation}"

    def tags(self, generation: int) -> tuple[str, str, str]:
        """Return the tags. YARN lower-cases them, takes ten of at most 100 ASCII characters, and matches them whole."""
        return ALL_STREAMS_TAG, self.tag, self.generation_tag(generation)

    def generation_of(self, tags: frozenset[str]) -> int | None:
        """Return the generation that an application's tags name, or None when it is not of this stream."""
        start = self.generation_tag(0)[:-1]
        numbers = (tag.removeprefix(start) for tag in tags if tag.startswith(start))
        return max((int(number) for number in numbers if number.isdecimal()), default=None)


@dataclass(frozen=True)
class Position:
    """A position in a checkpoint: highest planned and highest committed batch, -1 before the first; `query` its id."""

    query: str | None
    offset: int
    commit: int


class Missing(StrEnum):
    """A field that a claim's file lacks although every version writes it. It is unknown, never absent."""

    LIFETIMES = "lifetimes"
    POSITIONS = "positions"
    ADOPTED = "adopted"
    KEY = "key"


class Age(StrEnum):
    """A claim's format beside this program's. One of another format is watched, and never acted upon."""

    CURRENT = "current"
    OLDER = "older"
    NEWER = "newer"


@dataclass(frozen=True)
class FailedSpec:
    """A declared spec with which `generation` ended before its first commit, so that an earlier one runs instead."""

    fingerprint: str
    generation: int

    @property
    def words(self) -> str:
        return (
            f"its declared spec does not run: generation {self.generation} ended with it before its first commit, and "
            "the spec that committed last took its place"
        )


@dataclass(frozen=True)
class ClaimStart:
    """The beginning of a generation: which spec it replaced, and with which state it began.

    `resume` is None where the engine's job finds it itself.
    """

    instead_of: FailedSpec | None = None
    """The declared spec whose place an earlier one took; None if it was submitted as declared."""
    resume: ResumePoint | None = None


@dataclass(frozen=True)
class ClaimCredentials:
    """The credentials that a generation was submitted with."""

    lifetimes: TokenLifetimes | None = None
    key: KeyVersion | None = None
    """The version of the key; None if there was no keytab or the key is unknown."""
    tokens: tuple[LaunchToken, ...] | None = None
    """Those of its launch, as far as its client told them and they lie beside the claim; None if no file of them was
    seen."""


@dataclass(frozen=True)
class Adoption:
    """The taking over of an application that somebody else submitted."""

    application: str | None = None
    """Its id; None for a generation that was submitted."""
    started: datetime | None = None
    """The application's start by the ResourceManager's clock; given if the claim alone does not tell how old the tokens
    are."""
    job: str | None = None
    """The id of its job, where an engine's application has one."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What its leader said of settings that stand in its code alone, for when nobody can ask it."""


@dataclass(frozen=True)
class ClaimFile:
    """The file of a claim, as it was read."""

    missing: frozenset[Missing] = frozenset()
    age: Age = Age.CURRENT
    """Its format beside this program's."""
    copied: bool = False
    """Whether `spec` comes from a supervisor's copy of the declaration: the claim's own word is for showing and
    watching, and nothing is submitted from it."""
    author: str = ""
    """HDFS's owner of it; empty if nobody looked."""


@dataclass(frozen=True)
class Claim:
    """The exclusive right to submit one generation, as it stands in `state_dir`."""

    generation: int
    nonce: str
    claimed_at: datetime
    """The NameNode's time of the file, a moment before the submission: the generation's first tokens were issued no
    earlier."""
    claimed_by: str
    spec_fingerprint: str
    spec: StreamSpec | UnknownSpec = field(repr=False)
    """The spec that was submitted."""
    positions: Mapping[str, Position]
    reason: str = ""
    start: ClaimStart = ClaimStart()
    credentials: ClaimCredentials = ClaimCredentials()
    adoption: Adoption = Adoption()
    file: ClaimFile = ClaimFile()

    def by(self, author: str) -> Claim:
        """Return the claim with HDFS's owner of its file."""
        return replace(self, file=replace(self.file, author=author))

    @property
    def foreign(self) -> bool:
        """Return True for a claim of another format: it is watched, and never acted upon."""
        return self.file.age is not Age.CURRENT

    @property
    def fence(self) -> str:
        return fence_name(self.generation, self.nonce)

    @property
    def instead_of(self) -> FailedSpec | None:
        """Return the declared spec whose place an earlier one took; None if it was submitted as declared."""
        return self.start.instead_of

    def position_of(self, checkpoint: str) -> Position | None:
        """Return the checkpoint's position at the claim, however either is spelled; None if the claim has none."""
        return {plain_path(path): at for path, at in self.positions.items()}.get(plain_path(checkpoint))

    @property
    def submitted_by_us(self) -> bool:
        """Return True if its application carries its tags and started after the claim."""
        return self.adoption.application is None and Missing.ADOPTED not in self.file.missing

    @property
    def doubt(self) -> str:
        """Name what is unknown about it, as a sentence without a full stop; empty if everything is known."""
        if isinstance(self.spec, UnknownSpec):
            return f"what was submitted is not known: {self.spec.why}"
        return f"its claim doesn't tell its {', '.join(sorted(self.file.missing))}" if self.file.missing else ""


def spoken_by(by: str, author: str) -> str:
    """Name the speaker of an order: the name in its text, and beside it HDFS's owner, who is proven."""
    if not author or by == author or by.startswith(f"{author}@"):
        return by or author
    return f"{by} (HDFS user {author})" if by else f"HDFS user {author}"


class DesiredState(StrEnum):
    """The desired state: `held` means hands off, neither restart nor stop."""

    RUNNING = "running"
    STOPPED = "stopped"
    HELD = "held"


@dataclass(frozen=True)
class Desired:
    """A person's wishes for a stream. `restart_up_to` requests that this generation be replaced; it stays requested
    as long as it is the newest.

    `by` is what the order says of its speaker, and `author` is HDFS's owner of it; `number` is the order's, 0 if nobody
    gave one. `start` is where the next generation starts, if the person said it.
    """

    state: DesiredState = DesiredState.RUNNING
    restart_up_to: int = 0
    by: str = ""
    at: datetime | None = None
    reason: str = ""
    author: str = ""
    number: int = 0
    start: StartWord | None = None

    def restarts(self, newest: int) -> bool:
        """Return whether the newest generation is to be replaced.

        Nobody who speaks in earnest names one that was not yet claimed: that would restart each successor, too.
        """
        return newest > 0 and self.restart_up_to == newest

    @property
    def speaker(self) -> str:
        """Name who gave it, for people: HDFS's owner is proven, the name in the text is not."""
        return spoken_by(self.by, self.author)


@dataclass(frozen=True)
class Progress:
    """The progress that one checkpoint shows.

    `batches` are the newest ones that are planned and committed, each with its number and its seconds, oldest first.
    `in_flight` is since when the next one is planned, None if none is. Times are the NameNode's. `unit` is the engine's
    word for a batch; of one that comes by the clock nothing tells how long it took.
    """

    path: str
    planned: int
    committed: int
    last_commit: datetime | None
    in_flight: datetime | None
    stall_after: timedelta
    batches: tuple[tuple[int, float], ...] = ()
    unit: str = "batch"


@dataclass(frozen=True)
class Life:
    """A generation from its claim to its end, by the NameNode's clock.

    `why` is why it was claimed, `by` who claimed it. `ended` is None for one that nobody ended yet, `end` why it ended;
    `planned` is False for an end of its own.
    """

    generation: int
    began: datetime
    by: str
    why: str
    adopted: bool = False
    ended: datetime | None = None
    end: str = ""
    planned: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return plain data: times in ISO 8601."""
        return fields_of(self)


@dataclass(frozen=True)
class ClaimFacts(Group):
    """The claim of a generation."""

    claimed: datetime | None
    """When it was claimed, by the NameNode's clock."""
    claimed_by: str
    reason: str
    """Why it was claimed: why its predecessor was replaced."""
    adopted: bool


@dataclass(frozen=True)
class TokenFacts(Group):
    """The tokens of a generation."""

    credentials: str
    """How it authenticates."""
    issued: datetime | None
    """A lower bound of when its tokens were issued, by the NameNode's clock."""
    renew_interval: timedelta | None
    max_lifetime: timedelta | None


@dataclass(frozen=True)
class GenerationFacts:
    """Facts about the newest generation. Each is None or empty if it is not known."""

    generation: int
    claim: ClaimFacts
    tokens: TokenFacts
    horizon: Horizon | None
    desired: Desired
    stop_waits: timedelta | None = None
    """How long a stop waits for its batch."""
    evidence: str = ""
    """The folder on HDFS below which what is kept of its generations lies."""
    progress: tuple[Progress, ...] = field(default=())
    processes: str = ""
    """What its engine calls its processes."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data: times in ISO 8601, durations in seconds."""
        return fields_of(self)
