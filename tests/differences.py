"""Where large contents begin to differ. Where `CI` is set, pytest shows all differences: for megabytes, in minutes."""

from __future__ import annotations

_SHOWN = 80


def first_difference(left: bytes, right: bytes) -> str:
    """Return where these begin to differ, and what follows on both sides; nothing when they are equal."""
    if left == right:
        return ""
    pairs = enumerate(zip(left, right, strict=False))
    at = next((number for number, (one, other) in pairs if one != other), min(len(left), len(right)))
    return f"from byte {at:,} on: {left[at : at + _SHOWN]!r} instead of {right[at : at + _SHOWN]!r}"
