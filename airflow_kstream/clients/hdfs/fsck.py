"""Open files by the NameNode's fsck servlet: for users who are not superusers, on a bounded tree."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

import requests

from airflow_kstream.clients.hdfs.fsck_output import FsckReader
from airflow_kstream.clients.http import CONNECT_AND_READ_SECONDS, http_errors, kerberos_session
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.clusters.hdfs_path import checked_path, is_below
from airflow_kstream.model.errors import Denied, KstreamError, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.leases.open_file import OpenFile

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
