"""The name that a person most likely meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean orders?)` for the known name that is nearest to this one, nothing if none is near."""
    nearest = get_close_matches(name, list(known), n=1)
    return f" (did you mean {nearest[0]}?)" if nearest else ""
