"""Notes of what was told, in a folder of the one who told it: neither a restart nor a lost database tells it again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.clusters.authors import FolderKind
from airflow_kstream.model.errors import Denied, InvalidInput, NotFound, Unavailable
from airflow_kstream.model.streams.event import (
    LONGEST,
    Ledger,
    ToldSubject,
    read_kept,
    read_told,
    written_kept,
    written_told,
)
from airflow_kstream.policy.authors import may_remember
from airflow_kstream.policy.events.bundles import joined
from airflow_kstream.supervise.clusters.state_dir import make_own_folder, own_folder
from airflow_kstream.supervise.clusters.write_once import replace_file

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.webhdfs import Hdfs
    from airflow_kstream.supervise.clusters.state_dir import StateDir


_FILE_MODE = "600"


class ToldNotes:
    """The notes that this identity's user wrote in one state_dir."""

    def __init__(self, hdfs: Hdfs, state: StateDir) -> None:
        self._hdfs = hdfs
        self._state = state

    def read(self, subjects: Collection[ToldSubject]) -> Mapping[ToldSubject, Ledger]:
        """Return what was told of these subjects, nothing where nothing is noted; a subject whose note can't be read at
        the moment is left out.

        Costs a look for the folder and a listing of it, and a request for each note that is there. Raises Unavailable:
        when HDFS is away, or none can be read. Raises Denied: when the folder can't be listed.
        """
        found: dict[ToldSubject, Ledger] = {}
        folder = self._folder()
        there = frozenset(self._names(folder, frozenset(subject.file_name for subject in subjects)))
        lost: Unavailable | None = None
        for subject in subjects:
            try:
                found[subject] = self._ledger(folder, subject) if subject.file_name in there else Ledger()
            except Unavailable as error:
                lost = error
        if lost and not found:
            raise lost
        return found

    def note(self, subject: ToldSubject, ledger: Ledger) -> None:
        """Replace the note on a subject; a ledger that was continued alone takes along what was told before.

        Raises NotFound: when there is no state_dir: who makes it speaks for all of its streams. Raises what HDFS
        refuses: Denied, also for a quota, or Unavailable.
        """
        if ledger.alone:
            ledger = joined(self.read([subject])[subject], ledger)
        self._replace(subject, written_told(subject, ledger, user_at_host()))

    def kept(self, subject: ToldSubject) -> Mapping[str, Any]:
        """Return what a task kept for its next run, nothing if nothing is there. Raises as `read`."""
        folder = self._folder()
        if not list(self._names(folder, frozenset({subject.file_name}))):
            return {}
        return read_kept(self._text(folder, subject), subject)

    def keep(self, subject: ToldSubject, kept: Mapping[str, Any]) -> None:
        """Replace what a task keeps for its next run. Raises as `note`."""
        self._replace(subject, written_kept(subject, kept, user_at_host()))

    def _replace(self, subject: ToldSubject, text: str) -> None:
        replace_file(self._hdfs, f"{self._made}/{subject.file_name}", text, _FILE_MODE)

    def _folder(self) -> str:
        return own_folder(self._hdfs, self._state.path, FolderKind.TOLD)

    @cached_property
    def _made(self) -> str:
        self._hdfs.status(self._state.path)
        folder = self._folder()
        make_own_folder(self._hdfs, folder, FolderKind.TOLD.mode)
        return folder

    def _names(self, folder: str, wanted: frozenset[str]) -> Iterator[str]:
        """Yield which of these notes are there, however many others are."""
        user, prefix = self._state.user, next(iter(wanted)) if len(wanted) == 1 else ""
        ours = self._hdfs.matching(
            folder,
            lambda file: file.name in wanted and not file.is_folder and may_remember(file.owner, user),
            prefix=prefix,
        )
        return (file.name for file in ours)

    def _ledger(self, folder: str, subject: ToldSubject) -> Ledger:
        return read_told(self._text(folder, subject), subject) or Ledger()

    def _text(self, folder: str, subject: ToldSubject) -> str:
        """Return the text of a note, empty if it is gone, is too long, or may not be read."""
        with suppress(InvalidInput, NotFound, Denied):
            return self._hdfs.read(f"{folder}/{subject.file_name}", LONGEST)
        return ""
