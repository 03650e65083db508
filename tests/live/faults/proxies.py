"""Proxies between a supervisor and the cluster's web servers, which hold a request so that a fault comes just then.

They pass everything on as it is, Negotiate and cookies included. Nothing but supervisors goes through them: drivers and
spark-submit know the servers' own addresses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from airflow_kstream.minicluster import Minicluster

# In seconds: longer than anything waits here, so that a test fails with its own words.
_LONG = 300.0
# They belong to one connection; the body is passed on whole.
_OF_A_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@dataclass(frozen=True)
class Request:
    """A request of a supervisor. `operation` is WebHDFS's, `target` the path or, for a rename, where it goes."""

    method: str
    operation: str
    target: str
    query: str

    @classmethod
    def of(cls, method: str, address: str) -> Request:
        parts = urlsplit(address)
        words = {name.lower(): values[0] for name, values in parse_qs(parts.query).items()}
        return cls(method, words.get("op", "").upper(), words.get("destination", parts.path), parts.query)

    def renames_to(self, name: str) -> bool:
        return self.operation == "RENAME" and self.target.endswith(f"/{name}")

    def writes(self, name: str) -> bool:
        return self.operation == "CREATE" and self.target.endswith(f"/{name}")


class Moment(Enum):
    """The moment at which a request is held: before the server sees it, or when the server has done it."""

    ASKED = auto()
    ANSWERED = auto()


@dataclass
class Gate:
    """A place where one request waits until the test lets it go on, or loses it."""

    moment: Moment
    wanted: Callable[[Request], bool]
    lost: bool = False
    _reached: threading.Event = field(default_factory=threading.Event)
    _opened: threading.Event = field(default_factory=threading.Event)

    def await_request(self) -> None:
        assert self._reached.wait(_LONG), "the supervisor never came to this request"

    def open(self, *, lose: bool = False) -> None:
        """Let the request go on; `lose` closes its connection without an answer."""
        self.lost = lose
        self._opened.set()

    def hold(self) -> None:
        self._reached.set()
        self._opened.wait(_LONG)


class Proxies:
    """One proxy for each NameNode and each ResourceManager of a cluster."""

    def __init__(self, minicluster: Minicluster) -> None:
        self._gates: list[Gate] = []
        self._lock = threading.Lock()
        self._servers: list[ThreadingHTTPServer] = []
        self.away = False
        self.refused = threading.Semaphore(0)
        self.namenodes = self._in_front_of(minicluster.namenodes)
        self.resourcemanagers = self._in_front_of(minicluster.resourcemanagers)

    @property
    def addresses(self) -> dict[str, str]:
        """Return the fields of a connection that goes through them."""
        return {"namenodes": ",".join(self.namenodes), "resourcemanagers": ",".join(self.resourcemanagers)}

    @contextmanager
    def gate(self, moment: Moment, wanted: Callable[[Request], bool]) -> Iterator[Gate]:
        """Hold the first request that is wanted, at that moment; it goes on at the end at the latest."""
        gate = Gate(moment, wanted)
        with self._lock:
            self._gates.append(gate)
        try:
            yield gate
        finally:
            with self._lock:
                if gate in self._gates:
                    self._gates.remove(gate)
            gate.open(lose=gate.lost)

    def taken(self, moment: Moment, request: Request) -> Gate | None:
        """Return the gate for this request, once."""
        with self._lock:
            gate = next((gate for gate in self._gates if gate.moment is moment and gate.wanted(request)), None)
            if gate:
                self._gates.remove(gate)
        return gate

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _in_front_of(self, addresses: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"http://localhost:{self._serve(urlsplit(address).netloc)}" for address in addresses)

    def _serve(self, behind: str) -> int:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, behind))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        self._servers.append(server)
        return int(server.server_address[1])


def _handler(proxies: Proxies, behind: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            # The supervisor was killed, or its request is lost on purpose.
            with suppress(ConnectionError):
                super().handle()

        def do_GET(self) -> None:
            self._pass_on()

        do_PUT = do_POST = do_DELETE = do_GET

        def _pass_on(self) -> None:
            self.close_connection = proxies.away
            if proxies.away:
                proxies.refused.release()
                return
            request = Request.of(self.command, self.path)
            if self._lost_at(proxies.taken(Moment.ASKED, request)):
                return
            try:
                answer, body = self._answer()
            except (OSError, HTTPException):
                # The server is away: so is its proxy.
                self.close_connection = True
                return
            granted = answer.status < 400
            if granted and self._lost_at(proxies.taken(Moment.ANSWERED, request)):
                return
            self._send(answer, body)

        def _lost_at(self, gate: Gate | None) -> bool:
            if gate is None:
                return False
            gate.hold()
            self.close_connection = self.close_connection or gate.lost
            return gate.lost

        def _answer(self) -> tuple[HTTPResponse, bytes]:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            upstream = HTTPConnection(behind, timeout=_LONG)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_A_CONNECTION}
            try:
                upstream.request(self.command, self.path, sent or None, headers)
                answer = upstream.getresponse()
                return answer, answer.read()
            finally:
                upstream.close()

        def _send(self, answer: HTTPResponse, body: bytes) -> None:
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in _OF_A_CONNECTION:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
