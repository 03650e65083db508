"""Hadoop's RPC, version 9: one connection, logged in with Kerberos, many calls in flight.

Hand-written because the alternatives need a JVM for each query to a NameNode; `benchmarks/list_open_files.py` measures
both. Sources: RpcHeader.proto, IpcConnectionContext.proto and ProtobufRpcEngine.proto of hadoop-common, and
org.apache.hadoop.ipc.Server and org.apache.hadoop.security.SaslRpcClient where these are silent.
"""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from airflow_kstream.clients.lazy import gssapi
from airflow_kstream.clients.rpc.java_exceptions import simple_name
from airflow_kstream.clients.rpc.sasl import (
    DigestLogin,
    KerberosLogin,
    LoginToken,
    NoProtection,
    Protection,
    credentials,
)
from airflow_kstream.clients.waiting import USUAL
from airflow_kstream.model.errors import CredentialError
from airflow_kstream.model.formats.protobuf import Message, Value, delimited, encode, split_delimited, zigzag
from airflow_kstream.model.kerberos.identity import Identity, split_principal

_PREAMBLE = b"hrpc" + bytes([9, 0, 0xDF])  # version, service class, SASL
_PROTOBUF, _FINAL_PACKET = 2, 0
_SASL_CALL, _CONTEXT_CALL = -33, -3
_NEGOTIATE, _INITIATE, _CHALLENGE, _RESPONSE, _WRAP = 1, 2, 3, 4, 5
_LOGGED_IN = 0
_SUCCESS = 0
_CALL_IDS = 1 << 31
# The default of ipc.maximum.response.length; a server that announces more speaks another protocol.
_LONGEST_FRAME = 128 * 1024 * 1024
# Enough to keep the NameNode's handlers busy, too few to keep other clients waiting.
_IN_FLIGHT = 64


@dataclass(frozen=True)
class Terms:
    """The settings that all servers of a service share.

    `protocol` is the name of the Java interface. `_HOST` in `service_principal` stands for the server's own name.
    Timeouts in seconds count from the server's last sign of life. `kind` is what messages call the server.
    """

    protocol: str
    service_principal: str
    protections: tuple[Protection, ...]
    connect_seconds: float = USUAL.connect
    read_seconds: float = USUAL.read
    kind: str = "NameNode"


class RemoteError(Exception):
    """An exception that the server threw: its Java class, without the package, and its message's first line."""

    def __init__(self, java_class: str, message: str) -> None:
        super().__init__(f"{java_class}: {message}")
        self.java_class = java_class
        self.message = message


Answer = Message | RemoteError


class BrokenConnection(ConnectionError):
    """The end of a connection: the server closed it, or does not speak Hadoop RPC."""


class RpcConnection:
    """A connection, logged in as `identity`, as the user that it impersonates, or by a token. Not for several threads.

    `latency` is the mean time from a request to its answer in the last call, in seconds; 0.0 before the first call.

    Any exception except a RemoteError that is *returned* leaves it unusable. Raises RemoteError: when the server
    refuses the login. Raises CredentialError or Unavailable: when there is no ticket. Raises OSError (including
    BrokenConnection), Malformed, NoProtection or GSSError: when the connection fails.
    """

    def __init__(self, address: str, identity: Identity | LoginToken, terms: Terms) -> None:
        host, _, port = address.rpartition(":")
        self._terms = terms
        self._client = uuid.uuid4().bytes
        self._next_call = 0
        self.latency = 0.0
        self._seal: KerberosLogin | None = None
        self._socket = socket.create_connection((host.strip("[]"), int(port)), timeout=terms.connect_seconds)
        self._stream = _Stream(self._socket)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._stream.write(_PREAMBLE)
            self._log_in(host, identity)
            self._send(_CONTEXT_CALL, -1, encode({**_user(identity), 3: terms.protocol}))
            self._socket.settimeout(terms.read_seconds)
        except BaseException:
            self.close()
            raise

    def call(self, method: str, requests: Sequence[bytes]) -> list[Answer]:
        """Call the method for each request, many at a time, and return the answers in the order of the requests."""
        first = self._next_call
        self._next_call += len(requests)
        answers: dict[int, Answer] = {}
        sent = 0
        # The sum of the times of all answers, less that of all requests.
        waited = 0.0
        for received in range(len(requests)):
            if sent - received <= _IN_FLIGHT // 2:
                batch = requests[sent : received + _IN_FLIGHT]
                waited -= len(batch) * time.monotonic()
                self._stream.write(b"".join(self._frames(method, batch, first + sent)))
                sent += len(batch)
            call, answer = self._answer()
            answers[call] = answer
            waited += time.monotonic()
        self.latency = waited / max(1, len(requests))
        return [_answered(answers, (first + index) % _CALL_IDS) for index in range(len(requests))]

    def close(self) -> None:
        self._stream.close()

    def _frames(self, method: str, requests: Sequence[bytes], first: int) -> list[bytes]:
        header = delimited(encode({1: method, 2: self._terms.protocol, 3: 1}))
        return [
            self._wrapped(self._frame((first + index) % _CALL_IDS, 0, header + delimited(request)))
            for index, request in enumerate(requests)
        ]

    def _send(self, call: int, retry: int, message: bytes) -> None:
        self._stream.write(self._wrapped(self._frame(call, retry, delimited(message))))

    def _frame(self, call: int, retry: int, body: bytes) -> bytes:
        fields: dict[int, Value] = {1: _PROTOBUF, 2: _FINAL_PACKET, 3: zigzag(call), 4: self._client, 5: zigzag(retry)}
        content = delimited(encode(fields)) + body
        return len(content).to_bytes(4) + content

    def _wrapped(self, frame: bytes) -> bytes:
        if self._seal is None:
            return frame
        with _sealing():
            sealed = self._seal.wrap(frame)
        return self._frame(_SASL_CALL, -1, delimited(encode({2: _WRAP, 3: sealed})))

    def _answer(self) -> tuple[int, Answer]:
        """Read the number of a call and its answer. Raises RemoteError: when a refusal ends the connection."""
        header, body = _split(self._stream.frame())
        call, status = header.number(1), header.number(2)
        if status == _SUCCESS:
            return call, body
        error = _remote_error(header)
        if call >= _CALL_IDS or status != 1:
            raise error
        return call, error

    # Logging in.

    def _log_in(self, host: str, identity: Identity | LoginToken) -> None:
        self._send(_SASL_CALL, -1, encode({2: _NEGOTIATE}))
        offers = self._sasl_answer()
        if isinstance(identity, LoginToken):
            if Protection.AUTHENTICATION not in self._terms.protections:
                raise NoProtection("a login with a token protects no message, and hadoop.rpc.protection wants that")
            offer = _offer(offers, "TOKEN", "DIGEST-MD5")
            digest = DigestLogin(identity, f"{offer.text(3)}/{offer.text(4)}")
            self._exchange(digest, offer, digest.step(offer.data(5)))
            return
        offer = _offer(offers, "KERBEROS", "GSSAPI")
        service = self._service(host, offer)
        with credentials(identity) as ticket:
            login = KerberosLogin(service, ticket, self._terms.protections)
            self._exchange(login, offer, login.step())

    def _exchange(self, login: KerberosLogin | DigestLogin, offer: Message, first: bytes) -> None:
        # The server expects its offer back.
        chosen = encode({number: offer.text(number) for number in (1, 2, 3, 4)})
        self._send(_SASL_CALL, -1, encode({2: _INITIATE, 3: first, 4: chosen}))
        answer = self._sasl_answer()
        while answer.number(2) == _CHALLENGE:
            self._send(_SASL_CALL, -1, encode({2: _RESPONSE, 3: login.step(answer.data(3))}))
            answer = self._sasl_answer()
        login.end(answer.data(3))
        # Otherwise a server could skip the last challenge and pass without having proved itself.
        if answer.number(2) != _LOGGED_IN or not login.agreed:
            raise BrokenConnection("the server ended the login in the middle")
        if isinstance(login, KerberosLogin) and login.wraps:
            self._seal = login
            self._stream = _WrappedStream(self._stream, login)

    def _sasl_answer(self) -> Message:
        call, answer = self._answer()
        if isinstance(answer, RemoteError):
            raise answer
        if call != _SASL_CALL % (1 << 32):
            raise BrokenConnection("the server answers a login with something else")
        return answer

    def _service(self, host: str, offer: Message) -> str:
        """Return the server's principal: our settings give it, and the server's own claim must fit in for _HOST."""
        primary, instance, realm = split_principal(self._terms.service_principal)
        if instance != "_HOST":
            return self._terms.service_principal
        # Hadoop's own clients query the reverse DNS and believe it; we query it only when the names differ.
        claimed = offer.text(4).lower()
        if claimed not in (host.lower(), socket.getfqdn(self._socket.getpeername()[0]).lower()):
            raise CredentialError(f"the server at {host} calls itself {claimed!r}, which is not a name of that host")
        return f"{primary}/{claimed}@{realm}"


class _Stream:
    """A stream of frames, each with four bytes of length in front."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._file = connected.makefile("rb", buffering=1 << 16)

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def frame(self) -> bytes:
        return self.read(_length(self.read(4)))

    def read(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        if len(data) < size:
            raise BrokenConnection("the server closed the connection")
        return data

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class _WrappedStream(_Stream):
    """A stream of frames inside SASL messages, which may begin and end anywhere in a frame."""

    def __init__(self, outer: _Stream, login: KerberosLogin) -> None:
        self._outer = outer
        self._login = login
        self._clear = bytearray()

    def write(self, data: bytes) -> None:
        self._outer.write(data)

    def read(self, size: int) -> bytes:
        while len(self._clear) < size:
            self._clear += self._unwrapped()
        data = bytes(self._clear[:size])
        del self._clear[:size]
        return data

    def close(self) -> None:
        self._outer.close()

    def _unwrapped(self) -> bytes:
        header, body = _split(self._outer.frame())
        if header.number(2) != _SUCCESS:
            raise _remote_error(header)
        if body.number(2) != _WRAP:
            raise BrokenConnection("the server does not protect what it sends as it had agreed")
        with _sealing():
            return self._login.unwrap(body.data(3))


@contextmanager
def _sealing() -> Iterator[None]:
    try:
        yield
    except gssapi.raw.misc.GSSError as error:
        # It was tampered with, or the protection ended with the ticket: another login will tell.
        raise BrokenConnection(f"its protected messages can't be trusted ({type(error).__name__})") from error


def _length(prefix: bytes) -> int:
    length = int.from_bytes(prefix)
    if length > _LONGEST_FRAME:
        raise BrokenConnection(f"the server does not speak Hadoop RPC: its answer begins with {prefix!r}")
    return length


def _split(frame: bytes) -> tuple[Message, Message]:
    """Split a frame into header and body; an error has no body."""
    if not frame:
        raise BrokenConnection("the server does not speak Hadoop RPC: it sends an empty frame")
    header, *body = split_delimited(frame)
    return Message(header), Message(body[0] if body else b"")


def _answered(answers: dict[int, Answer], call: int) -> Answer:
    if call not in answers:
        raise BrokenConnection("the server answered a call that was not made")
    return answers[call]


def _remote_error(header: Message) -> RemoteError:
    java_class = simple_name(header.text(4))
    lines = header.text(5).splitlines() or ["it gives no reason"]
    # Some messages are stack traces, whose first line begins with the class.
    return RemoteError(java_class, lines[0].removeprefix(f"{header.text(4)}: "))


def _offer(answer: Message, method: str, mechanism: str) -> Message:
    """Return this way to log in as the server described it."""
    offers = answer.messages(4)
    for offer in offers:
        if (offer.text(1), offer.text(2)) == (method, mechanism):
            return offer
    raise BrokenConnection(
        f"the server does not offer a {method.title()} login, only {[offer.text(1) for offer in offers]}"
    )


def _user(identity: Identity | LoginToken) -> dict[int, Value]:
    """Return the context's field with the user; a token names its own."""
    if isinstance(identity, LoginToken):
        return {}
    if identity.do_as:
        return {2: encode({1: identity.do_as, 2: identity.principal})}
    return {2: encode({1: identity.principal})}
