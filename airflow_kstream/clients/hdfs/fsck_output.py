"""What fsck says of open files, read as it arrives.

With `openforwrite` and without `files`, NamenodeFsck writes a dot for each closed file, a newline after each hundred
files, and for an open one `PATH N bytes, replicated: replication=R, K block(s), OPENFORWRITE: ` with no newline, all
unquoted. What is wrong with a block is told in between, with the path of its file and a colon. A name may hold
anything but a colon and a slash (DFSUtilClient.isValidName), newlines and `5 bytes, 1 block(s)` included: so the
colons, and nothing else, tell where a path begins and ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from airflow_kstream.model.errors import Denied, NotFound, Unavailable

_MARK = ", OPENFORWRITE: "
# Before Hadoop 3 it does not say how a file is replicated.
_SIZE = re.compile(r" \d+ bytes, (?:replicated: replication=\d+, |erasure-coded: policy=[^,:]+, )?\d+ block\(s\)$")
# What is left of a report behind its last colon: most end with their line, these two do not.
_REPORT = re.compile(r" (?:MISSING|CORRUPT) \d+ blocks of total size \d+ B\.|[^\n]*\n")
_PROGRESS = ".\n"
# A path has at most 8,000 characters (HdfsServerConstants.MAX_PATH_LENGTH), and a report a few hundred more.
_KEPT = 1 << 16
_GOOD_ENDS = ("' is HEALTHY", "' is CORRUPT")


class Standby(Unavailable):
    """This NameNode is not the active one."""


class FsckReader:
    """Feed it the text piece by piece; it holds no more than the end of what it has read."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> Iterator[str]:
        """The paths of the open files that became known. Raise Unavailable for a row that can't be understood."""
        *rows, self._rest = (self._rest + text).split(_MARK)
        yield from map(_path, rows)
        if len(self._rest) > 2 * _KEPT:
            self._rest = self._rest[-_KEPT:].partition("\n")[2]

    def finish(self) -> None:
        """Raise, after all its text was fed, unless fsck came to its end.

        Raise Denied where it met what this user may not see, NotFound, Standby, and Unavailable for the rest.
        """
        end = self._rest
        if end.endswith(_GOOD_ENDS):
            return
        if end.endswith("' does not exist"):
            raise NotFound("it does not exist")
        if not end.endswith("' FAILED"):
            raise Unavailable("the answer breaks off before the end of fsck")
        said = end.rpartition(" milliseconds\n")[2].rpartition("\n\n\n")[0]
        raise _failure(said.partition("\n")[0])


def _path(row: str) -> str:
    size = _SIZE.search(row)
    if not size:
        raise Unavailable(f"fsck tells of an open file in another form than is known here: {row[-200:]!r}")
    _, colon, path = row[: size.start()].rpartition(":")
    if colon and (report := _REPORT.match(path)):
        path = path[report.end() :]
    path = path.lstrip(_PROGRESS)
    if not path.startswith("/"):
        raise Unavailable(f"fsck reports in another form than is known here: {row[:200]!r}")
    return path


def _failure(said: str) -> Unavailable | Denied:
    if "state standby" in said:
        return Standby("it is not the active one")
    # The message of an AccessControlException; its class is not told.
    kind = Denied if said.startswith(("Permission denied", "Access denied")) else Unavailable
    return kind(f"fsck failed: {said}")
