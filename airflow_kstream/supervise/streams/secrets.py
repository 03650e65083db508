"""Secrets that a declaration refers to, looked up right before a submission."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from airflow_kstream.model.errors import InvalidInput, NotFound
from airflow_kstream.model.secrets import SecretRef, Value

# In bytes. A larger file was named by mistake, or isn't a regular file.
_LONGEST = 65_536


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
        path = Path(ref.name)
        try:
            if not path.is_file() or path.stat().st_size > _LONGEST:
                return None
            # The line end that an editor adds is not part of the secret.
            return path.read_text().removesuffix("\n").removesuffix("\r")
        except (OSError, ValueError) as error:
            raise NotFound(f"{ref} can't be read: {type(error).__name__}", tried="look up a secret") from None

    def _present(self, ref: SecretRef, value: str | None) -> str:
        if not value:
            raise NotFound(f"{ref} is empty, or not on this host", tried="look up a secret")
        return value


def looked_up(conf: Mapping[str, Value], secrets: Secrets) -> dict[str, str]:
    """Return the conf with each reference replaced by its secret; one that occurs twice is looked up once."""
    values = {value: secrets.find(value) for value in set(conf.values()) if isinstance(value, SecretRef)}
    return {key: values[value] if isinstance(value, SecretRef) else value for key, value in conf.items()}
