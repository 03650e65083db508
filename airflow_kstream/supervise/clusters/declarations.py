"""What supervisors keep of declarations in a state_dir: the streams of a place, and the policies that hold.

Watchers follow them with the one listing of the state_dir that serves a round: the time of a folder tells that a file
of it was replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.clusters.authors import SUPERVISORS_FILE, FolderKind, Supervisors
from airflow_kstream.model.clusters.hdfs_path import as_word
from airflow_kstream.model.errors import Denied, InvalidInput, NotFound, Unavailable
from airflow_kstream.model.streams.declarations import (
    DeclarationFolder,
    KeptKind,
    KeptPolicies,
    read_kept_policies,
    read_streams,
    written_policies,
    written_streams,
)
from airflow_kstream.policy.authors import may_declare
from airflow_kstream.supervise.clusters.state_dir import make_own_folder, own_folder
from airflow_kstream.supervise.clusters.write_once import replace_file

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
    from airflow_kstream.supervise.clusters.state_dir import StateDir, StateListing


T = TypeVar("T")

# Of thousands of streams. Only a supervisor's file is read.
_LONGEST = 16 << 20
# Two changes of a folder within this time may have the same time of the NameNode's.
_TICK_SECONDS = 2.0
# HDFS never sets the time of a folder back: with a NameNode whose clock is behind the former's, a change can come
# without a trace there. After so many seconds a folder is listed again, whatever its time is.
_LISTINGS_HOLD_SECONDS = 600.0


@dataclass(frozen=True)
class _Listed:
    """The files of one kind in a folder, `at` a reading of this process's clock."""

    entry: FileStatus
    at: float
    files: tuple[FileStatus, ...]


class Declarations:
    """The declarations kept in one state_dir. What was read once is remembered until its file changes.

    Where several supervisors keep files of one place, only the reader's own counts: it holds all that its principal
    ever kept.
    Without one, as when the principal of a connection changed, those of the others do.
    """

    def __init__(self, hdfs: Hdfs, state: StateDir) -> None:
        self._hdfs = hdfs
        self._state = state
        self._listed: dict[tuple[str, KeptKind], _Listed] = {}
        self._read: dict[str, tuple[FileStatus, object]] = {}
        self._followed: dict[DeclarationFolder, tuple[StateListing, KeptPolicies | None]] = {}

    def followed(self, place: DeclarationFolder) -> KeptPolicies | None:
        """Return `policies` as of the last look at the state_dir, once for all streams; what was known before, None at
        first, as long as they can't be read: no stream is unseen for that."""
        listing, known = self._state.last(), self._followed.get(place)
        if known is None or known[0] is not listing:
            kept = known[1] if known else None
            with suppress(Unavailable, InvalidInput):
                kept = self.policies(place)
            known = self._followed[place] = listing, kept
        return known[1]

    def policies(self, place: DeclarationFolder) -> KeptPolicies:
        """Return the policies of a place's declarations, none where none are kept.

        Costs nothing as long as no folder of declarations changed by the last look at the state_dir; otherwise a
        listing of each supervisor's that did, and a request for each file that did. Raises Unavailable: when HDFS is
        away. Raises InvalidInput: when our own file can't be understood, as one of a later version.
        """
        own, others = self._kept(self._state.last(), KeptKind.POLICIES, place, read_kept_policies)
        if own:
            return own[0]
        edits = [each for kept in others for each in kept.without_notifiers.streams.items()]
        return KeptPolicies(dict(sorted(edits, key=lambda each: each[1].at)))

    def streams(self, place: DeclarationFolder) -> frozenset[str]:
        """Return the streams that this place declared and looks after. Costs and raises as `policies`."""
        own, others = self._kept(self._state.last(), KeptKind.STREAMS, place, read_streams)
        return own[0] if own else frozenset().union(*others)

    def keep_policies(self, place: DeclarationFolder, kept: KeptPolicies) -> bool:
        """Replace our file with the policies of a place; return False without a state_dir, which the first
        submission makes.

        Raises Denied: when this identity's word doesn't count, and what else HDFS refuses, or Unavailable.
        """
        return self._keep(KeptKind.POLICIES, place, written_policies(place, kept, user_at_host()))

    def keep_streams(self, place: DeclarationFolder, names: Collection[str]) -> bool:
        """Replace our file with the streams of a place. Returns and raises as `keep_policies`."""
        return self._keep(KeptKind.STREAMS, place, written_streams(place, names, user_at_host()))

    def _keep(self, kind: KeptKind, place: DeclarationFolder, text: str) -> bool:
        supervisors = self._state.look().supervisors
        if not supervisors.owner:
            return False
        self._require_one_of(supervisors)
        folder, name = own_folder(self._hdfs, self._state.path, FolderKind.DECLARED), place.file_name(kind)
        make_own_folder(self._hdfs, folder, FolderKind.DECLARED.mode)
        replace_file(self._hdfs, f"{folder}/{name}", text)
        self._listed.clear()
        self._followed.clear()
        return True

    def _require_one_of(self, supervisors: Supervisors) -> None:
        user = self._state.user
        if not may_declare(user, supervisors):
            raise Denied(
                f"declarations that {user} keeps don't count here, but those of {supervisors}; one of these can name "
                f"{user} in a line of {self._state.path}/{SUPERVISORS_FILE}",
                tried=f"keep declarations in {self._state.path}",
                server=self._hdfs.servers,
            )

    def _kept(
        self,
        listing: StateListing,
        kind: KeptKind,
        place: DeclarationFolder,
        read: Callable[[str, DeclarationFolder, datetime], T | None],
    ) -> tuple[list[T], list[T]]:
        """Return what counts of a place: our own, at most one, and what the other supervisors kept."""
        name = place.file_name(kind)
        own: list[tuple[datetime, T]] = []
        others: list[T] = []
        for folder, file in self._files(listing, kind):
            if file.name == name:
                kept = self._text_of(f"{folder}/{name}", file, lambda text, at: read(text, place, at))
                if file.owner == self._state.user:
                    # One that is gone by now keeps nothing.
                    if f"{folder}/{name}" in self._read:
                        own.append((file.modified, self._understood(kept, f"{folder}/{name}")))
                elif kept is not None:
                    others.append(kept)
        return [kept for _, kept in sorted(own, key=lambda each: each[0])[-1:]], others

    def _understood(self, kept: T | None, path: str) -> T:
        """Return what our own file holds. Nothing in its place would forget all that it names."""
        if kept is None:
            raise InvalidInput(
                f"{path} can't be understood, and may be of a later version: this one keeps nothing in its place. "
                f"`hdfs dfs -rm {as_word(path)}` forgets what it names",
                tried="read what was declared",
                server=self._hdfs.servers,
            )
        return kept

    def _files(self, listing: StateListing, kind: KeptKind) -> Iterator[tuple[str, FileStatus]]:
        """Yield the files of this kind that supervisors keep, with their folders; what can't be listed has none."""
        for folder, entry in listing.folders(FolderKind.DECLARED).items():
            if may_declare(entry.owner, listing.supervisors):
                for file in self._in(folder, entry, kind):
                    if not file.is_folder and may_declare(file.owner, listing.supervisors):
                        yield folder, file

    def _in(self, folder: str, entry: FileStatus, kind: KeptKind) -> tuple[FileStatus, ...]:
        known, now = self._listed.get((folder, kind)), time.monotonic()
        if known is None or known.entry != entry or now - known.at >= _LISTINGS_HOLD_SECONDS:
            known = _Listed(entry, now, ())
            with suppress(Denied):
                known = _Listed(entry, now, self._hdfs.listing(folder, f"{kind}.").entries)
            # Only then a change from now on shows in the folder's time.
            if (self._hdfs.now() - entry.modified).total_seconds() > _TICK_SECONDS:
                self._listed[folder, kind] = known
        return known.files

    def _text_of(self, path: str, file: FileStatus, read: Callable[[str, datetime], T | None]) -> T | None:
        """Return what a file holds; what was read of it before, if it can't be read at the moment."""
        known = self._read.get(path)
        if known and known[0] == file:
            return known[1]  # type: ignore[return-value]
        kept: T | None = None
        try:
            kept = read(self._hdfs.read(path, _LONGEST), file.modified)
        except NotFound:
            return known[1] if known else None  # type: ignore[return-value]
        except Denied:
            if file.owner == self._state.user:
                # A missing right, such as one to a key of the KMS: given back, it changes no file.
                if known is None:
                    raise
                return known[1]  # type: ignore[return-value]
            # Another's is not tried again until the file is another one.
            kept = known[1] if known else None  # type: ignore[assignment]
        except InvalidInput:
            pass
        self._read[path] = file, kept
        return kept
