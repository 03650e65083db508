"""Foreign text in a form that is safe to show: it drives no terminal, breaks no table and reveals no password.

And in one that is safe to store: neither Airflow's channels nor a database refuse it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

# PostgreSQL's JSON takes neither NUL nor half of a surrogate pair, and UTF-8 not the latter.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_LARGEST = 2**63 - 1
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


def storable(value: Any) -> Any:
    """Return text or plain data as Airflow stores it: what it can't hold of a text is escaped, an endless number None.

    Others write such texts: a job in its checkpoint, or in the words with which it ends. One that a trigger's event
    brought to Airflow would end the whole triggerer, again and again.
    """
    if isinstance(value, str):
        return _UNSTORABLE.sub(lambda found: _visible(found[0]), value)
    if isinstance(value, Mapping):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, int) and abs(value) > _LARGEST:
        return _LARGEST if value > 0 else -_LARGEST
    return value


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
