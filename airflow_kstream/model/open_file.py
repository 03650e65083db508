"""Files open for write, as the servers tell of them, and what several looks at one tell together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.plain import plain


@dataclass(frozen=True)
class OpenFile:
    """A row of a listing. `holder` is the client name that owns the lease and `host` where that client runs.

    Only the NameNode's own list (superuser) knows `file_id`, `holder` and `host`; a walk over the tree does not.
    """

    path: str
    file_id: int | None = None
    holder: str | None = None
    host: str | None = None


@dataclass(frozen=True)
class Block:
    """The last block. `length` is what the NameNode knows of it, in bytes: what the writer flushed
    first, until it finishes the block or syncs with UPDATE_LENGTH.

    `hosts` are its DataNodes, `newest_report` is when one of them was last heard of.
    """

    id: int
    generation_stamp: int
    length: int
    complete: bool
    hosts: tuple[str, ...] = ()
    newest_report: datetime | None = None


@dataclass(frozen=True)
class FileState:
    """One file at one moment. `length` is the NameNode's, last block included; `visible_length` what a reader gets.

    `visible_length` is None where nobody asked, or where no DataNode of the last block answered. `modified` of an
    open file is when it was created, or of an appended one when it was closed before.
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
        """Whether its length is known as a reader knows it; a last block that is complete, or none, hides nothing."""
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


@dataclass(frozen=True)
class Fingerprint:
    """What changes when a writer makes progress, and when the file at a path becomes another one."""

    file_id: int
    block_id: int | None
    generation_stamp: int | None
    length: int
    visible_length: int | None

    def same_as(self, other: Fingerprint) -> bool:
        """A visible length that was not asked for on either side tells nothing and contradicts nothing."""
        return replace(self, visible_length=None) == replace(other, visible_length=None) and (
            None in (self.visible_length, other.visible_length) or self.visible_length == other.visible_length
        )


@dataclass(frozen=True)
class FileHistory:
    """What the looks at one open file tell. The times are the NameNode's. A look takes a while: of the first one that
    shows a file as it is its end counts, of the last one its beginning.

    `steady_since` and `steady_until` bound the time in which it was measured unchanged, `looks` times. A look that
    did not learn what a reader gets measures nothing: a writer can fill a block for hours without the NameNode's
    knowing. A file under another id, or with another holder, is another file: what was known of it is forgotten.
    """

    file: OpenFile
    state: FileState
    first_seen: datetime
    steady_since: datetime
    steady_until: datetime
    looks: int
    last_growth: datetime | None = None

    @classmethod
    def begin(cls, file: OpenFile, state: FileState, now: datetime) -> FileHistory:
        return cls(file, state, now, now, now, looks=int(state.measured))

    def extended(self, file: OpenFile, state: FileState, began: datetime, ended: datetime) -> FileHistory:
        """The same file at a later look, which lasted from `began` to `ended`."""
        if state.file_id != self.state.file_id or _other(file.holder, self.file.holder):
            return FileHistory.begin(file, state, ended)
        if not state.fingerprint.same_as(self.state.fingerprint):
            return FileHistory(file, state, self.first_seen, ended, ended, looks=int(state.measured), last_growth=ended)
        if not state.measured:
            # What a reader got at an earlier look is kept to compare with; it says nothing of this moment.
            kept = replace(state, visible_length=self.state.visible_length)
            return replace(self, file=file, state=kept)
        if not self.looks:
            return replace(self, file=file, state=state, steady_since=ended, steady_until=ended, looks=1)
        until = max(self.steady_until, began)
        return replace(self, file=file, state=state, steady_until=until, looks=self.looks + 1)

    @property
    def unchanged_for(self) -> timedelta:
        """For how long it was measured unchanged: from the first such look to the last, not until now."""
        return self.steady_until - self.steady_since

    @property
    def open_since(self) -> datetime:
        """The best that is known: its creation, or for an appended file a moment before it was opened again."""
        return min(self.first_seen, self.state.modified)


def _other(one: str | None, another: str | None) -> bool:
    return one is not None and another is not None and one != another
