"""Foreign text for pages: diagnostics, log lines, reasons and names of other programs and people."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from airflow_kstream.model.printable import printable_words
from airflow_kstream.model.secrets import without_secrets


def shown(value: Any) -> Any:
    """Return plain data whose texts show no secret and no control character. Markup stays: pages show text as text."""
    if isinstance(value, str):
        return _shown(value)
    if isinstance(value, Mapping):
        return {_shown(str(key)): shown(item) for key, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, list | tuple) else value


# The rows of a fleet say the same words hundreds of times.
@lru_cache(maxsize=4096)
def _shown(text: str) -> str:
    return printable_words(without_secrets(text))
