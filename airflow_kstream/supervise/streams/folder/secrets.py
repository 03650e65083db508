"""Secrets that a declaration refers to, looked up right before a submission."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Protocol

from airflow_kstream.clients.local.regular_files import read_regular, real_path
from airflow_kstream.model.errors import InvalidInput, NotFound
from airflow_kstream.model.secrets import SecretRef, Value

# In bytes. A larger file was named by mistake, or isn't a regular file.
_LONGEST = 65_536
# What the kernel shows of processes and devices: the environment of this one, among others.
_OF_THE_KERNEL = frozenset({"proc", "sys", "dev"})


class Secrets(Protocol):
    """A store of secrets that the submitting process can reach."""

    def find(self, ref: SecretRef) -> str:
        """Return the secret. Its value appears in no error and no log.

        Raises NotFound: when it is not there. Raises InvalidInput: when this store doesn't know such a place.
        """


class LocalSecrets:
    """The secrets of this host: environment variables of this process, and files."""

    def find(self, ref: SecretRef) -> str:
        if ref.kind == "env":
            return self._present(ref, os.environ.get(ref.name))
        if ref.kind == "file":
            return self._present(ref, self._text(ref))
        raise InvalidInput(
            f"{ref} is kept in Airflow, which is not at hand here; env:NAME and file:PATH are", tried="look up a secret"
        )

    def _text(self, ref: SecretRef) -> str | None:
        try:
            path = real_path(ref.name)
            if _OF_THE_KERNEL & set(PurePosixPath(path).parts[1:2]):
                why = f"{ref} is {path}, and nothing below /proc, /sys and /dev is a secret"
                raise InvalidInput(why, tried="look up a secret")
            content, status = self._read(Path(path))
            # Wherever the kernel's files are mounted, their size is 0 and their content is not. The line end that an
            # editor adds is not part of the secret.
            return content.decode().removesuffix("\n").removesuffix("\r") if status.st_size else None
        except (OSError, ValueError) as error:
            raise NotFound(f"{ref} can't be read: {type(error).__name__}", tried="look up a secret") from None

    def _read(self, path: Path) -> tuple[bytes, os.stat_result]:
        try:
            return read_regular(path, _LONGEST)
        except InvalidInput as error:
            raise NotFound(error.message, tried="look up a secret") from None

    def _present(self, ref: SecretRef, value: str | None) -> str:
        if not value:
            raise NotFound(f"{ref} is empty, or not on this host", tried="look up a secret")
        return value


def looked_up(conf: Mapping[str, Value], secrets: Secrets) -> dict[str, str]:
    """Return the conf with each reference replaced by its secret; one that occurs twice is looked up once."""
    values = {value: secrets.find(value) for value in set(conf.values()) if isinstance(value, SecretRef)}
    return {key: values[value] if isinstance(value, SecretRef) else value for key, value in conf.items()}
