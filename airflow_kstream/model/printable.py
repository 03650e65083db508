"""Safe display of names that others chose."""

from __future__ import annotations


def printable(text: str) -> str:
    """Escape control characters, so that a name can neither break a table nor control a terminal."""
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character == "\\":
        return "\\\\"
    return character if character.isprintable() else character.encode("unicode_escape").decode()
