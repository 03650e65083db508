"""The output of fsck about open files, read as it arrives.

With `openforwrite` and without `files`, NamenodeFsck writes a dot for each closed file, a newline after each hundred
files, and for an open one `PATH N bytes, replicated: replication=R, K block(s), OPENFORWRITE: ` with no newline, all
unquoted. Reports on damaged blocks come in between, with the path of the file and a colon. A name may contain anything
but a colon and a slash (DFSUtilClient.isValidName), including newlines and `5 bytes, 1 block(s)`: only the colons tell
where a path begins and ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from airflow_kstream.model.errors import Denied, NotFound, Unavailable

_MARK = ", OPENFORWRITE: "
# Before Hadoop 3 it does not say how a file is replicated.
_SIZE = re.compile(r" \d+ bytes, (?:replicated: replication=\d+, |erasure-coded: policy=[^,:]+, )?\d+ block\(s\)$")
# The rest of a report after its last colon: most reports end with their line, these two do not.
_REPORT = re.compile(r" (?:MISSING|CORRUPT) \d+ blocks of total size \d+ B\.|[^\n]*\n")
_PROGRESS = ".\n"
# A path has at most 8,000 characters (HdfsServerConstants.MAX_PATH_LENGTH), and a report a few hundred more.
_KEPT = 1 << 16
_GOOD_ENDS = ("' is HEALTHY", "' is CORRUPT")


class Standby(Unavailable):
    """The answer of a NameNode that is not the active one."""


class FsckReader:
    """A parser to feed with the text piece by piece; it keeps only the end of what it has read."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> Iterator[str]:
        """Yield the paths of newly known open files. Raises Unavailable: when a row can't be understood."""
        *rows, self._rest = (self._rest + text).split(_MARK)
        yield from map(_path, rows)
        if len(self._rest) > 2 * _KEPT:
            self._rest = self._rest[-_KEPT:].partition("\n")[2]

    def finish(self) -> None:
        """Check, after the whole text was fed, that fsck came to its end.

        Raises Denied: when it met something that this user may not see. Raises NotFound: when there is no such path.
        Raises Standby: when the NameNode is not active. Raises Unavailable: when it ended in any other way.
        """
        end = self._rest
        if end.endswith(_GOOD_ENDS):
            return
        if end.endswith("' does not exist"):
            raise NotFound("it does not exist")
        if not end.endswith("' FAILED"):
            raise Unavailable("the answer ended before fsck did")
        message = end.rpartition(" milliseconds\n")[2].rpartition("\n\n\n")[0]
        raise _failure(message.partition("\n")[0])


def _path(row: str) -> str:
    size = _SIZE.search(row)
    if not size:
        raise Unavailable(f"unknown format of an open file in fsck's report: {row[-200:]!r}")
    _, colon, path = row[: size.start()].rpartition(":")
    if colon and (report := _REPORT.match(path)):
        path = path[report.end() :]
    path = path.lstrip(_PROGRESS)
    if not path.startswith("/"):
        raise Unavailable(f"unknown format of fsck's report: {row[:200]!r}")
    return path


def _failure(message: str) -> Unavailable | Denied:
    if "state standby" in message:
        return Standby("it is not the active one")
    # The message of an AccessControlException; the output leaves its class out.
    kind = Denied if message.startswith(("Permission denied", "Access denied")) else Unavailable
    return kind(f"fsck failed: {message}")
