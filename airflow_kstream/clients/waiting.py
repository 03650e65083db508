"""The one way to wait for something that has to be polled, and how long any answer is waited for.

A limit holds for a whole answer: a server that sends a byte a second never exceeds one for each read.
"""

from __future__ import annotations

import io
import math
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import requests
import urllib3.connection
import urllib3.connectionpool
from requests.adapters import HTTPAdapter
from tenacity import RetryCallState, Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from airflow_kstream.model.errors import Unavailable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

T = TypeVar("T")


class TimeLimits(NamedTuple):
    """The seconds that connecting, the wait for the next bytes, and a whole answer may take."""

    connect: float
    read: float
    whole: float


# Every answer that the supervisor asks for is small: a page of JSON, a claim, a folder's listing.
USUAL = TimeLimits(5.0, 30.0, 60.0)
CONNECT_AND_READ_SECONDS = (USUAL.connect, USUAL.read)


def until(ask: Callable[[], T], every: timedelta, within: timedelta) -> T:
    """Call `ask` until the answer is not None, and return it; return None if it stays None for as long as `within`.

    It calls at least once, so that `within` zero is a single check. It retries when a server is away.

    Raises Unavailable: when the server is still away at the end. Any other error ends the wait at once.
    """
    asking = Retrying(
        retry=retry_if_exception_type(Unavailable) | retry_if_result(lambda answer: answer is None),
        wait=wait_fixed(every),
        stop=stop_after_delay(within),
        retry_error_callback=_last_answer,
    )
    answer: T = asking(ask)
    return answer


def _last_answer(state: RetryCallState) -> Any:
    """Return the answer of the last call, or raise its error."""
    return state.outcome.result() if state.outcome else None


def limit_whole_answers(session: requests.Session, whole: float) -> None:
    """Let each answer of this session take `whole` seconds from its first to its last byte, redirects one by one.

    Then reading it raises what requests raises for a timeout. A request may bring other limits: `TimeLimits` as its
    `timeout`.
    """
    for scheme in ("http://", "https://"):
        session.mount(scheme, _WholeAnswers(whole))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Let each answer for which this thread waits meanwhile take so long at most, whatever its request allows."""
    before = _AT_MOST.set(seconds)
    try:
        yield
    finally:
        _AT_MOST.reset(before)


def limit_all_answers(session: requests.Session, seconds: float) -> None:
    """Let all requests of this session together take so many seconds from now on, logins and redirects included.

    What comes later fails at once, with what requests raises for a timeout.
    """
    for scheme in ("http://", "https://"):
        session.mount(scheme, _AllAnswers(seconds))


_AT_MOST: ContextVar[float] = ContextVar("at most", default=math.inf)
# In seconds, while a request is under way.
_WHOLE: ContextVar[float] = ContextVar("whole answer", default=USUAL.whole)


class _WholeAnswers(HTTPAdapter):
    def __init__(self, whole: float) -> None:
        self._whole = whole
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def send(self, request: requests.PreparedRequest, *arguments: Any, **options: Any) -> requests.Response:
        limits, whole = options.get("timeout"), self._whole
        if isinstance(limits, TimeLimits):
            whole, limits = limits.whole, (limits.connect, limits.read)
        most = _AT_MOST.get()
        if most < math.inf:
            limits = tuple(most if one is None else min(one, most) for one in _connect_and_read(limits))
        before, options["timeout"] = _WHOLE.set(min(whole, most)), limits
        try:
            return super().send(request, *arguments, **options)
        finally:
            _WHOLE.reset(before)


def _connect_and_read(timeout: Any) -> tuple[float | None, float | None]:
    """Return the two limits that requests takes as a pair, as one number for both, or as none."""
    connect, read = timeout if isinstance(timeout, tuple) else (timeout, timeout)
    return connect, read


class _AllAnswers(_WholeAnswers):
    def __init__(self, seconds: float) -> None:
        self._ends, self._seconds = time.monotonic() + seconds, seconds
        super().__init__(seconds)

    def send(self, request: requests.PreparedRequest, *arguments: Any, **options: Any) -> requests.Response:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise requests.ReadTimeout(f"the {self._seconds:g} s that all answers together may take are over")
        options["timeout"] = TimeLimits(min(USUAL.connect, left), left, left)
        return super().send(request, *arguments, **options)


class _Response(HTTPResponse):
    def __init__(self, connected: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(connected, *arguments, **options)
        self.fp = io.BufferedReader(_Limited(self.fp.detach(), connected, _WHOLE.get()))


class _Connection(urllib3.connection.HTTPConnection):
    response_class = _Response


class _TlsConnection(urllib3.connection.HTTPSConnection):
    response_class = _Response


class _Pool(urllib3.connectionpool.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.connectionpool.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class _Limited(io.RawIOBase):
    """The bytes of one answer. Each read waits no longer than the rest of the whole answer's time."""

    def __init__(self, raw: io.RawIOBase, connected: socket.socket, limit: float) -> None:
        self._raw, self._limit, self._ends = raw, limit, time.monotonic() + limit
        # requests_kerberos looks for the socket under this name, to bind its answer to the TLS channel.
        self._sock = connected
        self._per_read = connected.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        left = self._ends - time.monotonic()
        if left > 0:
            self._sock.settimeout(left if self._per_read is None else min(left, self._per_read))
            try:
                return self._raw.readinto(buffer)
            except TimeoutError:
                if time.monotonic() < self._ends:
                    raise
        raise TimeoutError(f"its answer was not complete after {self._limit:g} s")

    def close(self) -> None:
        self._raw.close()
        super().close()
