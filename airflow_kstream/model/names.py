"""Names of streams: the id, which tags, folders, DAG ids, rows and commands use, and the name that people gave it.

    name: orders_stream_v2
    app_name: Orders.Stream v2

An id has lower-case letters only, because YARN lower-cases tags, and no dot, which ends a connection's id in a DAG's.
An `app_name` decides nothing: a claim may hold any text there, and is shown with what this module makes of it.
"""

from __future__ import annotations

import re
import unicodedata

import yaml

from airflow_kstream.model.printable import printable_line

LONGEST_ID, LONGEST_APP_NAME = 50, 100
ID = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,48}[a-z0-9])?")
OF_AN_ID = f"1 to {LONGEST_ID} of a-z, 0-9, - and _, neither - nor _ at the ends"
OF_AN_APP_NAME = f"up to {LONGEST_APP_NAME} printable characters without spaces around them, and no - at the beginning"
_UNFIT = re.compile(r"[^a-z0-9_-]+")


def is_id(text: str) -> bool:
    return ID.fullmatch(text) is not None


def is_app_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_APP_NAME and text.isprintable() and text == text.strip() and text[0] != "-"


def advised_id(text: str) -> str:
    """Return the id that is nearest to a name which is none, empty if none is: no letter or digit is left of it."""
    letters = unicodedata.normalize("NFKD", text[: LONGEST_APP_NAME * 4].casefold())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return _UNFIT.sub("_", plain).strip("-_")[:LONGEST_ID].rstrip("-_")


def allowed_for(text: str) -> str:
    """Return what an id may be, with the lines that give a stream of this refused name one."""
    advised = advised_id(text)
    if not advised:
        return OF_AN_ID
    lines = f"`name: {_in_yaml(advised)}`"
    if is_app_name(text):
        lines += f" with `app_name: {_in_yaml(text)}`"
    return f"{OF_AN_ID}; write {lines}"


def called(stream: str, app_name: str | None) -> str:
    """Return the name of a stream for people, and beside it the id, which they type: `Orders.Stream v2 (orders_v2)`."""
    shown = shown_app_name(app_name)
    return f"{shown} ({stream})" if shown and shown != stream else stream


def shown_app_name(app_name: str | None) -> str:
    """Return a name as one line that is safe to show, cut to the length that a declaration may give."""
    return printable_line((app_name or "")[:LONGEST_APP_NAME])[:LONGEST_APP_NAME]


def _in_yaml(text: str) -> str:
    """Return text as a declaration has it: with quotes where YAML would read something else."""
    dumped: str = yaml.safe_dump({"": text}, width=10**6, allow_unicode=True)
    return dumped.partition(": ")[2].rstrip("\n")
