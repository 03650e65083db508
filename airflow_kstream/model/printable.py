"""Names that others chose, as they can be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    """With control characters as escapes, so that a name can neither break a table nor drive a terminal."""
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character == "\\":
        return "\\\\"
    return character if character.isprintable() else character.encode("unicode_escape").decode()
