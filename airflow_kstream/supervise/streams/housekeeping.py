"""Housekeeping of a state_dir: look for what may go, and remove exactly that, looked at again right before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.checkpoint_owner import Owner
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.freeze import freeze_folder
from airflow_kstream.model.generation import Claim, StreamId
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.model.stream_policies import WatchPolicy
from airflow_kstream.policy.streams.housekeeping import (
    Cleaning,
    FolderFacts,
    Kept,
    Removal,
    RemovalKind,
    cleaning,
    cleaning_of_brake,
    cleaning_of_root,
)
from airflow_kstream.policy.streams.watchable import is_watchable
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.brake import WORDS_KEPT, Brake
from airflow_kstream.supervise.streams.checkpoint_lock import CheckpointLock
from airflow_kstream.supervise.streams.cleanup import CLAIMS_KEPT
from airflow_kstream.supervise.streams.past_ends import RECORDS_KEPT
from airflow_kstream.supervise.streams.registry import stream_ids
from airflow_kstream.supervise.streams.state_folder import DESIRED_KEPT, StreamFolder

_KEPT = Kept(CLAIMS_KEPT, DESIRED_KEPT, RECORDS_KEPT, WORDS_KEPT)
# The names that anybody declares; None where that is not known. Read again before each removal.
Declared = Callable[[], frozenset[str] | None]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class FolderCleaning:
    """The cleaning of one folder, and how to look at it again. `subject` is a stream's name, or the folder."""

    subject: str
    cleaning: Cleaning
    again: Callable[[], Cleaning] = field(repr=False, compare=False)


@dataclass(frozen=True)
class CleaningReport:
    """The removals of a look and, unless it was a dry run, what went and what could not be removed, and why.

    `stays` are streams whose folders stay, with the reasons. What `changed` since the first look was not removed.
    """

    dry_run: bool
    removals: tuple[Removal, ...]
    stays: Mapping[str, str]
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    def to_json(self, most: int) -> dict[str, Any]:
        """Return plain data: counts of everything, and at most so many entries of each."""
        kinds = [removal.kind for removal in self.removals]
        return {
            "dry_run": self.dry_run,
            "may_go": {kind.value: kinds.count(kind) for kind in RemovalKind},
            "paths": [removal.path for removal in self.removals[:most]],
            "removed": len(self.removed),
            "changed": list(self.changed[:most]),
            "stays": dict(list(self.stays.items())[:most]),
            "failed": dict(list(self.failed.items())[:most]),
        }


class Housekeeper:
    """A housekeeper of the session's state_dir, with the rights of its identity. Files are older than `older_than`."""

    def __init__(self, session: ClusterSession, declared: Declared, older_than: timedelta) -> None:
        self._session = session
        self._declared = declared
        self._older_than = older_than

    def plan(self) -> CleaningReport:
        """Look for what may go, and change nothing. Raises Unavailable: when HDFS is away."""
        return _report(self._look(), dry_run=True)

    def clean(self, tell: Tell) -> CleaningReport:
        """Remove what a look finds, each folder looked at again right before.

        Raises Conflict: while the cluster is frozen, also if that begins meanwhile. Raises Unavailable: when a server
        is away: what is removed is removed, and a second run goes on.
        """
        self._require_not_frozen()
        found = self._look()
        removed: list[str] = []
        changed: list[str] = []
        failed: dict[str, str] = {}
        for folder in found:
            if not folder.cleaning.removals:
                continue
            self._require_not_frozen()
            still = set(folder.again().removals)
            for removal in folder.cleaning.removals:
                if removal not in still:
                    changed.append(removal.path)
                    continue
                if why := self._remove(removal):
                    failed[removal.path] = why
                    break
                removed.append(removal.path)
                tell(f"removed {removal.path} ({removal.kind}: {removal.why})")
        report = _report(found, dry_run=False)
        return replace(report, removed=tuple(removed), changed=tuple(changed), failed=failed)

    def _require_not_frozen(self) -> None:
        word = Brake(self._session.hdfs, self._session.cluster.state_dir).newest()
        if word.holds(self._session.hdfs.now()):
            state_dir = self._session.cluster.state_dir
            raise Conflict(f"every stream of it is {word}", tried=f"clean {state_dir}").passing(not word.doubt)

    def _remove(self, removal: Removal) -> str:
        """Remove one file, or a folder that is empty by now; return why that failed. Raises Unavailable."""
        try:
            self._session.hdfs.delete(removal.path)
        except Unavailable:
            raise
        except KstreamError as error:
            return error.without_advice
        return ""

    def _look(self) -> list[FolderCleaning]:
        """Look at the state_dir, the brake and each stream. Raises NotFound: when there is no such state_dir."""
        self._session.hdfs.status(self._session.cluster.state_dir)
        declared = self._declared()
        common = {"state_dir": self._of_root, "freeze": self._of_brake}
        return [
            *(FolderCleaning(subject, look(), look) for subject, look in common.items()),
            *(self._first_look(stream, declared) for stream in stream_ids(self._session)),
        ]

    def _first_look(self, stream: StreamId, declared: frozenset[str] | None) -> FolderCleaning:
        def again() -> Cleaning:
            return self._of_stream(stream, self._declared())

        return FolderCleaning(stream.name, self._of_stream(stream, declared), again)

    def _of_root(self) -> Cleaning:
        state_dir, hdfs = self._session.cluster.state_dir, self._session.hdfs
        files = _times(hdfs.list(state_dir))
        return cleaning_of_root(state_dir, files, hdfs.now(), self._older_than)

    def _of_brake(self) -> Cleaning:
        folder, hdfs = freeze_folder(self._session.cluster.state_dir), self._session.hdfs
        return cleaning_of_brake(folder, _times(hdfs.list(folder)), hdfs.now(), self._older_than, _KEPT)

    def _of_stream(self, stream: StreamId, declared: frozenset[str] | None) -> Cleaning:
        """Look at a stream. Only where something may go by its files, other servers have to confirm it."""
        hdfs, folder = self._session.hdfs, StreamFolder(self._session.hdfs, stream)
        facts = FolderFacts(stream, hdfs.now(), {}, None if declared is None else stream.name in declared)
        try:
            files = _times(hdfs.list(stream.folder))
            names = frozenset(files)
            facts = replace(facts, files=files, claim=folder.claim(names), desired=folder.desired(names))
            if cleaning(facts, self._older_than, _KEPT).removals:
                living, owned = self._living(stream, facts.claim, facts.now), self._owned(stream, facts.claim)
                facts = replace(facts, living=living, owned=owned)
        except KstreamError as error:
            facts = replace(facts, doubt=error.without_advice)
        return cleaning(facts, self._older_than, _KEPT)

    def _living(self, stream: StreamId, claim: Claim | None, now: datetime) -> Mapping[str, int]:
        """Return what lives of the stream with its generation. Raises Unavailable: when that can't be told."""
        yarn = self._session.yarn
        apps = [(stream.generation_of(app.tags) or 0, app) for app in yarn.applications(stream.tag)]
        if claim and claim.adopted:
            with suppress(NotFound):
                apps.append((claim.generation, yarn.application(claim.adopted)))
        living = {app.id: number for number, app in apps if app.alive}
        if claim and not living:
            name = claim.adopted or stream.generation_tag(claim.generation)
            policy = claim.spec.watch if isinstance(claim.spec, StreamSpec) else WatchPolicy()
            yarn.confirm_absence(name, now - claim.claimed_at, policy.recovery_wait)
        return living

    def _owned(self, stream: StreamId, claim: Claim | None) -> tuple[str, ...]:
        """Return the checkpoints of its last generation that it still owns. Raises InvalidInput: when none can tell."""
        cluster = self._session.cluster
        spec = claim.spec if claim else None
        paths = spec.checkpoints if isinstance(spec, StreamSpec) else ()
        us = Owner(stream.name, cluster.state_dir, cluster.default_fs)
        return tuple(path for path in paths if is_watchable(path, cluster) and self._owns(us, path))

    def _owns(self, us: Owner, path: str) -> bool:
        entry = CheckpointLock(self._session.hdfs, path).newest()
        if entry and entry.newer:
            raise InvalidInput(f"a newer version of this program gave {path} its owner")
        return entry is not None and not entry.released and entry.owner.same_stream(us)


def _times(files: Iterable[FileStatus]) -> dict[str, datetime | None]:
    return {file.name: None if file.is_folder else file.modified for file in files}


def _report(found: Iterable[FolderCleaning], *, dry_run: bool) -> CleaningReport:
    found = list(found)
    return CleaningReport(
        dry_run,
        tuple(removal for folder in found for removal in folder.cleaning.removals),
        {folder.subject: folder.cleaning.stays for folder in found if folder.cleaning.stays},
    )
