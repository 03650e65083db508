"""Copies of declarations that supervisors keep in state_dir: what may be submitted where no declaration is at hand.

A stream's own folder tells what happened; what is submitted next, and as whom, comes from here. One file for each
fingerprint that was declared, in a folder of the supervisor who read the declaration.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.clusters.authors import FolderKind
from airflow_kstream.model.errors import Denied, InvalidInput, NotFound
from airflow_kstream.model.streams.declarations import fingerprint, read_spec
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.versioned import UnknownSpec, read, write
from airflow_kstream.policy.authors import may_declare

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.webhdfs import FileStatus, Hdfs
    from airflow_kstream.supervise.clusters.state_dir import StateDir


VERSION = 1
_ADOPTED = "adopted."
# A copy that was missing is looked for again after so many seconds.
_MISSES_HOLD_SECONDS = 600.0


@dataclass(frozen=True)
class Copy:
    """A declaration as a supervisor kept it.

    `user` and `yarn_user` are the names that HDFS and YARN gave the stream's user when it logged in, empty if that is
    not known. `author` is the supervisor, by HDFS's owner of the file; `at` is when it was written.
    """

    spec: StreamSpec = field(repr=False)
    user: str
    yarn_user: str
    author: str
    at: datetime


@dataclass(frozen=True)
class CopyFile:
    """A file with a copy. Its name tells the fingerprint and the stream's user, so that a listing tells them too."""

    path: str
    status: FileStatus

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the declaration, empty if it holds none."""
        return "" if self.status.name.startswith(_ADOPTED) else self.status.name.partition(".")[0].replace("-", ":")

    @property
    def user(self) -> str:
        """Return the name that HDFS gave the stream's user, empty if that was not known."""
        return unquote(self.status.name.partition(".")[2]) if self.fingerprint else ""


def copy_name(spec_fingerprint: str, user: str) -> str:
    """Return the name of a copy's file: HDFS has no names with a colon."""
    name = spec_fingerprint.replace(":", "-")
    return f"{name}.{quote(user, safe='')}" if user else name


def written_copy(spec: StreamSpec, yarn_user: str) -> str:
    """Return a copy's text. It only refers to secrets, as a declaration does; Airflow's options stay out."""
    mapping = {name: value for name, value in spec.to_mapping().items() if name != "airflow"}
    return write(VERSION, {"spec": mapping, "yarn_user": yarn_user, "by": user_at_host()}, indent=1)


def adopted_name(application: str, user: str) -> str:
    """Return the name of a supervisor's word that this adopted application runs as this user."""
    return f"{_ADOPTED}{application}.{quote(user, safe='')}"


class Copies:
    """The copies of declarations in one state_dir. What was read once is remembered until its file changes."""

    def __init__(self, hdfs: Hdfs, state: StateDir) -> None:
        self._hdfs = hdfs
        self._state = state
        self._listed: dict[str, tuple[CopyFile, ...]] = {}
        # When a stream's copies were listed for something that was missing, and what was seen of it then, in short.
        self._missed: dict[tuple[str, str], tuple[float, int]] = {}
        self._read: dict[str, tuple[FileStatus, Copy | None]] = {}

    def of(self, stream: StreamId, spec_fingerprint: str, author: str) -> Copy | None:
        """Return the readable copy with this fingerprint that a claim of this author names: the reader's own, or else
        the newest; None if no supervisor kept one.

        A former user's declarations are not the present one's to choose: a copy is for the claims of its user, and all
        are for a supervisor's. Costs a listing for each supervisor with copies the first time and on a miss, and one
        request for a file that is new.
        """
        supervisors = self._state.supervisors
        chooses_any = not author or author in supervisors

        def is_named(file: CopyFile) -> bool:
            its_own = chooses_any or file.user == author
            return its_own and file.fingerprint == spec_fingerprint and self.read(file) is not None

        readable = self._with(stream, is_named, spec_fingerprint if chooses_any else f"{spec_fingerprint} of {author}")
        file = min(readable, key=lambda file: file.status.owner != self._state.user, default=None)
        return self.read(file) if file else None

    def users(self, stream: StreamId, *, among: Iterable[str], where: str = "") -> frozenset[str]:
        """Return which of these short names HDFS gave this stream's user some day, by the copies that are kept.

        Costs one listing for all names that are not known, however many; not for the same ones at the same place again.
        """
        wanted = frozenset(filter(None, among))
        return self._known_among(stream, wanted, where, wanted)

    def users_of(self, stream: StreamId, files: Mapping[str, str]) -> frozenset[str]:
        """Return which of the owners of these files HDFS gave this stream's user some day, as `users` does.

        A new file of somebody unknown is looked into at once: the first claim of the stream's next user is one.
        """
        return self._known_among(stream, frozenset(files.values()), stream.folder, files.items())

    def _known_among(
        self, stream: StreamId, wanted: frozenset[str], where: str, seen: Iterable[Hashable]
    ) -> frozenset[str]:
        if not wanted <= self._known_users(stream):
            self._look_for(stream, where, hash(frozenset(seen)))
        return wanted & self._known_users(stream)

    def yarn_user(self, stream: StreamId, user: str) -> str:
        """Return the name that YARN gave this user of the stream, empty if no copy tells it."""
        files = self._with(stream, lambda file: file.user == user, f"user {user}")
        copies = (self.read(file) for file in files)
        return next((copy.yarn_user for copy in copies if copy and copy.yarn_user), "")

    def user_of_adopted(self, stream: StreamId, application: str) -> str:
        """Return the user that a supervisor named when it adopted this application, empty if none did."""
        name = f"{_ADOPTED}{application}"
        found = self._with(stream, lambda file: file.status.name.startswith(f"{name}."), name)
        return next((unquote(file.status.name.removeprefix(f"{name}.")) for file in found), "")

    def files(self, stream: StreamId) -> tuple[CopyFile, ...]:
        """List the stream's copies by supervisors now. What can't be listed has none."""
        found: list[CopyFile] = []
        listing = self._state.last()
        for folder, entry in listing.folders(FolderKind.DECLARED).items():
            if may_declare(entry.owner, listing.supervisors):
                with suppress(Denied):
                    place = f"{folder}/{stream}"
                    found += [CopyFile(f"{place}/{each.name}", each) for each in self._hdfs.listing(place).entries]
        believed = [file for file in found if may_declare(file.status.owner, listing.supervisors)]
        self._listed[str(stream)] = tuple(sorted(believed, key=lambda file: file.status.modified, reverse=True))
        return self._listed[str(stream)]

    def read(self, file: CopyFile) -> Copy | None:
        """Read a copy that was listed; None if it is gone, or can't be read or understood."""
        known = self._read.get(file.path)
        if known and known[0] == file.status:
            return known[1]
        copy: Copy | None = None
        with suppress(InvalidInput, NotFound, Denied):
            copy = _read_copy(self._hdfs.read(file.path), file)
        self._read[file.path] = file.status, copy
        return copy

    def _known_users(self, stream: StreamId) -> frozenset[str]:
        return frozenset(file.user for file in self._listed.get(str(stream), ()))

    def look_again(self, stream: StreamId) -> None:
        """Forget what was listed: a copy was written."""
        self._listed.pop(str(stream), None)
        self._missed = {missed: at for missed, at in self._missed.items() if missed[0] != str(stream)}

    def _with(self, stream: StreamId, wanted: Callable[[CopyFile], bool], what: str) -> tuple[CopyFile, ...]:
        """Return the files that are wanted, newest first; list them again if none is known, but not at each look."""
        found = tuple(filter(wanted, self._listed.get(str(stream), ())))
        return found or tuple(filter(wanted, self._look_for(stream, what)))

    def _look_for(self, stream: StreamId, what: str, seen: int = 0) -> tuple[CopyFile, ...]:
        """Return the stream's copies, listed again unless that was done lately for the same."""
        key, now = (str(stream), what), time.monotonic()
        at, before = self._missed.get(key, (-math.inf, seen))
        if seen != before or now - at >= _MISSES_HOLD_SECONDS:
            self.files(stream)
            self._missed[key] = now, seen
        return self._listed[str(stream)]


def _read_copy(text: str, file: CopyFile) -> Copy | None:
    """Return the copy; None if this version can't submit what it holds, or it is not what its name says."""
    try:
        fields = read(text, VERSION)
    except InvalidInput:
        return None
    spec = read_spec(fields.get("spec"))
    if isinstance(spec, UnknownSpec) or fingerprint(spec) != file.fingerprint:
        return None
    yarn_user = fields.get("yarn_user")
    status = file.status
    return Copy(spec, file.user, yarn_user if isinstance(yarn_user, str) else "", status.owner, status.modified)
