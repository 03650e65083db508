"""Notes of what was told, in folders of those who told it: neither a restart nor a lost database tells it again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property, reduce

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.errors import Denied, InvalidInput, NotFound
from airflow_kstream.model.event import Ledger
from airflow_kstream.model.own_folders import FolderKind
from airflow_kstream.model.told import ToldSubject, read_told, written_told
from airflow_kstream.policy.authors import may_have_told
from airflow_kstream.policy.events.ledger import joined
from airflow_kstream.supervise.clusters.own_folder import make_own_folder, own_folder
from airflow_kstream.supervise.clusters.state_dir import StateDir
from airflow_kstream.supervise.clusters.write_once import replace_file

_FOLDER_MODE = "755"


class Told:
    """The notes in one state_dir: read of all who may have told, and written in a folder of one's own."""

    def __init__(self, hdfs: Hdfs, state: StateDir) -> None:
        self._hdfs = hdfs
        self._state = state

    def read(self, subjects: Collection[ToldSubject]) -> Mapping[ToldSubject, Ledger]:
        """Return what was told of these subjects: nothing, where nobody who may say it noted anything.

        Costs a look at the state_dir, a listing for each folder of such a person, and a request for each note that is
        there. Of several notes on one subject the one with the most changes counts. Raises Unavailable: when HDFS is
        away. Raises Denied: when the state_dir can't be listed.
        """
        paths: dict[str, list[str]] = {}
        for path in self._notes([subject.file_name for subject in subjects]):
            paths.setdefault(path.rpartition("/")[2], []).append(path)
        return {
            subject: reduce(joined, self._ledgers(subject, paths.get(subject.file_name, ())), Ledger())
            for subject in subjects
        }

    def note(self, subject: ToldSubject, ledger: Ledger) -> None:
        """Replace our note on a subject. Raises what HDFS refuses: Denied, also for a quota, or Unavailable."""
        replace_file(self._hdfs, f"{self._folder}/{subject.file_name}", written_told(subject, ledger, user_at_host()))

    @cached_property
    def _folder(self) -> str:
        folder = own_folder(self._hdfs, self._state.path, FolderKind.TOLD)
        make_own_folder(self._hdfs, folder, _FOLDER_MODE)
        return folder

    def _notes(self, names: Collection[str]) -> Iterator[str]:
        """Yield the paths of notes with these names by those who may have told; what can't be listed has none."""
        listing = self._state.look()

        def counts(author: str) -> bool:
            return may_have_told(author, self._state.user, listing.supervisors)

        for folder, entry in listing.folders(FolderKind.TOLD).items():
            if counts(entry.owner):
                with suppress(Denied):
                    for name, owner in self._owners(folder, names):
                        if counts(owner):
                            yield f"{folder}/{name}"

    def _owners(self, folder: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the files of a folder that have one of these names, with their owners."""
        found = self._hdfs.listing(folder)
        entries = list(found.entries)
        if found.cut:
            entries = [entry for name in names for entry in self._hdfs.listing(folder, name).entries]
        wanted = set(names)
        return ((entry.name, entry.owner) for entry in entries if entry.name in wanted and not entry.is_folder)

    def _ledgers(self, subject: ToldSubject, paths: Iterable[str]) -> Iterator[Ledger]:
        for path in paths:
            with suppress(InvalidInput, NotFound, Denied):
                if ledger := read_told(self._hdfs.read(path), subject):
                    yield ledger
