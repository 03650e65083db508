"""Generations of a stream: their ids, tags, claims, and what a person wants of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from airflow_kstream.model.contract import fence_name
from airflow_kstream.model.keytab import KeyVersion
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.tokens import TokenLifetimes

ALL_STREAMS_TAG = "kstream"


@dataclass(frozen=True)
class StreamId:
    """A name plus a short hash of `state_dir`, so that two installations don't adopt each other's streams."""

    name: str
    state_dir: str

    def __str__(self) -> str:
        digest = hashlib.sha256(self.state_dir.rstrip("/").encode()).hexdigest()[:8]
        return f"{self.name}-{digest}"

    @property
    def folder(self) -> str:
        return f"{self.state_dir.rstrip('/')}/{self}"

    @property
    def tag(self) -> str:
        return f"{ALL_STREAMS_TAG}-stream-{self}"

    def generation_tag(self, generation: int) -> str:
        return f"{ALL_STREAMS_TAG}-gen-{self}-{generation}"

    def tags(self, generation: int) -> tuple[str, str, str]:
        """YARN lower-cases tags, takes ten of at most 100 ASCII characters, and matches them whole."""
        return ALL_STREAMS_TAG, self.tag, self.generation_tag(generation)

    def generation_of(self, tags: frozenset[str]) -> int | None:
        """The generation that an application's tags name, or None when it is not of this stream."""
        pattern = re.compile(re.escape(self.generation_tag(0)[:-1]) + r"(\d+)")
        found = [int(match[1]) for tag in tags if (match := pattern.fullmatch(tag))]
        return max(found, default=None)


@dataclass(frozen=True)
class Position:
    """Where a checkpoint stands: highest planned and highest committed batch, -1 before the first; `query` its id."""

    query: str | None
    offset: int
    commit: int


@dataclass(frozen=True)
class Claim:
    """The exclusive right to submit one generation, as it stands in `state_dir`.

    `claimed_at` is the NameNode's time of the file, so a moment before the submission: it bounds the issue of the
    generation's first tokens from below. `adopted` is the application that was taken over instead of submitted;
    then `adopted_started` is its start by the ResourceManager's clock. `submitted_spec` has secrets masked. `key` is
    which key of its keytab it was submitted with; None without a keytab, or where somebody else submitted it.
    """

    generation: int
    nonce: str
    claimed_at: datetime
    claimed_by: str
    spec_fingerprint: str
    submitted_spec: Mapping[str, Any] = field(repr=False)
    lifetimes: TokenLifetimes | None
    positions: Mapping[str, Position]
    reason: str = ""
    adopted: str | None = None
    adopted_started: datetime | None = None
    key: KeyVersion | None = None

    @property
    def spec(self) -> StreamSpec:
        return StreamSpec.from_mapping(self.submitted_spec)

    @property
    def fence(self) -> str:
        return fence_name(self.generation, self.nonce)


class DesiredState(StrEnum):
    """Desired state: `held` is hands off, neither restart nor stop."""

    RUNNING = "running"
    STOPPED = "stopped"
    HELD = "held"


@dataclass(frozen=True)
class Desired:
    """What a person wants of a stream. `restart_up_to` asks that this generation and older ones be replaced."""

    state: DesiredState = DesiredState.RUNNING
    restart_up_to: int = 0
    by: str = ""
    at: datetime | None = None
    reason: str = ""
