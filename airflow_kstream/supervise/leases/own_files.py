"""The files that one user's runs wrote into their folder: a stranger's history or journal could mislead a recovery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.printable import printable
from airflow_kstream.policy.authors import may_remember

# Of one text: the history of twenty thousand open files, or what a run records at once.
_LONGEST = 16 << 20
# Of the files of others in one listing.
_NAMED, _COUNTED = 5, 1000


class OwnFiles:
    """The files that this identity's HDFS user owns. Others are as if they were absent; `tell` hears of each once."""

    def __init__(self, hdfs: Hdfs, tell: Callable[[str], None] = lambda line: None) -> None:
        self._hdfs = hdfs
        self._tell = tell
        self._told: set[str] = set()

    @cached_property
    def user(self) -> str:
        """Return our short name by HDFS's rules."""
        return self._hdfs.user()

    def list(self, folder: str, after: str = "") -> tuple[FileStatus, ...]:
        """Return all our own entries of a folder, or those with names after this one; none if there is no folder.

        Others' files hide none of them, however many there are.
        """
        foreign: list[FileStatus] = []
        user = self.user

        def is_ours(entry: FileStatus) -> bool:
            ours = may_remember(entry.owner, user)
            if not ours and len(foreign) < _COUNTED:
                foreign.append(entry)
            return ours

        own = self._hdfs.matching(folder, is_ours, after=after)
        self._tell_of(folder, foreign)
        return own

    def text(self, path: str) -> str:
        """Return the text of a file of ours; tell once of one that is not text or longer than 16 MiB, and return "".

        Raises NotFound: when it is gone.
        """
        try:
            return self._hdfs.read(path, _LONGEST)
        except InvalidInput as error:
            self._tell_once(path, f"{path} is left out: {error.message}")
            return ""

    def _tell_of(self, folder: str, foreign: Sequence[FileStatus]) -> None:
        new = [entry for entry in foreign if f"{folder}/{entry.name}" not in self._told]
        self._told |= {f"{folder}/{entry.name}" for entry in new}
        if new:
            named = ", ".join(f"{entry.name} of {entry.owner}" for entry in new[:_NAMED])
            rest = f" and {len(new) - _NAMED} more" if len(new) > _NAMED else ""
            self._tell(printable(f"in {folder} only files of {self.user} count, so these don't: {named}{rest}"))

    def _tell_once(self, path: str, line: str) -> None:
        if path not in self._told:
            self._told.add(path)
            self._tell(printable(line))
