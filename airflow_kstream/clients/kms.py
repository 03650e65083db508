"""Delegation tokens of a KMS, the key server of HDFS's encryption zones, over its REST interface.

Its address is the service of its tokens, such as `kms://https@one;two:9600/kms` (KMSClientProvider): the scheme, hosts
that share their tokens, a port and a path.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import requests

from airflow_kstream.clients.http import Context, http_errors, kerberos_session, kind_of_all, words_of_all
from airflow_kstream.clients.waiting import CONNECT_AND_READ_SECONDS
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError, Unavailable
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import FreshToken
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import KMS_TOKEN, Token, decoded_url_string, url_form

T = TypeVar("T")
_ADDRESS = re.compile(r"kms://(?P<scheme>https?)@(?P<hosts>[^/:@]+)(?P<port>:\d+)?(?P<path>/[^?#\s]*)")
_EPOCH = datetime.fromtimestamp(0, UTC)
_BY_COOKIE = "CANCELDELEGATIONTOKEN"
_REFUSALS: Mapping[int, type[KstreamError]] = {401: Denied, 403: Denied, 400: InvalidInput}


@dataclass(frozen=True)
class Kms:
    """A KMS, asked as one identity. `address` is the service of its tokens.

    Raises Unavailable: when no host of it answers. Raises CredentialError or Denied: when it does not let us in.
    """

    address: str
    identity: Identity
    tls: Tls

    def mint(self) -> FreshToken:
        """Make a token for this identity, or for the user that it impersonates. Its principal is the renewer.

        Only the KMS knows for how long it lives, and tells it to who renews. The token that is renewed is another one,
        cancelled at once: it stands in the KMS's request log, in the address that it was renewed by.
        """
        made = self._made()
        began = time.monotonic()
        probe = self._made()
        try:
            renewed = self._renewed(probe)
        finally:
            self.cancel(probe.identifier)
        # The probe was renewed no later than now: this is the earliest end that `made` may have.
        took = timedelta(seconds=time.monotonic() - began)
        return replace(made, until=made.read.issued + (renewed - probe.read.issued) - took)

    def _made(self) -> FreshToken:
        """Make a token; until when it lives is not known, so it counts as ended."""
        words = {"op": "GETDELEGATIONTOKEN", "renewer": self.identity.principal}
        if self.identity.do_as:
            words["doAs"] = self.identity.do_as
        text = self._ask("make a delegation token", "GET", words, _token)
        token, content = Token.from_url_string(text), decoded_url_string(text).reveal()
        identifier, password = content[token.identifier_place], SecretBytes(content[token.password_place])
        return FreshToken(self.address, self.address, identifier, password, _EPOCH, KMS_TOKEN)

    def cancel(self, identifier: bytes) -> None:
        """Cancel a token of which only the identifier was kept, as its owner or renewer.

        The KMS lets a holder of its own cookie do so, and compares no password then; without one it asks for the whole
        token (DelegationTokenAuthenticationHandler).
        """
        token = url_form(KMS_TOKEN, self.address, identifier, SecretBytes(b""))
        words = {"op": _BY_COOKIE, "token": token.reveal().decode()}
        self._ask("cancel a delegation token", "PUT", words, lambda answer: None)

    def _renewed(self, token: FreshToken) -> datetime:
        whole = url_form(KMS_TOKEN, self.address, token.identifier, token.password)
        words = {"op": "RENEWDELEGATIONTOKEN", "token": whole.reveal().decode()}
        return self._ask("renew a fresh delegation token", "PUT", words, _moment)

    def _ask(self, tried: str, method: str, words: Mapping[str, str], read: Callable[[requests.Response], T]) -> T:
        refusals: list[KstreamError] = []
        for server in _servers(self.address):
            try:
                return self._understood(tried, server, self._answer(tried, server, method, words), read)
            except KstreamError as refusal:
                refusals.append(refusal)
        kind, servers = kind_of_all(refusals), ", ".join(error.server for error in refusals)
        raise kind(words_of_all(refusals), tried=tried, server=servers, principal=str(self.identity))

    def _answer(self, tried: str, server: str, method: str, words: Mapping[str, str]) -> requests.Response:
        with (
            closing(kerberos_session(self.identity, self.tls)) as session,
            http_errors(tried, server, self.identity),
        ):
            if words["op"] == _BY_COOKIE:
                session.get(server + "/v1/", timeout=CONNECT_AND_READ_SECONDS, allow_redirects=False)
            return session.request(
                method, server + "/v1/", params=words, timeout=CONNECT_AND_READ_SECONDS, allow_redirects=False
            )

    def _understood(
        self, tried: str, server: str, answer: requests.Response, read: Callable[[requests.Response], T]
    ) -> T:
        context = Context(tried=tried, server=server, principal=str(self.identity))
        if answer.status_code != requests.codes.ok:
            raise _REFUSALS.get(answer.status_code, Unavailable)(_why(answer), **context)
        try:
            return read(answer)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            why = "its answer makes no sense"
        # Raised outside the handler: the frames of the exception caught there hold the token.
        raise Unavailable(why, **context)


def _token(answer: requests.Response) -> SecretBytes:
    return SecretBytes(str(answer.json()["Token"]["urlString"]).encode())


def _moment(answer: requests.Response) -> datetime:
    return datetime.fromtimestamp(answer.json()["long"] / 1000, UTC)


def is_kms(issuer: str) -> bool:
    """Return whether this issuer of tokens is a KMS, and not a filesystem."""
    return issuer.startswith("kms://")


def is_in_clear(address: str) -> bool:
    """Return whether this is a KMS whose tokens the network can read."""
    return is_kms(address) and _parts(address)["scheme"] == "http"


def _servers(address: str) -> list[str]:
    parts = _parts(address)
    return [f"{parts['scheme']}://{host}{parts['port'] or ''}{parts['path']}" for host in parts["hosts"].split(";")]


def _parts(address: str) -> re.Match[str]:
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        raise InvalidInput(f"{address!r} is not an address of a KMS, such as kms://https@host:9600/kms")
    return parts


def _why(answer: requests.Response) -> str:
    """Return the server's words: Hadoop's exception as JSON, or the status alone."""
    try:
        said = answer.json()["RemoteException"]["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        said = answer.reason
    return f"HTTP {answer.status_code}: {said}"
