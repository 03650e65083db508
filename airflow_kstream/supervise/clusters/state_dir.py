"""What lies in a state_dir, with who may speak there: one listing serves all of its streams.

Each author writes in a folder of their own. Only HDFS's owner of a folder tells whose it is.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from airflow_kstream.clients.hdfs.answers import LONGEST_TEXT, Listing
from airflow_kstream.model.clusters.authors import (
    SUPERVISORS_FILE,
    FolderKind,
    Ground,
    Supervisors,
    folder_name,
    is_closed,
    is_folder_of,
    named_supervisors,
)
from airflow_kstream.model.clusters.hdfs_path import as_word
from airflow_kstream.model.errors import Denied, NotFound

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs

# More than a folder of HDFS can have (dfs.namenode.fs-limits.max-directory-items is at most 6.4 millions).
_MOST_ENTRIES = 10**7

# Owners of `/` and of a state_dir change by a superuser's hand, some day.
_OWNERS_HOLD_SECONDS = 600.0
# The file of supervisors is replaced by deleting the old one before, and may get its mode after its name.
_NAMES_HOLD_SECONDS = 60.0
# `hdfs dfs -put -f` writes this one, deletes the other, and renames.
_NEW_NAMES = f"{SUPERVISORS_FILE}._COPYING_"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StateListing:
    """One look at a state_dir: its entries by name, and its supervisors. Empty if there is no such folder.

    `cut` is how many more entries each of these owners has in it: of them, folders of streams may be missing here, and
    nothing that says who may speak.
    """

    path: str
    entries: Mapping[str, FileStatus] = field(repr=False)
    supervisors: Supervisors
    cut: Mapping[str, int] = field(default_factory=dict)

    @property
    def cut_words(self) -> str:
        """Return what of it is not looked at, in words; empty if all of it is."""
        return Listing(cut=self.cut).words

    def ground(self, folder: str) -> Ground | None:
        """Return who owns a folder of it and whether others can write there; None if there is none of this name."""
        entry = self.entries.get(folder)
        return None if entry is None or not entry.is_folder else ground_of(entry)

    def folders(self, kind: FolderKind) -> Mapping[str, FileStatus]:
        """Return the folders of this kind by their paths, regardless of their owners."""
        return self._folders[kind]

    @cached_property
    def _folders(self) -> Mapping[FolderKind, Mapping[str, FileStatus]]:
        """Sort the folders once: each stream asks for them."""
        folders = {name: entry for name, entry in self.entries.items() if entry.is_folder}
        return {
            kind: {f"{self.path}/{name}": entry for name, entry in folders.items() if is_folder_of(kind, name)}
            for kind in FolderKind
        }


def ground_of(folder: FileStatus) -> Ground:
    return Ground(folder.owner, is_closed(folder.permission, acl=folder.acl))


class StateDir:
    """A state_dir as one session sees it. What can't have changed since is not asked again."""

    def __init__(self, hdfs: Hdfs, path: str) -> None:
        self._hdfs = hdfs
        self.path = path.rstrip("/")
        self._owners: tuple[float, str, str] | None = None
        self._named: tuple[FileStatus, frozenset[str]] | None = None
        self._missed: float | None = None
        self._last: StateListing | None = None

    @cached_property
    def user(self) -> str:
        """Return this session's short name by HDFS's rules: the author of what it writes."""
        return self._hdfs.user()

    def look(self) -> StateListing:
        """List the state_dir. Costs one request, and some more the first time, when its supervisors changed, and
        when it is too long to be listed completely.

        Raises Unavailable: when HDFS is away. Raises Denied: when this identity may not list it, or may not read who
        its supervisors are: then nothing in it can be judged.
        """
        found = self._hdfs.listing(self.path)
        entries = {entry.name: entry for entry in found.entries} | (self._needed() if found.cut else {})
        listing = StateListing(self.path, entries, self._supervisors(entries), found.cut)
        self._tell_lost(listing.supervisors)
        self._last = listing
        return listing

    def _tell_lost(self, supervisors: Supervisors) -> None:
        before = self._last.supervisors.users if self._last else frozenset()
        if lost := sorted(before - supervisors.users):
            log.warning(
                "%s: %s may no longer speak for all streams, and what they ordered counts for nothing: what they "
                "stopped, held or froze is started again. `kstream doctor` names it",
                self.path,
                ", ".join(lost),
            )

    def _needed(self) -> dict[str, FileStatus]:
        """Look for what may have been cut of a listing, and without which nobody's words can be judged or read."""
        prefixes = (*(f"{kind}." for kind in FolderKind), SUPERVISORS_FILE)
        listings = (self._hdfs.listing(self.path, prefix).entries for prefix in prefixes)
        return {entry.name: entry for entries in listings for entry in entries}

    def last(self) -> StateListing:
        """Return the last look, or take one: for what changes by a superuser's hand alone."""
        return self._last or self.look()

    @property
    def supervisors(self) -> Supervisors:
        """Return who may speak for all streams, as the last look showed."""
        return self.last().supervisors

    def _supervisors(self, entries: Mapping[str, FileStatus]) -> Supervisors:
        superuser, owner = self._root_and_own_owner()
        unnamed = Supervisors(superuser, owner)
        files = (entries[name] for name in (SUPERVISORS_FILE, _NEW_NAMES) if name in entries)
        counting = next((file for file in files if not file.is_folder and file.owner in unnamed), None)
        return Supervisors(superuser, owner, self._names_in(counting))

    def _names_in(self, file: FileStatus | None) -> frozenset[str]:
        """Return whom the file names. As long as it is missing, or can't be read, it may be being replaced: then those
        whom it named last still count for a minute."""
        try:
            named = self._read_names(file)
        except (Denied, NotFound) as missing:
            now = time.monotonic()
            self._missed = now if self._missed is None else self._missed
            if self._named and now - self._missed <= _NAMES_HOLD_SECONDS:
                return self._named[1]
            if isinstance(missing, Denied):
                raise
            self._named = None
            return frozenset()
        self._missed = None
        return named

    def _read_names(self, file: FileStatus | None) -> frozenset[str]:
        """Read whom the file names, once as long as it is the same. Raises NotFound: when there is none."""
        if file is None:
            raise NotFound("it names nobody", tried=f"read {self.path}/{SUPERVISORS_FILE}")
        if self._named is None or self._named[0] != file:
            # A byte that is not UTF-8 costs the line that has it.
            text = self._hdfs.read_part(f"{self.path}/{file.name}", 0, LONGEST_TEXT).decode(errors="replace")
            self._named = file, named_supervisors(text)
        return self._named[1]

    def _root_and_own_owner(self) -> tuple[str, str]:
        now = time.monotonic()
        # One that is missing may be made at any moment.
        if self._owners is None or not self._owners[2] or now - self._owners[0] > _OWNERS_HOLD_SECONDS:
            self._owners = now, self._hdfs.status("/").owner, self._own_owner()
        return self._owners[1], self._owners[2]

    def _own_owner(self) -> str:
        try:
            return self._hdfs.status(self.path).owner
        except NotFound:
            return ""


def own_folder(hdfs: Hdfs, state_dir: str, kind: FolderKind) -> str:
    """Return the path of this identity's folder of this kind, whether it exists or has yet to be made.

    It is named after HDFS's short name for the identity. If somebody else's folder or a file occupies that name, it is
    the next name that is ours already or, if none is, the first that is free; an arbitrary one where so many are taken
    that no listing shows them all. Costs two requests, and a listing of `state_dir` unless the first name is ours.
    Raises Denied: when `state_dir` can't be listed.
    """
    user, place = hdfs.user(), state_dir.rstrip("/")
    first = f"{place}/{folder_name(kind, user)}"
    with suppress(NotFound):
        if _is_of(user, hdfs.status(first)):
            return first
    found = hdfs.listing(place, folder_name(kind, user))
    entries = {entry.name: entry for entry in found.entries}
    # Of a cut listing only strangers' entries are left out: what is ours is there, and what seems free may not be.
    name = _ours(kind, user, entries) or (_arbitrary(kind, user) if found.cut else _free(kind, user, entries))
    return f"{place}/{name}"


def make_in_state_dir(hdfs: Hdfs, folder: str, permission: str) -> None:
    """Make a folder of a state_dir unless it is there.

    Raises Denied: in a closed state_dir only its group makes folders; the error has the commands.
    """
    try:
        hdfs.make_folder(folder, permission)
    except Denied as refused:
        place, user = as_word(folder), as_word(hdfs.user())
        commands = f"hdfs dfs -mkdir {place} && hdfs dfs -chmod {permission} {place} && hdfs dfs -chown {user} {place}"
        raise Denied(
            f"{refused.message}. Way out: add {user} to the group of {folder.rpartition('/')[0]}, or let HDFS's "
            f"superuser run `{commands}`",
            tried=refused.tried,
            server=refused.server,
            principal=refused.principal,
        ) from refused


def make_own_folder(hdfs: Hdfs, path: str, permission: str) -> None:
    """Make a folder unless it is there, with exactly this mode: neither a umask nor a default ACL changes it."""
    try:
        hdfs.status(path)
    except NotFound:
        make_in_state_dir(hdfs, path, permission)
        hdfs.close_folder(path, permission)


def passed_over(hdfs: Hdfs, state_dir: str, kind: FolderKind, folder: str) -> str:
    """Return who occupies the name that our `folder` would have, as a sentence; empty if nobody does."""
    first = f"{state_dir.rstrip('/')}/{folder_name(kind, hdfs.user())}"
    if folder == first:
        return ""
    with suppress(NotFound):
        return f"{first} belongs to {hdfs.status(first).owner}, so it is passed over and {folder} is used"
    return ""


def _ours(kind: FolderKind, user: str, entries: Mapping[str, FileStatus]) -> str:
    """Return the first name that is ours already, empty if none is."""
    first = folder_name(kind, user)
    numbers = {name: "1" if name == first else name.removeprefix(f"{first}.") for name in entries}
    ours = [name for name, number in numbers.items() if number.isdecimal() and _is_of(user, entries[name])]
    return min(ours, key=lambda name: int(numbers[name]), default="")


def _free(kind: FolderKind, user: str, entries: Mapping[str, FileStatus]) -> str:
    # Among one name more than there are entries, one is free.
    names = (folder_name(kind, user, number) for number in range(1, len(entries) + 2))
    return next(name for name in names if name not in entries)


def _arbitrary(kind: FolderKind, user: str) -> str:
    return folder_name(kind, user, random.randrange(_MOST_ENTRIES, _MOST_ENTRIES**2))


def _is_of(user: str, entry: FileStatus) -> bool:
    return entry.is_folder and entry.owner == user
