"""The client's side of SASL with a token of Hadoop (DIGEST-MD5, RFC 2831): it proves that we hold the token's password.

The mechanism is obsolete everywhere else; Hadoop's servers offer no other for tokens (SaslRpcServer.AuthMethod.TOKEN).
Only `qop=auth`: a server that wants its messages protected is refused.
"""

from __future__ import annotations

import base64
import re
import secrets
from dataclasses import dataclass, field
from hashlib import md5
from hmac import compare_digest

from airflow_kstream.clients.rpc.sasl import NoProtection

_FIELD = re.compile(r'(?P<name>[a-z-]+)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^,"]*))(?:,|$)')
_FIRST = "00000001"


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
