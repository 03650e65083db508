"""A delegation token that a NameNode or a KMS has just made for a job that runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.token import SecretBytes, Span, written_vint
from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN, DelegationToken, read_identifier

_MAGIC, _WRITABLE = b"HDTS", b"\0"


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
