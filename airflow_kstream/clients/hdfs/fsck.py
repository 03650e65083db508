"""Open files by the NameNode's fsck servlet: for users who are not superusers, on a bounded tree.

Its output is read as it arrives. With `openforwrite` and without `files`, NamenodeFsck writes a dot for each closed
file, a newline after each hundred files, and for an open one `PATH N bytes, replicated: replication=R, K block(s),
OPENFORWRITE: ` with no newline, all unquoted. Reports on damaged blocks come in between, with the path of the file
and a colon. A name may contain anything but a colon and a slash (DFSUtilClient.isValidName), including newlines and
`5 bytes, 1 block(s)`: only the colons tell where a path begins and ends.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

import requests

from airflow_kstream.clients.http import http_errors, kerberos_session
from airflow_kstream.clients.waiting import CONNECT_AND_READ_SECONDS
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.clusters.hdfs_path import checked_path, is_below
from airflow_kstream.model.errors import Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.open_file import OpenFile

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


_CHUNK = 1 << 16
# Hadoop's web server escapes these as HTML entities in every parameter, so that it never finds such a path.
_ESCAPED = frozenset("&<>\"'")


def open_files_by_fsck(addresses: tuple[str, ...], identity: Identity, tls: Tls, path: str) -> Iterator[OpenFile]:
    """Yield the open files at or below `path`, while the active NameNode walks the tree. fsck knows only their paths.

    The NameNode reads every file of the tree; we need no memory. `addresses` are base URLs. The caller needs the
    right to list every folder and to read every file of the tree, closed ones too. fsck can't handle a path with one
    of `& < > " '`: the folder above it is walked instead, with the rights that this needs.

    Raises Denied: when a file may not be read, after the files found before it. Raises NotFound: when there is no such
    path. Raises Unavailable: when no NameNode is active, or the answer breaks off and is therefore incomplete.
    """
    root = checked_path(path)
    troubles = []
    for address in addresses:
        answered = False
        try:
            for file in _walk(address, identity, tls, root):
                answered = True
                yield file
        except Unavailable as error:
            if answered:
                raise
            troubles.append(f"{address}: {error.message.rstrip('.')}")
        else:
            return
    reasons = "; ".join(troubles)
    raise Unavailable(
        f"no active NameNode found ({reasons})",
        tried=f"list open files below {path}",
        server=", ".join(addresses),
        principal=str(identity),
    )


def _walk(address: str, identity: Identity, tls: Tls, root: str) -> Iterator[OpenFile]:
    tried = f"list open files below {root}"
    reader = FsckReader()
    try:
        with http_errors(tried, address, identity), kerberos_session(identity, tls, limited=False) as session:
            for text in _answer(session, address, identity, root):
                yield from (OpenFile(path) for path in reader.feed(text) if is_below(root, path))
        reader.finish()
    except KstreamError as error:
        # The reader knows the words, but not which server sent them.
        error.tried, error.server, error.principal = tried, address, str(identity)
        raise


def _answer(session: requests.Session, address: str, identity: Identity, root: str) -> Iterator[str]:
    parameters = {"path": _askable(root), "openforwrite": "1"} | ({"doas": identity.do_as} if identity.do_as else {})
    with session.get(f"{address}/fsck", params=parameters, stream=True, timeout=CONNECT_AND_READ_SECONDS) as answer:
        if answer.status_code in (401, 403):
            raise Denied(f"it answers {answer.status_code}: {answer.text[:200]}")
        if not answer.ok:
            raise Unavailable(f"it answers {answer.status_code} {answer.reason}")
        decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
        yield from map(decoder.decode, answer.iter_content(_CHUNK))


def _askable(path: str) -> str:
    while _ESCAPED & set(path):
        path = path.rpartition("/")[0]
    return path or "/"
