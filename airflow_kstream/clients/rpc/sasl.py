"""The client's side of SASL: with Kerberos (RFC 4752), which also agrees on the protection, or with a token of Hadoop
(DIGEST-MD5, RFC 2831).

DIGEST-MD5 is obsolete everywhere else; Hadoop's servers offer no other mechanism for tokens
(SaslRpcServer.AuthMethod.TOKEN). Only `qop=auth`: a server that wants its messages protected is refused.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import md5
from hmac import compare_digest

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.lazy import gssapi
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity

_FIELD = re.compile(r'(?P<name>[a-z-]+)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^,"]*))(?:,|$)')
_FIRST = "00000001"

_NO_LIMIT = b"\xff\xff\xff"


class Protection(IntEnum):
    """The quality of protection, by its bit in the server's offer."""

    AUTHENTICATION = 1
    INTEGRITY = 2
    PRIVACY = 4


def protections(text: str) -> tuple[Protection, ...]:
    """Read `hadoop.rpc.protection`: one word, or several, best first. Raises InvalidInput: when one is unknown."""
    try:
        return tuple(Protection[word.strip().upper()] for word in text.split(","))
    except KeyError:
        allowed = ", ".join(protection.name.lower() for protection in Protection)
        raise InvalidInput(f"hadoop.rpc.protection is {text!r}; allowed are {allowed}") from None


@contextmanager
def credentials(identity: Identity) -> Iterator[gssapi.Credentials]:
    """Yield a fresh ticket of `identity` for one login. Raises CredentialError or Unavailable: when there is none."""
    with private_folder() as folder:
        cache = folder / "ticket"
        tickets.acquire(identity, cache)
        name = gssapi.Name(identity.principal, gssapi.NameType.kerberos_principal)
        yield gssapi.Credentials(name=name, usage="initiate", store={"ccache": f"FILE:{cache}"})


class NoProtection(Exception):
    """The lack of a protection that both sides want."""


class KerberosLogin:
    """One login at one service: feed the server's challenges to `step`, send its results, until the server agrees.

    Afterwards, if `wraps`, `wrap` all that is sent and `unwrap` all that is received. GSSError passes unchanged.
    """

    def __init__(self, service: str, ticket: gssapi.Credentials, wanted: tuple[Protection, ...]) -> None:
        flags = gssapi.RequirementFlag
        needed = flags.mutual_authentication | flags.integrity | flags.out_of_sequence_detection
        if Protection.PRIVACY in wanted:
            needed |= flags.confidentiality
        name = gssapi.Name(service, gssapi.NameType.kerberos_principal)
        self._context = gssapi.SecurityContext(
            name=name, creds=ticket, flags=needed, mech=gssapi.MechType.kerberos, usage="initiate"
        )
        self._wanted = wanted
        self._chosen: Protection | None = None

    @property
    def agreed(self) -> bool:
        """Return True if the server proved itself and a protection was chosen."""
        return self._chosen is not None

    @property
    def wraps(self) -> bool:
        return self._chosen not in (None, Protection.AUTHENTICATION)

    def step(self, challenge: bytes | None = None) -> bytes:
        """Answer a challenge, or begin without one. Raises NoProtection: when no wanted protection is offered."""
        if self._context.complete:
            return self._choose(challenge or b"")
        return self._context.step(challenge) or b""

    def end(self, last: bytes) -> None:
        """Do nothing with the server's last words: it proved itself before them."""

    def wrap(self, data: bytes) -> bytes:
        return self._context.wrap(data, encrypt=self._chosen is Protection.PRIVACY).message

    def unwrap(self, data: bytes) -> bytes:
        """Unwrap a message. Raises GSSError: when it was tampered with. Raises NoProtection: when it is in clear
        although encryption was agreed."""
        message = self._context.unwrap(data)
        if self._chosen is Protection.PRIVACY and not message.encrypted:
            raise NoProtection("the server sent in clear what it had agreed to encrypt")
        return message.message

    def _choose(self, challenge: bytes) -> bytes:
        offer = self._context.unwrap(challenge).message[0]
        self._chosen = next((protection for protection in self._wanted if offer & protection), None)
        if self._chosen is None:
            offered = [protection.name.lower() for protection in Protection if offer & protection]
            wanted = [protection.name.lower() for protection in self._wanted]
            raise NoProtection(f"the server's hadoop.rpc.protection is {offered}, ours is {wanted}")
        limit = _NO_LIMIT if self.wraps else bytes(3)
        return self._context.wrap(bytes([self._chosen]) + limit, encrypt=False).message


@dataclass(frozen=True)
class LoginToken:
    """The two halves of a delegation or block token that a login needs. Both are secrets."""

    identifier: bytes = field(repr=False)
    password: bytes = field(repr=False)


class DigestLogin:
    """One login at one service: `step` answers its challenge, `end` checks that it knew the password, too."""

    def __init__(self, token: LoginToken, service: str) -> None:
        self._user = base64.b64encode(token.identifier).decode()
        self._password = base64.b64encode(token.password).decode()
        self._service = service
        self._expected = ""
        self.agreed = False

    def step(self, challenge: bytes) -> bytes:
        """Answer the challenge. Raises NoProtection: when the server does not do with `qop=auth`."""
        fields = _FIELD.finditer(challenge.decode(errors="replace"))
        offer = {match["name"]: match["quoted"] or match["plain"] or "" for match in fields}
        if "auth" not in offer.get("qop", "auth").split(","):
            raise NoProtection(f"the server's protection for tokens is {offer['qop']}, ours is auth")
        realm, nonce, ours = offer.get("realm", ""), offer.get("nonce", ""), secrets.token_urlsafe(24)
        words = self._user, self._password, realm, nonce, ours, self._service
        proof, self._expected = digest(*words, "AUTHENTICATE"), digest(*words, "")
        return (
            f'charset=utf-8,username="{self._user}",realm="{realm}",nonce="{nonce}",nc={_FIRST},cnonce="{ours}",'
            f'digest-uri="{self._service}",maxbuf=65536,response={proof},qop=auth'
        ).encode()

    def end(self, last: bytes) -> None:
        self.agreed = bool(self._expected) and compare_digest(last, f"rspauth={self._expected}".encode())


def digest(user: str, password: str, realm: str, nonce: str, ours: str, service: str, verb: str) -> str:
    """Return the proof of RFC 2831 that its maker knows the password: the client's verb is AUTHENTICATE, the server's
    is empty.
    """
    secret = md5(f"{user}:{realm}:{password}".encode(), usedforsecurity=False).digest()
    session = _hex(secret + f":{nonce}:{ours}".encode())
    return _hex(f"{session}:{nonce}:{_FIRST}:{ours}:auth:{_hex(f'{verb}:{service}'.encode())}".encode())


def _hex(data: bytes) -> str:
    return md5(data, usedforsecurity=False).hexdigest()
