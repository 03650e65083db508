"""The text of an error without what differs between two runs of one failure."""

from __future__ import annotations

import re
import textwrap

# The longer forms first.
_VARIES = re.compile(
    r"\b(?:application|appattempt|container|attempt|job|task|stage)_[\w.]+"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b0x[0-9a-fA-F]+\b|@[0-9a-f]{5,}\b|\b[0-9a-f]{12,}\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*Z?"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
    r"|\d+"
)
# In characters.
_LONGEST = 200


def without_variables(error: str) -> str:
    """Return the first line of an error, with a # for each id, address, time and number."""
    first = (error.strip().splitlines() or [""])[0]
    return textwrap.shorten(_VARIES.sub("#", first), _LONGEST, placeholder=" ...")
