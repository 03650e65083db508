"""Secrets that a declaration refers to, looked up right before a submission."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from airflow_kstream.model.errors import InvalidInput, NotFound
from airflow_kstream.model.secrets import SecretRef, Value

# A secret of more bytes is a file that was meant otherwise, or no file at all.
_LONGEST = 65_536


class Secrets(Protocol):
    """The places of secrets, as far as the submitting process reaches."""

    def find(self, ref: SecretRef) -> str:
        """Return the secret. Its value is part of no error and of no log.

        Raises NotFound: it is not there. Raises InvalidInput: no such place is known here.
        """


class LocalSecrets:
    """Those of this host: variables of this process's environment, and files."""

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
            # The editor's line end is no part of it.
            return path.read_text().removesuffix("\n").removesuffix("\r")
        except (OSError, ValueError) as error:
            raise NotFound(f"{ref} can't be read: {type(error).__name__}", tried="look up a secret") from None

    def _present(self, ref: SecretRef, value: str | None) -> str:
        if not value:
            raise NotFound(f"{ref} is empty, or not on this host", tried="look up a secret")
        return value


def looked_up(conf: Mapping[str, Value], secrets: Secrets) -> dict[str, str]:
    """The conf with each reference replaced by its secret; one that occurs twice is looked up once."""
    values = {value: secrets.find(value) for value in set(conf.values()) if isinstance(value, SecretRef)}
    return {key: values[value] if isinstance(value, SecretRef) else value for key, value in conf.items()}
