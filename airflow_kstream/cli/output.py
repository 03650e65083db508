"""The output of all commands: results to standard output, remarks and errors to standard error.

Nothing that comes from a server, a file or the command line drives the terminal: it is printed with its control
characters as escapes and without the passwords of URLs.

Printing never raises: a command that stops a stream must not end halfway because the pipe behind it was closed or its
disk is full. So it drops what it can't write, goes on to its end, and says so by its exit code.
"""

from __future__ import annotations

import errno
import io
import json
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from airflow_kstream.model.printable import printable_words, without_passwords

if TYPE_CHECKING:
    from typing_extensions import Buffer

# The exit code with which a shell reports a program that a closed pipe ended.
_BROKEN_PIPE = 128 + signal.SIGPIPE
_FAILED = 1
_NO_FILE = -1

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


def is_read() -> bool:
    """Return False once standard output takes nothing any longer, as after the end of `| head`."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return not (isinstance(raw, ForgivingFile) and raw.error)


class ForgivingFile(io.RawIOBase):
    """A descriptor that accepts everything; `error` is the reason why it stopped writing, None while it writes."""

    def __init__(self, descriptor: int) -> None:
        self.error: OSError | None = None
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        content = bytes(data)
        try:
            return len(content) if self.error else self._written(content)
        except OSError as error:
            self.error = error
            return len(content)

    def _written(self, content: bytes) -> int:
        try:
            return os.write(self._descriptor, content)
        except BlockingIOError:
            # Another program that shares the terminal made it non-blocking.
            select.select([], [self._descriptor], [])
            return self._written(content)

    def exit_code(self, code: int) -> int:
        """Return the command's exit code, or one of our own if it succeeded and its output could not be written."""
        if self.error is None or code:
            return code
        return _BROKEN_PIPE if self.error.errno == errno.EPIPE else _FAILED


@contextmanager
def forgiving_output() -> Iterator[ForgivingFile]:
    """Replace sys.stdout and sys.stderr meanwhile; yield the file behind the first.

    They raise for no character either: a character that the encoding lacks is written as an escape. A stream without
    a descriptor, such as a test's buffer, stays as it is.
    """
    _open_closed_descriptors()
    with _forgiving("stderr", 2), _forgiving("stdout", 1) as out:
        yield out


@contextmanager
def _forgiving(name: str, descriptor: int) -> Iterator[ForgivingFile]:
    # None stands for a descriptor that was closed when Python started.
    before: TextIO | None = getattr(sys, name)
    file = ForgivingFile(_descriptor(before) if before else descriptor)
    if file.fileno() == _NO_FILE:
        yield file
        return
    stream = _text(file, before.encoding if before else "utf-8")
    setattr(sys, name, stream)
    try:
        yield file
    finally:
        stream.flush()
        setattr(sys, name, before)


def _descriptor(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except OSError:
        return _NO_FILE


def _text(file: ForgivingFile, encoding: str) -> io.TextIOWrapper:
    lines = file.isatty() or file.fileno() == 2
    return io.TextIOWrapper(io.BufferedWriter(file), encoding, errors="backslashreplace", line_buffering=lines)


def _open_closed_descriptors() -> None:
    """Open /dev/null as each of 0, 1 and 2 that is closed; otherwise the next socket would get its number."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
