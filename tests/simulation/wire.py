"""The wire: every request of `requests` ends here and goes to a simulated server. There are no sockets.

A server that is asked something it doesn't know raises SimulationError, which no caller can take for an answer.
"""

from __future__ import annotations

import io
import json
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, Self, TypeVar
from unittest.mock import patch
from urllib.parse import parse_qsl, unquote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3 import HTTPHeaderDict
from urllib3.response import HTTPResponse

from airflow_kstream.clients import spnego_auth, yarn_failover
from tests.simulation.virtual import Killed, Program, SimulationError, current

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Request:
    """A request as a server reads it."""

    method: str
    address: str
    path: str
    params: Mapping[str, str]
    body: bytes
    program: str

    @property
    def words(self) -> str:
        """Return what it asks for, as a story tells it."""
        path = self.path.removeprefix("/webhdfs/v1")
        return " ".join(filter(None, (self.method, self.params.get("op"), path, self.params.get("destination"))))

    def unknown(self) -> SimulationError:
        return SimulationError(f"no simulated server knows {self.method} {self.address}{self.path} {dict(self.params)}")

    def require_known(self, *known: str) -> None:
        if not self.params.keys() <= set(known):
            raise self.unknown()

    def json(self) -> Mapping[str, Any]:
        body: Mapping[str, Any] = json.loads(self.body)
        return body


@dataclass(frozen=True)
class Reply:
    """An answer. `body` is JSON unless it is bytes."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Server(Protocol):
    """A program that answers. `frozen_until` is when it goes on; a request that waits for it is carried out then."""

    down: bool
    frozen_until: float

    def answer(self, request: Request) -> Reply: ...


@dataclass(frozen=True)
class Fault:
    """A disturbance of one request: `kind` is a key of FAULTS; `seconds` is the length of a freeze."""

    kind: str
    seconds: float = 0.0


FAULTS = (
    "request lost",
    "reply lost",
    "crash before",
    "crash after",
    "freeze before",
    "freeze after",
    "failover before",
    "failover after, reply lost",
)


class Wire:
    """The network between programs and servers. `fault` says what happens to a program's next request, if anything."""

    def __init__(
        self,
        now: Callable[[], float],
        later: Callable[[float, Callable[[], object]], None],
        fault: Callable[[Program, Request], Fault | None],
        fail_over: Callable[[], None],
        tell: Callable[[Request, str], None],
    ) -> None:
        self.servers: dict[str, Server] = {}
        self.count = 0
        self.seen: Callable[[Request], None] = lambda request: None
        self._now, self._later, self._fault, self._fail_over, self._tell = now, later, fault, fail_over, tell

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Send what `requests` sends here, authenticated by nothing."""
        real = HTTPAdapter.send

        def send(adapter: HTTPAdapter, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
            program = current()
            return self.send(program, request, **kwargs) if program else real(adapter, request, *args, **kwargs)

        protocols = "_get_protocol_attrs"
        with ExitStack() as stack:
            for module, name, value in (
                # Python 3.11 computes it at each isinstance with a protocol, of which requests makes seven a request.
                (typing, protocols, cache(getattr(typing, protocols))),
                (HTTPAdapter, "send", send),
                (spnego_auth, "spnego_auth", lambda identity: None),
                # Its threads would be no program's.
                (yarn_failover, "ThreadPoolExecutor", _InTurn),
            ):
                # The product's own clients speak here: what is simulated begins below them.
                stack.enter_context(patch.object(module, name, value))
            yield

    def send(
        self, program: Program, prepared: requests.PreparedRequest, timeout: Any = None, **_: Any
    ) -> requests.Response:
        if program.over:
            raise Killed
        process = program.process
        request = _read(prepared, process.name)
        self._count(process, request)
        self.seen(request)
        program.pause(0.002 + 0.02 * process.rng.random())
        fault = self._fault(process, request)
        if fault:
            self._tell(request, fault.kind)
        kind = fault.kind if fault else ""
        if kind == "request lost":
            raise requests.ConnectionError("Connection reset by peer")
        if kind == "crash before":
            process.kill()
        if kind == "failover before":
            self._fail_over()
        if fault and kind == "freeze before":
            process.freeze(fault.seconds)
            program.pause(0)
        reply = self._reply(program, request, timeout)
        if kind == "crash after":
            process.kill()
        if kind == "failover after, reply lost":
            self._fail_over()
        if kind in {"reply lost", "failover after, reply lost"}:
            raise requests.ConnectionError("Remote end closed connection without response")
        if fault and kind == "freeze after":
            process.freeze(fault.seconds)
            program.pause(0)
        return _response(prepared, reply)

    def _reply(self, program: Program, request: Request, timeout: Any) -> Reply:
        server = self.servers.get(request.address)
        if server is None:
            raise SimulationError(f"no simulated server has the address {request.address}")
        if server.down:
            raise requests.ConnectionError("Connection refused")
        if server.frozen_until <= self._now():
            return server.answer(request)
        return self._from_a_frozen(server, program, request, timeout)

    def _from_a_frozen(self, server: Server, program: Program, request: Request, timeout: Any) -> Reply:
        """Wait for it as long as the caller does; it carries the request out when it goes on, answer or not."""
        _, patience = timeout if isinstance(timeout, tuple) else (timeout, timeout or 60.0)
        left = server.frozen_until - self._now()
        if left <= patience:
            program.pause(left)
            return server.answer(request)
        self._later(left, lambda: server.down or server.answer(request))
        program.pause(patience)
        raise requests.ReadTimeout("Read timed out.")

    def _count(self, program: Program, request: Request) -> None:
        self.count += 1
        program.requests += 1
        program.since_write += 1
        if request.method != "GET":
            program.writes += 1
            program.since_write = 0


class _InTurn:
    """An executor that does one thing after the other, in the program that asks for it."""

    def __init__(self, threads: int) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, do: Callable[[T], R], items: Iterable[T]) -> list[R]:
        return [do(item) for item in items]


def _read(prepared: requests.PreparedRequest, program: str) -> Request:
    parts = urlsplit(prepared.url or "")
    body = prepared.body or b""
    return Request(
        prepared.method or "",
        f"{parts.scheme}://{parts.netloc}",
        unquote(parts.path),
        dict(parse_qsl(parts.query, keep_blank_values=True)),
        body.encode() if isinstance(body, str) else bytes(body),
        program,
    )


def _response(prepared: requests.PreparedRequest, reply: Reply) -> requests.Response:
    plain = isinstance(reply.body, bytes)
    content = reply.body if plain else json.dumps(reply.body).encode()
    kind = "application/octet-stream" if plain else "application/json;charset=utf-8"
    headers = {"Content-Type": kind, "Content-Length": str(len(content)), **reply.headers}
    response = requests.Response()
    response.status_code = reply.status
    response.headers = CaseInsensitiveDict(headers)
    response.url = prepared.url or ""
    response.request = prepared
    response.encoding = "utf-8"
    response.raw = HTTPResponse(
        io.BytesIO(content), HTTPHeaderDict(headers), reply.status, preload_content=False, request_method="GET"
    )
    return response
