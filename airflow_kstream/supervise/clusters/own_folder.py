"""The folder of a state_dir that an author writes in. Only HDFS's owner of a folder tells whose it is."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow_kstream.model.clusters.authors import FolderKind, folder_name
from airflow_kstream.model.clusters.hdfs_path import as_word
from airflow_kstream.model.errors import Denied, NotFound

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs


# More than a folder of HDFS can have (dfs.namenode.fs-limits.max-directory-items is at most 6.4 millions).
_MOST_ENTRIES = 10**7


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
