"""Sizes of what is stored: a value that is too large loses its longest texts and lists first, and says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_kstream.model.secrets import without_secrets

# Bytes of JSON.
VERDICT, DETAIL, REPORT = 1_500, 20_000, 40_000
# Characters that each text may keep, and items that each list may, from step to step. Beyond the first step nothing is
# read at all: the search for secrets takes time with the square of a word's length.
_FIRST, *_STEPS = ((2000, 100), (1000, 50), (500, 20), (300, 10), (200, 8), (120, 5), (60, 3), (30, 2), (12, 1))


def fitted(value: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return the value without secrets, in at most so many bytes of JSON.

    `cut` is true in one of which something was left out. A text that was shortened ends with "…"; of a list the last
    items are kept, which are the newest.
    """
    read: dict[str, Any] = _shortened(value, *_FIRST)
    masked: dict[str, Any] = _masked(read)
    if read == value and size(masked) <= most:
        return masked
    for text, items in (_FIRST, *_STEPS):
        shorter: dict[str, Any] = {**_shortened(masked, text, items), "cut": True}
        if size(shorter) <= most:
            return shorter
    return {"version": value.get("version"), "cut": True}


def size(value: Any) -> int:
    """Return the bytes that the value takes as JSON, in ASCII as Airflow stores it."""
    return len(json.dumps(value))


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {str(key): _masked(item) for key, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list) else value


def _shortened(value: Any, text: int, items: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= text else f"{value[: text - 1]}…"
    if isinstance(value, Mapping):
        return {key: _shortened(item, text, items) for key, item in value.items()}
    return [_shortened(item, text, items) for item in value[-items:]] if isinstance(value, list) else value
