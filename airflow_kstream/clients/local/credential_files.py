"""Credentials files on this host: read whole, never copied, with warnings about their permissions."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from airflow_kstream.clients.local.regular_files import read_regular
from airflow_kstream.model.errors import CredentialError, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import HadoopCredentials
from airflow_kstream.model.kerberos.tokens import Token
from airflow_kstream.model.plain import plain

# A token has some 300 bytes, and a job a dozen of them.
MAX_BYTES = 1024 * 1024
_OF_THE_SYSTEM: dict[type[OSError], type[KstreamError]] = {
    FileNotFoundError: NotFound,
    NotADirectoryError: NotFound,
    IsADirectoryError: InvalidInput,
}


@dataclass(frozen=True)
class CredentialFile:
    """The content of a file; `warnings` has the reasons why somebody else may know it too."""

    path: Path
    credentials: HadoopCredentials
    warnings: tuple[str, ...]

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Return plain data without any secret."""
        return {
            "file": str(self.path),
            "format": self.credentials.format,
            "warnings": list(self.warnings),
            "tokens": [token.to_json(now) for token in self.credentials.tokens],
            "secret_keys": plain(self.credentials.secret_keys),
        }


def read_credentials(path: Path) -> CredentialFile:
    """Read a file as HADOOP_TOKEN_FILE_LOCATION names it, of either format, or a text with one token in its URL form.

    Raises NotFound: when there is no such file. Raises CredentialError: when this process may not read it. Raises
    InvalidInput: when it is malformed, naming the byte where it stops making sense, is not a regular file, or exceeds
    `MAX_BYTES`.
    """
    content, status = _read(path)
    return CredentialFile(path, _credentials(path, content), tuple(_warnings(status)))


def url_string(path: Path, token: Token) -> SecretBytes:
    """Return one of the file's tokens as WebHDFS takes it: a secret. Raises CredentialError: when it is gone.

    It reads the file again: passwords are in memory only while they are needed.
    """
    content, _ = _read(path)
    credentials = _credentials(path, content)
    for candidate in credentials.tokens:
        if candidate == token:
            return credentials.url_string(content, candidate)
    raise CredentialError(f"{path} was replaced meanwhile: the {token.kind} that was read from it is gone")


def _credentials(path: Path, content: SecretBytes) -> HadoopCredentials:
    try:
        return HadoopCredentials.read(content)
    except InvalidInput as error:
        raise InvalidInput(f"{path} can't be read as Hadoop credentials: {error.message}") from None


def _read(path: Path) -> tuple[SecretBytes, os.stat_result]:
    try:
        content, status = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise _OF_THE_SYSTEM.get(type(error), CredentialError)(f"{path}: {error.strerror}") from None
    return SecretBytes(content), status


def _warnings(status: os.stat_result) -> list[str]:
    warnings = []
    mode = stat.S_IMODE(status.st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        warnings.append(f"its mode is {mode:04o}: anyone who can enter its folder can use the tokens in it; chmod 600")
    if status.st_uid not in {os.geteuid(), 0}:
        warnings.append(f"it belongs to user {status.st_uid}, who can replace it")
    return warnings
