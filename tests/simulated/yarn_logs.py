"""A NodeManager and a NameNode on loopback that show the logs of one container.

Simulated because a real NodeManager neither sends a byte a second nor half a gigabyte, and aggregates its logs when it
likes. Its pages are those of NMWebServices and LogToolUtils; that real ones are read is the business of
tests/contract/test_nodemanager.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.logs.container_log import LoggedContainer
from tests.simulated.served import Quiet, served
from tests.simulated.strange_servers import Answer, StrangeServer, serving

ADA = Identity("ada@EXAMPLE.TEST", keytab="/no/such/keytab")
APP = "application_1700000000000_0001"
ID = "container_1700000000000_0001_01_000001"
UNKNOWN = Answer(404, b"Unknown container. Container either has not started or has already completed", "text/plain")
NOT_ALLOWED = Answer(500, f"User [ada] is not authorized to view the logs for application {APP}".encode(), "text/plain")
BUCKET = f"/tmp/logs/bob/bucket-logs-tfile/0001/{APP}"
FILES = Path(__file__).with_name("aggregated")


def page(name: str, content: bytes, length: int | None = None, more: bytes = b"") -> Answer:
    """Return the page of a running container's file; `more` are the words of a part that was aggregated earlier."""
    of = f"Container: {ID} on node1:45454"
    head = f"{of}\nLogAggregationType: LOCAL\n{'=' * len(of)}\nLogType:{name}\n"
    size = len(content) if length is None else length
    head += f"LogLastModifiedTime:Thu Jan 01 00:00:00 +0000 2026\nLogLength:{size}\nLogContents:\n"
    end = f"End of LogType:{name}"
    foot = f"{end}.This log file belongs to a running container ({ID}) and so may not be complete.\n"
    shown = (head.encode() if content else b"") + content
    return Answer(200, shown + f"{foot}{'*' * (len(end) + 50)}\n\n".encode() + more, "text/plain; charset=utf-8")


class NameNode(Quiet):
    """A NameNode that serves the content of files itself, as HttpFS does, and lists the folders above them."""

    files: ClassVar[dict[str, bytes]] = {}
    # Called by each request.
    asked: ClassVar[list[Callable[[], None]]] = []

    def do_GET(self) -> None:
        for call in self.asked:
            call()
        parts, options = urlsplit(self.path), parse_qs(urlsplit(self.path).query)
        path = parts.path.removeprefix("/webhdfs/v1")
        if options["op"] == ["OPEN"]:
            offset, length = int(options["offset"][0]), int(options["length"][0])
            self._send(200, self.files[path][offset : offset + length], "application/octet-stream")
            return
        self._list(path, single=options["op"] == ["GETFILESTATUS"])

    def _list(self, path: str, *, single: bool) -> None:
        names = {name[len(path) + 1 :].partition("/")[0] for name in self.files if name.startswith(f"{path}/")}
        # A file that is named later is newer.
        order = {name: number for number, name in enumerate(self.files, start=1)}
        statuses = [self._status(f"{path}/{name}", name, order) for name in sorted(names)]
        missing = {"RemoteException": {"exception": "FileNotFoundException", "message": f"{path} does not exist."}}
        if single:
            self._send(200, json.dumps({"FileStatus": self._status(path, "", order)}).encode(), "application/json")
            return
        listing = {"partialListing": {"FileStatuses": {"FileStatus": statuses}}, "remainingEntries": 0}
        body = {"DirectoryListing": listing} if names else missing
        self._send(200 if names else 404, json.dumps(body).encode(), "application/json")

    def _status(self, path: str, name: str, order: Mapping[str, int]) -> dict[str, Any]:
        content = self.files.get(path)
        kind = "DIRECTORY" if content is None else "FILE"
        modified = order.get(path, 1)
        return {"pathSuffix": name, "modificationTime": modified, "length": len(content or b""), "type": kind}

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@dataclass
class Logs:
    """The logs as a client sees them. What is aggregated are `files`, by their paths."""

    nodemanager: StrangeServer
    namenode: str
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[Callable[[], None]] = field(default_factory=list)

    @property
    def container(self) -> LoggedContainer:
        return LoggedContainer(ID, self.nodemanager.address, "bob")

    def tails(self, *names: str, size: int = 20_000, seconds: float = 10.0) -> dict[str, str]:
        namenodes = (f"http://{self.namenode}",)
        cluster = Cluster("test", ("http://rm:8088",), namenodes, "hdfs://ns", ADA, "/apps/streams")
        tails = ContainerLogs(cluster, ADA).tails(self.container, names or ("stdout", "stderr"), size, seconds)
        return {name: tail.text for name, tail in tails.items()}

    def aggregate(self, name: str = "127.0.0.1_45454", file: str = "plain.tfile", folder: str = BUCKET) -> None:
        """Put a file that Hadoop's own TFile.Writer has written."""
        self.files[f"{folder}/{name}"] = (FILES / file).read_bytes()

    def aggregate_after(self, requests: int) -> None:
        """Put it there after so many requests to HDFS."""
        seen = iter(range(requests))
        self.asked.append(lambda: self.aggregate() if next(seen, None) is None else None)


@contextmanager
def logs(script: dict[str, Answer] | None = None) -> Iterator[Logs]:
    files: dict[str, bytes] = {}
    asked: list[Callable[[], None]] = []
    handler = type("Handler", (NameNode,), {"files": files, "asked": asked})
    with serving({"": UNKNOWN, **(script or {})}) as nodemanager, served(handler) as namenode:
        yield Logs(nodemanager, namenode, files, asked)
