"""The output of all commands: results to standard output, remarks and errors to standard error.

Nothing that comes from a server, a file or the command line drives the terminal: it is printed with its control
characters as escapes and without the passwords of URLs.
"""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from airflow_kstream.model.printable import printable_words, without_passwords

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

# Narrower output is unreadable, and no terminal is wider.
_WIDTHS = (20, 100_000)
_SIZES = {"COLUMNS": _WIDTHS, "TERMINAL_WIDTH": _WIDTHS, "LINES": (1, 100_000)}
_DIGITS = 10
# Of JSON, in the memory at once: a name, a value or what is between them.
_PARTS_AT_ONCE = 5000


def print_json(value: object) -> None:
    """Print plain data, some lines at a time: that of ten thousand files is many megabytes.

    A function in it stands for what it returns, and is called when its turn comes.
    """
    lines: list[str] = []
    encoder = json.JSONEncoder(indent=1, default=lambda part: part())
    for number, part in enumerate(encoder.iterencode(value), start=1):
        if number % _PARTS_AT_ONCE == 0:
            # No text goes beyond its line.
            whole, break_, begun = part.partition("\n")
            lines.append(whole)
            print(without_passwords("".join(lines)), end=break_)
            lines = [begun]
        else:
            lines.append(part)
    print(without_passwords("".join(lines)))


def show(view: RenderableType) -> None:
    """Print a table, as wide as the terminal; in a pipe or a file each row is one line, for programs that read lines.
    A line is never wrapped."""
    Console(width=_width()).print(view, soft_wrap=isinstance(view, Text))


def _width() -> int | None:
    """Return as many columns as a row may need; None to leave it to the terminal, or to COLUMNS."""
    return None if Console().is_terminal or "COLUMNS" in os.environ else _WIDTHS[1]


def say(line: str) -> None:
    """Print a line to standard output."""
    show(Text(printable_words(line)))


def note(line: str) -> None:
    """Print a line to standard error, apart from the result."""
    Console(stderr=True).print(Text(printable_words(line)), soft_wrap=True)


def complain(message: str) -> None:
    """Print why the command failed."""
    Console(stderr=True).print(Text(f"kstream: {printable_words(message)}", style="red"), soft_wrap=True)


def forget_unusable_sizes() -> None:
    """Drop unusable sizes from the environment: COLUMNS=0 would print nothing."""
    for name, (least, most) in _SIZES.items():
        size = os.environ.get(name, str(least))
        if not (size.isascii() and size.isdecimal() and len(size) < _DIGITS and least <= int(size) <= most):
            del os.environ[name]
