"""Files open for write, as the servers report them, and the history of one over several checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from airflow_kstream.model.plain import plain


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A row of a listing. `holder` is the client name that owns the lease, `host` the host where that client runs.

    Only the NameNode's own list (superuser) has `file_id`, `holder` and `host`; a walk over the tree leaves them None.
    """

    path: str
    file_id: int | None = None
    holder: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """The last block of a file. `length` is the NameNode's, in bytes: that of the writer's first flush, until the
    writer finishes the block or syncs with UPDATE_LENGTH.

    `hosts` are its DataNodes; `newest_report` is when any of them last reported, None if never.
    """

    id: int
    generation_stamp: int
    length: int
    complete: bool
    hosts: tuple[str, ...] = ()
    newest_report: datetime | None = None


@dataclass(frozen=True, slots=True)
class FileState:
    """One file at one moment. Lengths are in bytes: `length` is the NameNode's, last block included, `visible_length`
    the one that a reader gets, None if no DataNode was asked or none of the last block's answered. For an
    erasure-coded file it is that of its data on the DataNodes, including a last stripe that is not whole.

    An open file's `modified` is when it was created or, if it was reopened for append, when it was last closed.
    """

    path: str
    file_id: int
    owner: str
    modified: datetime
    is_open: bool
    length: int
    block: Block | None = None
    erasure_coded: bool = False
    visible_length: int | None = None

    @property
    def measured(self) -> bool:
        """Return True if the length that a reader gets is known: measured, or the last block is complete or missing."""
        return self.visible_length is not None or self.block is None or self.block.complete

    def to_json(self) -> dict[str, Any]:
        """Return plain data: lengths in bytes, times in ISO 8601; `closed_at` is None while it is open."""
        return {
            "length": self.length,
            "closed_at": None if self.is_open else plain(self.modified),
            "owner": self.owner,
            "file_id": self.file_id,
            "erasure_coded": self.erasure_coded,
        }

    @property
    def fingerprint(self) -> Fingerprint:
        block = self.block
        return Fingerprint(
            self.file_id,
            block.id if block else None,
            block.generation_stamp if block else None,
            self.length,
            self.visible_length,
        )


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The values that change when a writer makes progress, or when another file takes the path."""

    file_id: int
    block_id: int | None
    generation_stamp: int | None
    length: int
    visible_length: int | None

    def same_as(self, other: Fingerprint) -> bool:
        """Compare two fingerprints. A visible length that is unknown on either side is not compared."""
        return replace(self, visible_length=None) == replace(other, visible_length=None) and (
            None in (self.visible_length, other.visible_length) or self.visible_length == other.visible_length
        )


@dataclass(frozen=True, slots=True)
class FileHistory:
    """The history of one open file over several checks. Times are the NameNode's.

    `steady_since` and `steady_until` bound the time in which the file was measured unchanged by `checks` checks. One
    takes a while, so the time runs from the end of the first such check to the beginning of the last. A check that did
    not learn the visible length measures nothing: a writer can fill a block for hours without the NameNode noticing. A
    file with another id or another holder is another file, and its history begins again.
    """

    file: OpenFile
    state: FileState
    first_seen: datetime
    steady_since: datetime
    steady_until: datetime
    checks: Annotated[int, Field(alias="looks")]
    last_growth: datetime | None = None

    @classmethod
    def begin(cls, file: OpenFile, state: FileState, now: datetime) -> FileHistory:
        return cls(file, state, now, now, now, checks=int(state.measured))

    def extended(self, file: OpenFile, state: FileState, began: datetime, ended: datetime) -> FileHistory:
        """Return the history with a later check, which lasted from `began` to `ended`."""
        if state.file_id != self.state.file_id or _other(file.holder, self.file.holder):
            return FileHistory.begin(file, state, ended)
        if not state.fingerprint.same_as(self.state.fingerprint):
            return FileHistory(
                file, state, self.first_seen, ended, ended, checks=int(state.measured), last_growth=ended
            )
        if not state.measured:
            # The visible length of an earlier check is kept to compare with; it says nothing about this moment.
            kept = replace(state, visible_length=self.state.visible_length)
            return replace(self, file=file, state=kept)
        if not self.checks:
            return replace(self, file=file, state=state, steady_since=ended, steady_until=ended, checks=1)
        until = max(self.steady_until, began)
        return replace(self, file=file, state=state, steady_until=until, checks=self.checks + 1)

    @property
    def unchanged_for(self) -> timedelta:
        """Return how long the file was measured unchanged: from the first such check to the last, not until now."""
        return self.steady_until - self.steady_since

    @property
    def open_since(self) -> datetime:
        """Estimate when it was opened: its creation or, for an appended file, when it was last closed."""
        return min(self.first_seen, self.state.modified)

    def age(self, now: datetime) -> timedelta:
        """Return how long it has been open, never less than nothing: a NameNode tells its time in whole seconds."""
        return max(timedelta(0), now - self.open_since)


def _other(one: str | None, another: str | None) -> bool:
    return one is not None and another is not None and one != another
