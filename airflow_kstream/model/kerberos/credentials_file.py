"""Hadoop's credentials files (org.apache.hadoop.security.Credentials) as values, without their secrets; and the tokens
that a NameNode or a KMS has just made for a running job, of which such a file is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.token import SecretBytes, SecretMessage, Span, written_vint
from airflow_kstream.model.kerberos.tokens import (
    HDFS_TOKEN,
    DelegationToken,
    Token,
    decoded_url_string,
    read_identifier,
    short_name,
)

_MAGIC, _WRITABLE = b"HDTS", b"\0"

MAGIC = b"HDTS"
_TOKENS, _SECRETS = 1, 2


class TokenFormat(StrEnum):
    """The file formats, named as in `hadoop dtutil -format`; URL_STRING is a single token without a file around it."""

    JAVA = "java"
    PROTOBUF = "protobuf"
    URL_STRING = "url string"


@dataclass(frozen=True)
class SecretKey:
    """A secret that a job keeps among its credentials: its name, and its length in bytes."""

    alias: str
    length: int


@dataclass(frozen=True)
class HadoopCredentials:
    """The tokens and secret keys of a file, in its order."""

    format: TokenFormat
    tokens: tuple[Token, ...]
    secret_keys: tuple[SecretKey, ...] = ()

    @classmethod
    def read(cls, content: SecretBytes) -> HadoopCredentials:
        """Parse a credentials file, or a text with one token in its URL form.

        Raises InvalidInput: when the content is malformed. The error names the byte where the content stops making
        sense, and never contains any of it. For a URL form, bytes are counted after decoding.
        """
        raw = Span(content)
        if content.reveal()[: len(MAGIC)] != MAGIC:
            return cls(TokenFormat.URL_STRING, (_lone_token(content),))
        raw.take(len(MAGIC), "the magic word")
        version = raw.byte("the format number")
        if version not in _FORMATS:
            raise raw.wrong(f"the format number is {version}; known are {', '.join(map(str, _FORMATS))}", raw.at - 1)
        return _FORMATS[version](raw)

    def url_string(self, content: SecretBytes, token: Token) -> SecretBytes:
        """Return one of these tokens in the URL form of WebHDFS, a secret, cut from the content it was read from."""
        is_text = self.format is TokenFormat.URL_STRING
        return token.url_string(decoded_url_string(content) if is_text else content)


def _lone_token(content: SecretBytes) -> Token:
    if not len(content):
        raise InvalidInput("byte 0: it is empty")
    try:
        return Token.from_url_string(content)
    except InvalidInput as error:
        raise InvalidInput(f"byte 0: no {MAGIC.decode()} as in a credentials file, and {error.message}") from None


def _java(raw: Span) -> HadoopCredentials:
    """Read what Credentials.readFields does: the number of tokens, each with its alias; then the same for secrets."""
    tokens = tuple(_java_token(raw) for _ in range(_count(raw, "tokens", least=5)))
    secret_keys = tuple(_java_secret(raw) for _ in range(_count(raw, "secret keys", least=2)))
    raw.finished("the last secret key")
    return HadoopCredentials(TokenFormat.JAVA, tokens, secret_keys)


def _count(raw: Span, what: str, least: int) -> int:
    """Read how many entries follow; the lengths alone of each take at least `least` bytes."""
    at, count = raw.at, raw.vint(f"the number of {what}")
    if not 0 <= count <= raw.left // least:
        raise raw.wrong(f"{count} {what} are announced, but only {raw.left} bytes are left", at)
    return count


def _java_token(raw: Span) -> Token:
    alias = raw.sized("a token's alias").text("a token's alias")
    return Token.from_writable(raw, alias)


def _java_secret(raw: Span) -> SecretKey:
    alias = raw.sized("a secret key's alias").text("a secret key's alias")
    return SecretKey(alias, raw.sized("a secret key").left)


def _protobuf(raw: Span) -> HadoopCredentials:
    """Read a length-prefixed CredentialsProto: repeated CredentialsKVProto of tokens (1) and of secrets (2)."""
    tokens, secret_keys = [], []
    body = raw.delimited("the credentials")
    raw.finished("the credentials")
    for number, entry in body.fields("the credentials"):
        if isinstance(entry, int):
            raise body.wrong(f"field {number} of the credentials is a number")
        if number == _TOKENS:
            tokens.append(_protobuf_token(entry))
        elif number == _SECRETS:
            secret_keys.append(_protobuf_secret(entry))
    return HadoopCredentials(TokenFormat.PROTOBUF, tuple(tokens), tuple(secret_keys))


def _protobuf_token(raw: Span) -> Token:
    entry = SecretMessage(raw, "a token's entry")
    entry.require(1, 2)
    alias = entry.text(1)
    token = SecretMessage(entry.run(2), short_name(alias))
    token.require(1, 2, 3, 4)
    return Token.of(alias, token.text(3), token.text(4), token.run(1), token.run(2))


def _protobuf_secret(raw: Span) -> SecretKey:
    entry = SecretMessage(raw, "a secret key's entry")
    entry.require(1)
    return SecretKey(entry.text(1), entry.run(3).left)


_FORMATS: Mapping[int, Callable[[Span], HadoopCredentials]] = {0: _java, 1: _protobuf}


@dataclass(frozen=True)
class FreshToken:
    """A token with its password, and until when it lives if nobody renews it again.

    `issuer` is the filesystem, or the address of the KMS. `service` is the name by which Hadoop's clients look it up:
    `ha-hdfs:` and the nameservice, a NameNode's address, or the KMS's. The identifier is not a secret: it names the
    token to the one who cancels it, and lets nobody in. `alias` is its name in a credentials file; empty if that is its
    service."""

    issuer: str
    service: str
    identifier: bytes
    password: SecretBytes
    until: datetime
    kind: str = HDFS_TOKEN
    alias: str = ""

    @property
    def read(self) -> DelegationToken:
        """Return the identifier's fields. Raises InvalidInput: when it can't be read."""
        identifier = read_identifier(self.kind, Span(SecretBytes(self.identifier)))
        if not isinstance(identifier, DelegationToken):
            raise InvalidInput(f"{self.issuer} made a token whose identifier can't be read")
        return identifier


def credentials_file(tokens: tuple[FreshToken, ...]) -> SecretBytes:
    """Return the content of a Hadoop credentials file (Credentials.write) with these tokens and no secret keys.

    Each HDFS token's name is its service: by another one, a client of a NameNode pair would keep using its old token
    (Credentials.addToken, HDFS-9276).
    """
    written = [_MAGIC, _WRITABLE, written_vint(len(tokens))]
    for token in tokens:
        service, alias = token.service.encode(), (token.alias or token.service).encode()
        parts = (alias, token.identifier, token.password.reveal(), token.kind.encode(), service)
        written += [written_vint(len(part)) + part for part in parts]
    return SecretBytes(b"".join([*written, written_vint(0)]))
