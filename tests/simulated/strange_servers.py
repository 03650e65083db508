"""Web servers on loopback that answer as a proxy, a broken, a frozen or another product's server does.

Real ResourceManagers and NameNodes can't be made to give these answers; how they answer is the business of
tests/contract. A script maps the end of a request's path to an answer; its longest match counts.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """An answer. `drip` is the pause in seconds before each byte, of the body alone unless `dripping_head`."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    drip: float = 0.0
    dripping_head: bool = False


def said(content: object, status: int = 200) -> Answer:
    return Answer(status, json.dumps(content).encode())


def page(files: list[dict[str, Any]], remaining: int = 0) -> Answer:
    """Return a page of a NameNode's listing, after which so many entries remain."""
    partial = {"FileStatuses": {"FileStatus": files}}
    return said({"DirectoryListing": {"partialListing": partial, "remainingEntries": remaining}})


DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
NOW = parsedate_to_datetime(DATE)
HTML = b"<html><head><title>Portal</title></head><body>Please log in.</body></html>"
# Name -> an answer that no ResourceManager or NameNode gives.
STRANGE: dict[str, Answer] = {
    "HTML with 200": Answer(200, HTML, "text/html"),
    "401": Answer(401, HTML, "text/html"),
    "403 of a proxy": Answer(403, HTML, "text/html"),
    "404 of a proxy": Answer(404, HTML, "text/html"),
    "500": Answer(500, HTML, "text/html"),
    "503": Answer(503, b"", "text/plain"),
    "redirect without Location": Answer(307, b""),
    "truncated JSON": Answer(200, b'{"clusterInfo": {"haState": "ACT'),
    "JSON nested 100,000 deep": Answer(200, b'{"a": [' * 100_000),
    "a list": Answer(200, b"[]"),
    "another product's JSON": Answer(200, b'{"status": "UP"}'),
    "broken gzip": Answer(200, b"\x1f\x8bnot gzip at all", headers={"Content-Encoding": "gzip"}),
    "JSON of a proxy with 404": Answer(404, b'{"error": "no such route"}'),
}


def introduction(state: str = "ACTIVE", since: datetime | float = NOW - timedelta(days=1)) -> Answer:
    """Return a ResourceManager's word about itself; `since` is when it became active, or any other number."""
    started = since.timestamp() * 1000 if isinstance(since, datetime) else since
    return said({"clusterInfo": {"haState": state, "hadoopVersion": "3.4.3", "startedOn": started}})


@dataclass
class StrangeServer:
    """A running server. `script` may be changed while it runs; `requests` are the method and path of each request."""

    address: str
    script: dict[str, Answer | Callable[[], Answer]]
    requests: list[str] = field(default_factory=list)

    def answer_to(self, request: str) -> Answer:
        self.requests.append(request)
        path = request.partition(" ")[2]
        matches = [known for known in self.script if known in path]
        found = self.script[max(matches, key=len)] if matches else Answer(404, HTML, "text/html")
        return found if isinstance(found, Answer) else found()


@contextmanager
def serving(script: Mapping[str, Answer | Callable[[], Answer]]) -> Iterator[StrangeServer]:
    """Serve this script; the empty path matches every request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # A head and a body are two packets; the second one would wait 40 ms for the other side's acknowledgment.
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = server.answer_to(f"{self.command} {self.path}")
            fields = {"Content-Type": answer.kind, "Content-Length": str(len(answer.body)), "Date": DATE}
            lines = [f"{name}: {value}" for name, value in (fields | dict(answer.headers)).items()]
            head = "\r\n".join([f"HTTP/1.1 {answer.status} As scripted", *lines, "", ""]).encode()
            self._send(head, answer.drip if answer.dripping_head else 0)
            self._send(answer.body, answer.drip)

        do_GET = do_PUT = do_POST = do_DELETE = _answer

        def _send(self, content: bytes, pause: float) -> None:
            try:
                for part in (content[at : at + 1] for at in range(len(content))) if pause else [content]:
                    time.sleep(pause)
                    self.wfile.write(part)
            except OSError:
                # The client has had enough of it.
                self.close_connection = True

        def log_message(self, format: str, *arguments: object) -> None:
            """Tests are silent."""

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.daemon_threads = True
    server = StrangeServer(f"http://127.0.0.1:{web.server_port}", dict(script))
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        web.shutdown()
        thread.join()
        web.server_close()
