"""Calls to the active server of a pair, NameNodes or ResourceManagers, and our errors for its refusals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from airflow_kstream.clients.kerberos.krb5_errors import kerberos_error
from airflow_kstream.clients.lazy import gssapi
from airflow_kstream.clients.rpc.connection import Answer, RemoteError, RpcConnection, Terms
from airflow_kstream.clients.rpc.java_exceptions import NOT_ACTIVE, error_of
from airflow_kstream.clients.rpc.sasl import NoProtection
from airflow_kstream.model.errors import CredentialError, InvalidInput, KstreamError, Unavailable
from airflow_kstream.model.formats.protobuf import Malformed
from airflow_kstream.model.kerberos.identity import Identity


class ActiveServer:
    """The connections to the servers of a pair, each made when it is needed, and again when it was lost.

    When the active one is gone or has become the standby, the others are tried, and all again for as long as an answer
    may take. Threads take turns.
    `latency` is the mean time from a request to its answer in the last call that was answered, in seconds.
    """

    def __init__(self, addresses: tuple[str, ...], identity: Identity, terms: Terms) -> None:
        for address in addresses:
            if not address.rpartition(":")[2].isdecimal():
                raise InvalidInput(f"{address!r} is not an RPC address of a {terms.kind}; write host:port")
        self._addresses = list(addresses)
        self._identity = identity
        self._terms = terms
        self._connections: dict[str, RpcConnection] = {}
        self._lock = Lock()
        self.latency = 0.0

    @property
    def servers(self) -> str:
        return ", ".join(sorted(self._addresses))

    def call(self, tried: str, method: str, requests: Sequence[bytes]) -> list[Answer]:
        """Call the method for each request and return the answers in order; a refused request's answer is the refusal.

        Only for requests that may be repeated: after a lost answer all are sent again. Raises Unavailable: when no
        server is active. Raises Denied or CredentialError: when none lets us in.
        """
        retrying = Retrying(
            retry=retry_if_exception_type(_FailingOver),
            wait=wait_exponential(multiplier=0.1, max=2),
            stop=stop_after_delay(self._terms.read_seconds),
            reraise=True,
        )
        with self._errors_of(tried), self._lock:
            return retrying(self._ask_each, method, requests)

    def call_once(self, tried: str, method: str, requests: Sequence[bytes]) -> list[Answer]:
        """Do the same for requests of which no server may get one twice.

        Raises Unavailable: also when requests may have arrived, without an answer. Only a server that can't be
        reached, or refuses all as the standby, makes way for the other.
        """
        with self._errors_of(tried), self._lock:
            return self._ask_each(method, requests, once=True)

    def error(self, refusal: RemoteError, tried: str) -> KstreamError:
        """Return our error for the server's exception."""
        return self._with_context(_mapped(refusal), tried)

    def close(self) -> None:
        with self._lock:
            while self._connections:
                self._connections.popitem()[1].close()

    def _ask_each(self, method: str, requests: Sequence[bytes], *, once: bool = False) -> list[Answer]:
        troubles: dict[str, KstreamError] = {}
        for address in tuple(self._addresses):
            try:
                answers = self._ask_once(address, method, requests) if once else self._ask(address, method, requests)
            except _foreign() as error:
                troubles[address] = _mapped(error)
                continue
            passive = [isinstance(answer, RemoteError) and answer.java_class in NOT_ACTIVE for answer in answers]
            if not (all(passive) if once else any(passive)):
                # The next call begins with the server where this one succeeded.
                self._addresses.sort(key=lambda other: other != address)
                return answers
            troubles[address] = _FailingOver("it is not the active one")
        raise _nobody(troubles, self._terms.kind)

    def _ask(self, address: str, method: str, requests: Sequence[bytes]) -> list[Answer]:
        kept = self._connections.pop(address, None)
        if kept is not None:
            try:
                return self._use(kept, address, method, requests)
            except ConnectionError:
                # A server closes a connection that was idle for some seconds, and protection ends with the ticket.
                pass
        return self._use(RpcConnection(address, self._identity, self._terms), address, method, requests)

    def _ask_once(self, address: str, method: str, requests: Sequence[bytes]) -> list[Answer]:
        kept = self._connections.pop(address, None) or RpcConnection(address, self._identity, self._terms)
        try:
            return self._use(kept, address, method, requests)
        except _foreign() as error:
            raise _Sent(error) from error

    def _use(self, connection: RpcConnection, address: str, method: str, requests: Sequence[bytes]) -> list[Answer]:
        try:
            answers = connection.call(method, requests)
        except BaseException:
            connection.close()
            raise
        self._connections[address] = connection
        self.latency = connection.latency
        return answers

    @contextmanager
    def _errors_of(self, tried: str) -> Iterator[None]:
        try:
            yield
        except _Sent as error:
            lost = f"{_mapped(error.cause).message.rstrip('.')}; the requests may have arrived"
            raise self._with_context(Unavailable(lost), tried) from error.cause
        except _FailingOver as error:
            raise self._with_context(Unavailable(error.message), tried) from None
        except KstreamError as error:
            self._with_context(error, tried)
            raise

    def _with_context(self, error: KstreamError, tried: str) -> KstreamError:
        """Add attempt, server and principal to the error; the error of a missing ticket already has them."""
        if not error.tried:
            error.tried, error.server, error.principal = tried, self.servers, str(self._identity)
        return error


class _Sent(Exception):
    """The end of a connection on which requests may have arrived. No other server is tried after it."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _FailingOver(Unavailable):
    """The answer of a server that is not the active one: another may be about to become it."""


def _nobody(troubles: dict[str, KstreamError], kind_of_server: str) -> KstreamError:
    errors = list(troubles.values())
    if not any(error.retryable for error in errors):
        return errors[0]
    kind = _FailingOver if any(isinstance(error, _FailingOver) for error in errors) else Unavailable
    reasons = "; ".join(f"{address}: {error.message.rstrip('.')}" for address, error in troubles.items())
    return kind(f"no active {kind_of_server} found ({reasons})")


def _foreign() -> tuple[type[Exception], ...]:
    gss = gssapi.raw.misc.GSSError
    return (OSError, Malformed, NoProtection, gss, RemoteError, CredentialError, Unavailable)


def _mapped(error: Exception) -> KstreamError:
    match error:
        case KstreamError():
            return error
        case RemoteError():
            return error_of(error.java_class)(str(error))
        case gssapi.raw.misc.GSSError():
            return kerberos_error(error)
        case NoProtection():
            return InvalidInput(str(error))
        case TimeoutError():
            return Unavailable("it does not answer in time")
        case OSError():
            return Unavailable(error.strerror or str(error))
    return Unavailable(f"its answer makes no sense: {error}")
