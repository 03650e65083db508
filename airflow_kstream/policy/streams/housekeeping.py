"""The rules by which files of a state_dir may go, and by which a stream is gone.

What a removal loses decides. A draft that is a month old has no writer. History is what a running stream deletes by
itself, too. A folder holds the claim that shows whose a checkpoint's data is: without it, the stream is one that was
never submitted. So a person removes it, by a command that is shown when a person has stopped the stream and nobody
declares it. If the stream comes back, its checkpoints with data are refused until somebody takes them over: nothing is
written twice. The owners of checkpoints lie in the checkpoints; a stream that still owns one is not gone.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.clusters.authors import is_own_draft, order_of
from airflow_kstream.model.durations import format_duration, parse_duration
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.contract import (
    ended_file,
    generation_of_file,
    is_draft,
    is_known_file,
    newest_claim,
    newest_trace,
    recorded_ends,
)
from airflow_kstream.model.streams.generation import Claim, Desired, DesiredState, StreamId

# Files with the NameNode's times; a folder has none.
Times = Mapping[str, datetime | None]
_LEAST, _MOST = timedelta(days=1), timedelta(days=3660)
# Who recovered which lease: the NameNode keeps no such record.
_RECORDS_KEPT = timedelta(days=90)


class RemovalKind(StrEnum):
    """The reason for which a file may go."""

    DRAFT = "draft"
    HISTORY = "history"


@dataclass(frozen=True)
class Removal:
    """A file that may go, and why, for people."""

    path: str
    kind: RemovalKind
    why: str


@dataclass(frozen=True)
class Cleaning:
    """The removals in a folder, in their order.

    `stays` is why the folder of an undeclared stream stays, or why nothing of a stream may go; empty if neither holds.
    `gone` is why nobody needs a stream's folder any longer, and the command that removes it; empty if that is not so.
    """

    removals: tuple[Removal, ...] = ()
    stays: str = ""
    gone: str = ""


@dataclass(frozen=True)
class RetentionCounts:
    """The numbers of files that stay, whatever their age: claims, records of ends, orders on one subject."""

    claims: int
    records: int
    orders: int


@dataclass(frozen=True)
class FolderFacts:
    """A stream's folder at one moment. `now` and the times of the `files` are the NameNode's; a subfolder has none.

    `declared` is None where the declarations are not known. `living` are applications that carry the stream's tags or
    that it adopted, with their generations. `owned` are checkpoints that it has not released. `doubt` is why something
    of it can't be read, or told. `strangers` are files of others in the folder, with their owners; the rest counts.
    `elsewhere` are the paths of the housekeeper's own notes of what was told of it, of its copies of its declarations
    and of its orders on it, which a person removes last: with them, what is left of it starts nothing.
    """

    stream: StreamId
    now: datetime
    files: Times
    declared: bool | None
    claim: Claim | None = None
    desired: Desired = field(default_factory=Desired)
    living: Mapping[str, int] = field(default_factory=dict)
    owned: tuple[str, ...] = ()
    doubt: str = ""
    strangers: Mapping[str, str] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()


def cleaning_age(name: str, text: str) -> timedelta:
    """Read how old a file must be to go. Raises InvalidInput: when it is not a duration from 1d to 3660d."""
    age = parse_duration(text)
    if not _LEAST <= age <= _MOST:
        raise InvalidInput(f"{name} is {text}; allowed is 1d to 3660d")
    return age


def cleaning(facts: FolderFacts, older_than: timedelta, kept: RetentionCounts) -> Cleaning:
    """Return what may go of a stream's folder, and whether it is gone; nothing of one that is not understood."""
    doubt = facts.doubt or (facts.claim.doubt if facts.claim else "")
    if doubt:
        return Cleaning(stays=doubt)
    files = _files(facts, older_than, kept)
    if facts.declared is not False:
        return Cleaning(files)
    stays = next((why for rule in _STAYS if (why := rule(facts, older_than))), "")
    return Cleaning(files, stays, "" if stays else _gone(facts))


def cleaning_of_orders(
    folder: str, files: Times, now: datetime, older_than: timedelta, kept: RetentionCounts
) -> Cleaning:
    """Return what may go of a person's orders: drafts, and all but the last on each subject."""
    drafts = [name for name in sorted(files) if is_own_draft(name)]
    subjects: dict[str, list[tuple[int, str]]] = {}
    for name in files:
        if named := order_of(name):
            subjects.setdefault(named[0], []).append((named[1], name))
    superseded = [name for orders in subjects.values() for _, name in sorted(orders)[: -kept.orders]]
    old = _Old(folder, files, now, older_than)
    return Cleaning((*old.of(drafts, _DRAFT), *old.of(sorted(superseded), _HISTORY)))


def cleaning_of_journal(folder: str, files: Times, now: datetime, older_than: timedelta) -> Cleaning:
    """Return what may go of a user's journal of lease recoveries: records that are three months old at least."""
    records = [name for name in sorted(files) if name.endswith(".jsonl")]
    return Cleaning(_Old(folder, files, now, max(older_than, _RECORDS_KEPT)).of(records, _RECORD))


def cleaning_of_drafts(folder: str, files: Times, now: datetime, older_than: timedelta) -> Cleaning:
    """Return what may go of a user's declarations, and notes of what was told: drafts alone."""
    drafts = [name for name in sorted(files) if is_own_draft(name)]
    return Cleaning(_Old(folder, files, now, older_than).of(drafts, _DRAFT))


def cleaning_of_root(state_dir: str, files: Times, now: datetime, older_than: timedelta) -> Cleaning:
    """Return what may go of the state_dir itself: drafts alone."""
    drafts = [name for name in sorted(files) if is_draft(name)]
    return Cleaning(_Old(state_dir, files, now, older_than).of(drafts, _DRAFT))


_DRAFT = (RemovalKind.DRAFT, "its writer never finished it")
_HISTORY = (RemovalKind.HISTORY, "newer ones have superseded it")
_RECORD = (RemovalKind.HISTORY, f"records of lease recoveries are kept for {format_duration(_RECORDS_KEPT)}")


@dataclass(frozen=True)
class _Old:
    """The files of a folder that are old enough to go."""

    folder: str
    files: Times
    now: datetime
    older_than: timedelta

    def of(self, names: Iterable[str], what: tuple[RemovalKind, str]) -> tuple[Removal, ...]:
        return tuple(Removal(f"{self.folder}/{name}", *what) for name in names if self._includes(name))

    def _includes(self, name: str) -> bool:
        modified = self.files[name]
        return modified is not None and self.now - modified > self.older_than


# Rules by which a folder stays: each returns why, empty if it does not.


def _holds_something_else(facts: FolderFacts, older_than: timedelta) -> str:
    others = sorted(name for name, modified in facts.files.items() if modified is None or not is_known_file(name))
    if others:
        return f"it holds {others[0]}, which this version does not know"
    return next((f"it holds {name} of {owner}" for name, owner in sorted(facts.strangers.items())), "")


def _runs(facts: FolderFacts, older_than: timedelta) -> str:
    return f"{min(facts.living)} runs" if facts.living else ""


def _is_wanted(facts: FolderFacts, older_than: timedelta) -> str:
    state = facts.desired.state
    if state is DesiredState.STOPPED or (facts.claim is None and state is DesiredState.RUNNING):
        return ""
    return f"its desired state is {state}; `kstream streams stop {facts.stream.name}` gives it up"


def _lost_its_claim(facts: FolderFacts, older_than: timedelta) -> str:
    """It ran, and nothing tells which checkpoints it wrote."""
    trace = newest_trace(facts.files)
    return f"generation {trace} left files, and its claim is gone" if facts.claim is None and trace else ""


def _owns(facts: FolderFacts, older_than: timedelta) -> str:
    if not facts.owned:
        return ""
    return f"it owns {facts.owned[0]}, which `kstream streams stop {facts.stream.name}` releases"


def _was_stopped_lately(facts: FolderFacts, older_than: timedelta) -> str:
    at = facts.desired.at
    if at is None or facts.now - at > older_than:
        return ""
    return f"a person stopped it {format_duration(facts.now - at)} ago"


def _is_young(facts: FolderFacts, older_than: timedelta) -> str:
    newest = max((modified for modified in facts.files.values() if modified), default=None)
    if newest is None or facts.now - newest > older_than:
        return ""
    return f"it changed {format_duration(facts.now - newest)} ago"


_STAYS: tuple[Callable[[FolderFacts, timedelta], str], ...] = (
    _runs,
    _lost_its_claim,
    _is_wanted,
    _holds_something_else,
    _is_young,
    _was_stopped_lately,
    _owns,
)


def _files(facts: FolderFacts, older_than: timedelta, kept: RetentionCounts) -> tuple[Removal, ...]:
    old = _Old(facts.stream.folder, facts.files, facts.now, older_than)
    drafts = [name for name in sorted(facts.files) if is_draft(name)]
    return (*old.of(drafts, _DRAFT), *old.of(_superseded(facts, kept), _HISTORY))


def _superseded(facts: FolderFacts, kept: RetentionCounts) -> Iterator[str]:
    """Yield what a cleanup after a restart would delete, too, except what belongs to a generation that lives."""
    first_kept, alive = newest_claim(facts.files) - kept.claims + 1, set(facts.living.values())
    for name in sorted(facts.files):
        number = generation_of_file(name)
        if number is not None and number < first_kept and number not in alive:
            yield name
    yield from (ended_file(number) for number in recorded_ends(facts.files)[: -kept.records])


def _gone(facts: FolderFacts) -> str:
    """Say why nobody needs the folder, with the command that removes it and what lies elsewhere."""
    why = "a person stopped it" if facts.desired.state is DesiredState.STOPPED else "it never ran"
    command = shlex.join(["hdfs", "dfs", "-rm", "-r", facts.stream.folder, *facts.elsewhere])
    return f"nobody declares it, and {why}; as long as that is so, `{command}` removes its folder"
