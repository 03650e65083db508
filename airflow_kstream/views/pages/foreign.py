"""Foreign text for pages: diagnostics, log lines, reasons and names of other programs and people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_kstream.model.printable import printable_words
from airflow_kstream.model.secrets import without_secrets


def shown(value: Any) -> Any:
    """Return plain data whose texts show no secret and no control character. Markup stays: pages show text as text."""
    if isinstance(value, str):
        return printable_words(without_secrets(value))
    if isinstance(value, Mapping):
        return {shown(str(key)): shown(item) for key, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, list | tuple) else value
