"""Housekeeping of a state_dir: look for what may go, and remove drafts and history; a person removes whole folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.clusters.authors import AUDIT_FOLDER, FolderKind, order_of
from airflow_kstream.model.errors import Conflict, KstreamError, NotFound, Unavailable
from airflow_kstream.model.streams.event import is_told_of
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from airflow_kstream.policy.streams.housekeeping import (
    Cleaning,
    FolderFacts,
    Removal,
    RemovalKind,
    RetentionCounts,
    cleaning,
    cleaning_of_drafts,
    cleaning_of_journal,
    cleaning_of_orders,
    cleaning_of_root,
)
from airflow_kstream.policy.streams.restart.watchable import is_watchable
from airflow_kstream.supervise.clusters.orders import ORDERS_KEPT
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.state_dir import own_folder
from airflow_kstream.supervise.streams.checkpoint.ownership import Reader
from airflow_kstream.supervise.streams.folder.cleanup import CLAIMS_KEPT
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.folder.memory import RECORDS_KEPT
from airflow_kstream.supervise.streams.folder.registry import stream_ids
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.folder.tagged_applications import TaggedApplications

_KEPT = RetentionCounts(CLAIMS_KEPT, RECORDS_KEPT, ORDERS_KEPT)
Tell = Callable[[str], None]

# A stream's name, or the folder that is looked at, with its cleaning.
_Found = tuple[str, Cleaning]


@dataclass(frozen=True)
class CleaningReport:
    """The removals of a look and, unless it was a dry run, what went and what could not be removed, and why.

    `stays` are streams whose folders stay, with the reasons; `gone` are those whose folders nobody needs, with the
    reasons and the commands that remove them.
    """

    dry_run: bool
    removals: tuple[Removal, ...]
    stays: Mapping[str, str]
    gone: Mapping[str, str]
    removed: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    def to_json(self, most: int) -> dict[str, Any]:
        """Return plain data: counts of everything, and at most so many entries of each."""
        kinds = [removal.kind for removal in self.removals]
        return {
            "dry_run": self.dry_run,
            "may_go": {kind.value: kinds.count(kind) for kind in RemovalKind},
            "paths": [removal.path for removal in self.removals[:most]],
            "removed": len(self.removed),
            "gone": dict(list(self.gone.items())[:most]),
            "stays": dict(list(self.stays.items())[:most]),
            "failed": dict(list(self.failed.items())[:most]),
        }


class Housekeeper:
    """A housekeeper of the session's state_dir, with the rights of its identity. Files are older than `older_than`.

    `declared` are the names that anybody declares; None where that is not known.
    """

    def __init__(self, session: ClusterSession, declared: frozenset[str] | None, older_than: timedelta) -> None:
        self._session = session
        self._declared = declared
        self._older_than = older_than

    def plan(self) -> CleaningReport:
        """Look for what may go, and change nothing. Raises Unavailable: when HDFS is away."""
        return _report(list(self._look()), dry_run=True)

    def clean(self, tell: Tell) -> CleaningReport:
        """Remove what a look finds, folder by folder, and tell each file.

        Raises Conflict: while the cluster is frozen, also if that begins meanwhile. Raises Unavailable: when a server
        is away: what is removed is removed, and a second run goes on.
        """
        self._require_not_frozen()
        found: list[_Found] = []
        removed: list[str] = []
        failed: dict[str, str] = {}
        for subject, folder in self._look():
            found.append((subject, folder))
            if folder.removals:
                self._require_not_frozen()
            for removal in folder.removals:
                if why := self._remove(removal):
                    failed[removal.path] = why
                    break
                removed.append(removal.path)
                tell(f"removed {removal.path} ({removal.kind}: {removal.why})")
        return replace(_report(found, dry_run=False), removed=tuple(removed), failed=failed)

    def _require_not_frozen(self) -> None:
        frozen = FreezeStore(self._session).newest()
        if frozen.holds(self._session.hdfs.now()):
            state_dir = self._session.cluster.state_dir
            raise Conflict(f"every stream of it is {frozen}", tried=f"clean {state_dir}").passing(not frozen.doubt)

    def _remove(self, removal: Removal) -> str:
        """Remove one file; return why that failed. Raises Unavailable."""
        try:
            self._session.hdfs.delete(removal.path)
        except Unavailable:
            raise
        except KstreamError as error:
            return error.without_advice
        return ""

    def _look(self) -> Iterator[_Found]:
        """Look at the state_dir, at what is this identity's, and at each stream, one after the other.

        Raises NotFound: when there is no such state_dir.
        """
        self._session.hdfs.status(self._session.cluster.state_dir)
        yield "state_dir", self._of_root()
        yield "orders", self._of_orders()
        yield "leases", self._of_journal()
        yield "declared", self._of_drafts(FolderKind.DECLARED)
        yield "told", self._of_drafts(FolderKind.TOLD)
        for stream in stream_ids(self._session):
            yield stream.name, self._of_stream(stream)

    def _of_root(self) -> Cleaning:
        state_dir, hdfs = self._session.cluster.state_dir, self._session.hdfs
        files = _times(hdfs.listing(state_dir).entries)
        return cleaning_of_root(state_dir, files, hdfs.now(), self._older_than)

    def _of_orders(self) -> Cleaning:
        """Look at the orders that this identity gave."""
        hdfs = self._session.hdfs
        folder = own_folder(hdfs, self._session.cluster.state_dir, FolderKind.ORDERS)
        return cleaning_of_orders(folder, self._own(folder), hdfs.now(), self._older_than, _KEPT)

    def _of_journal(self) -> Cleaning:
        """Look at the records of this identity's lease recoveries."""
        hdfs = self._session.hdfs
        folder = f"{own_folder(hdfs, self._session.cluster.state_dir, FolderKind.LEASES)}/{AUDIT_FOLDER}"
        return cleaning_of_journal(folder, self._own(folder), hdfs.now(), self._older_than)

    def _of_drafts(self, kind: FolderKind) -> Cleaning:
        """Look at what this identity began to write in its folder of this kind."""
        hdfs = self._session.hdfs
        folder = own_folder(hdfs, self._session.cluster.state_dir, kind)
        return cleaning_of_drafts(folder, self._own(folder), hdfs.now(), self._older_than)

    def _own(self, folder: str) -> Mapping[str, datetime | None]:
        """List this identity's files in a folder of its own, however many there are; others' are theirs to delete."""
        user = self._session.hdfs.user()
        return _times(self._session.hdfs.matching(folder, lambda file: file.owner == user))

    def _of_stream(self, stream: StreamId) -> Cleaning:
        """Look at a stream. Only where something may go by its files, other servers have to confirm it."""
        declared = None if self._declared is None else stream.name in self._declared
        hdfs, folder = self._session.hdfs, StreamFolder(self._session, stream)
        facts = FolderFacts(stream, hdfs.now(), {}, declared)
        try:
            listed = hdfs.list(stream.folder)
            authored = folder.judged({file.name: file.owner for file in listed})
            claim = folder.claim(frozenset(authored.counted))
            desired = folder.desired(folder.newest_order(authored, self._session.state.last()))
            files = _times(file for file in listed if file.name in authored.counted)
            facts = replace(facts, files=files, claim=claim, desired=desired, strangers=authored.strangers)
            by_files = cleaning(facts, self._older_than, _KEPT)
            if by_files.removals or by_files.gone:
                tagged = TaggedApplications(stream, authored.counted)
                living, owned = self._living(tagged, facts.claim, facts.now), self._owned(stream, facts.claim)
                facts = replace(facts, living=living, owned=owned, elsewhere=tuple(self._elsewhere(stream)))
        except KstreamError as error:
            facts = replace(facts, doubt=error.without_advice)
        return cleaning(facts, self._older_than, _KEPT)

    def _elsewhere(self, stream: StreamId) -> Iterator[str]:
        """Yield our own notes of what was told of it, the folder of our copies of its declarations, and then our orders
        on it, the newest last."""
        hdfs, state_dir = self._session.hdfs, self._session.cluster.state_dir
        told = own_folder(hdfs, state_dir, FolderKind.TOLD)
        notes = (file.name for file in hdfs.listing(told, f"{stream.name}-").entries)
        yield from (f"{told}/{name}" for name in notes if is_told_of(stream.name, name))
        copies = f"{own_folder(hdfs, state_dir, FolderKind.DECLARED)}/{stream}"
        if hdfs.list(copies):
            yield copies
        orders = own_folder(hdfs, state_dir, FolderKind.ORDERS)
        named = ((order_of(file.name), file.name) for file in hdfs.listing(orders, f"{stream}.").entries)
        ours = sorted((order[1], name) for order, name in named if order and order[0] == str(stream))
        yield from (f"{orders}/{name}" for _, name in ours)

    def _living(self, tagged: TaggedApplications, claim: Claim | None, now: datetime) -> Mapping[str, int]:
        """Return what lives of the stream with its generation. Raises Unavailable: when that can't be told."""
        yarn, stream = self._session.yarn, tagged.stream
        apps, _ = tagged.split(self._session, yarn.applications(stream.tag))
        if claim and claim.adoption.application:
            with suppress(NotFound):
                adopted = yarn.application(claim.adoption.application)
                if tagged.is_adopted(self._session, claim.generation, adopted):
                    apps.append((claim.generation, adopted))
        living = {app.id: number for number, app in apps if app.alive}
        if claim and not living:
            name = claim.adoption.application or stream.generation_tag(claim.generation)
            policy = claim.spec.watch if isinstance(claim.spec, StreamSpec) else WatchPolicy()
            yarn.confirm_absence(name, now - claim.claimed_at, policy.recovery_wait)
        return living

    def _owned(self, stream: StreamId, claim: Claim | None) -> tuple[str, ...]:
        """Return the checkpoints of its last generation that it still owns. Raises InvalidInput: when none can tell."""
        cluster = self._session.cluster
        spec = claim.spec if claim else None
        paths = spec.checkpoints if isinstance(spec, StreamSpec) else ()
        reader = Reader(self._session, stream)
        return tuple(path for path in paths if is_watchable(path, cluster) and reader.still_owns(path))


def _times(files: Iterable[FileStatus]) -> dict[str, datetime | None]:
    return {file.name: None if file.is_folder else file.modified for file in files}


def _report(found: Sequence[_Found], *, dry_run: bool) -> CleaningReport:
    return CleaningReport(
        dry_run,
        tuple(removal for _, folder in found for removal in folder.removals),
        {subject: folder.stays for subject, folder in found if folder.stays},
        {subject: folder.gone for subject, folder in found if folder.gone},
    )
