"""A file as Hadoop itself describes it: by its tools and its plain REST interface, without this package's clients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import requests

from airflow_kstream.clients.http import kerberos_session
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.kerberos.identity import Identity

# A TRUNCATE to this length changes nothing, regardless of the file's state; any other number may cut it.
_BEYOND_EVERY_LENGTH = 2**63 - 1
_SECONDS = 30
_ROW = re.compile(r"^\S+ *\t(\S+) *\t *(/.*?)\n(?=\S+ *\t\S+ *\t|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Refusal:
    """WebHDFS's answer to a request that it refuses."""

    status: int
    exception: str
    message: str


def open_files(minicluster: Minicluster, under: str = "/") -> dict[str, str]:
    """Return the holder of each open file, by `hdfs dfsadmin -listOpenFiles`."""
    done = minicluster.hdfs("dfsadmin", "-listOpenFiles", "-path", under)
    assert done.returncode == 0, done.stderr
    _, _, rows = f"{done.stdout.rstrip()}\n".partition("\n")
    return {path: holder for holder, path in _ROW.findall(rows)}


def soft_probe(minicluster: Minicluster, path: str, who: str = "streamer") -> Refusal:
    """Request the lease while respecting its holder: a TRUNCATE that can change nothing."""
    answer = ask(minicluster, "POST", path, who, op="TRUNCATE", newlength=str(_BEYOND_EVERY_LENGTH))
    said = answer.json()["RemoteException"]
    return Refusal(answer.status_code, said["exception"], said["message"].partition("\n")[0])


def ask(
    minicluster: Minicluster, method: str, path: str, who: str = "streamer", **parameters: str
) -> requests.Response:
    """Ask the active NameNode over WebHDFS, and return its answer, also if it refuses."""
    with _session(minicluster, who) as session:
        return session.request(method, _url(minicluster, path), params=parameters, timeout=_SECONDS)


def located(minicluster: Minicluster, path: str, who: str = "streamer") -> dict[str, Any]:
    """Return LocatedBlocks from GET_BLOCK_LOCATIONS; they hold block tokens and must not be logged."""
    with _session(minicluster, who) as session:
        answer = session.get(
            _url(minicluster, path),
            params={"op": "GET_BLOCK_LOCATIONS", "offset": "0", "length": "1"},
            timeout=_SECONDS,
        )
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()["LocatedBlocks"]
    return found


def is_open(minicluster: Minicluster, path: str) -> bool:
    return bool(located(minicluster, path)["isUnderConstruction"])


def visible_length(minicluster: Minicluster, path: str, who: str = "streamer") -> int:
    """Return the number of bytes that a reader gets, which the DataNode says before it sends any."""
    with (
        _session(minicluster, who) as session,
        session.get(_url(minicluster, path), params={"op": "OPEN"}, stream=True, timeout=_SECONDS) as answer,
    ):
        answer.raise_for_status()
        return int(answer.headers["Content-Length"])


def content(minicluster: Minicluster, path: str, who: str = "streamer") -> bytes:
    with _session(minicluster, who) as session:
        answer = session.get(_url(minicluster, path), params={"op": "OPEN"}, timeout=_SECONDS)
    answer.raise_for_status()
    return answer.content


@contextmanager
def _session(minicluster: Minicluster, who: str) -> Iterator[requests.Session]:
    with kerberos_session(Identity(minicluster.principal(who), keytab=str(minicluster.keytab(who))), Tls()) as session:
        yield session


def _url(minicluster: Minicluster, path: str) -> str:
    active = dict(zip(("nn1", "nn2"), minicluster.namenodes, strict=False))[minicluster.active_namenode()]
    return f"{active}/webhdfs/v1{quote(path)}"
