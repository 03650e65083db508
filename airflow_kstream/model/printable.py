"""Foreign text in a form that is safe to show: it drives no terminal, breaks no table and reveals no password."""

from __future__ import annotations

import re

_PASSWORD_IN_URL = re.compile(r"(?P<before>://[^\s/:@\"']*:)[^\s/@\"']*(?=@)")


def printable(text: str) -> str:
    """Return a name with every control character as an escape; a backslash is doubled, so that no two look alike."""
    return "".join(_visible(character) for character in without_passwords(text).replace("\\", "\\\\"))


def printable_words(text: str) -> str:
    """Return a message with control characters as escapes; its line breaks and backslashes stay as they are."""
    return "\n".join("".join(_visible(character) for character in line) for line in without_passwords(text).split("\n"))


def printable_line(text: str) -> str:
    """Return a message as one line: blanks and line breaks in a row are one blank, control characters are escapes."""
    return printable_words(" ".join(text.split()))


def without_passwords(text: str) -> str:
    """Mask the password of every URL such as http://user:password@host."""
    return _PASSWORD_IN_URL.sub(r"\g<before>***", text)


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
