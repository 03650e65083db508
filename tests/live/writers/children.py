"""Programs that write to HDFS on command: a line to their standard input, a line from their output."""

from __future__ import annotations

import selectors
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO
from urllib.parse import quote_plus, unquote_plus

from airflow_kstream.minicluster import Minicluster, record

_ANSWER_SECONDS = 240
_EXIT_SECONDS = 60


class Refused(Exception):
    """An exception of the program's HDFS client; `kind` is the exception's class, without its package."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Child:
    """A running program. One caller at a time; `kill` is SIGKILL and may come at any time."""

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._process = process
        self._errors = errors

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, *words: str | int) -> str:
        """Have a verb carried out and return its value. Raises Refused, or AssertionError when no answer comes."""
        line = "\t".join(quote_plus(str(word)) for word in words)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        return self.answer(f"{words}"[:200])

    def answer(self, to: str) -> str:
        said, *values = (unquote_plus(word) for word in self._line(to).rstrip("\n").split("\t"))
        if said != "done":
            kind, message = values
            raise Refused(kind.rpartition(".")[2], message)
        return values[0]

    def kill(self) -> None:
        """Send SIGKILL and return when it is dead; no file is closed and no lease is given back."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Close its input, so that it exits as it likes; send SIGKILL when it doesn't in time."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def _line(self, to: str) -> str:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            ready = selector.select(_ANSWER_SECONDS)
        line = self._process.stdout.readline().decode() if ready else ""
        assert line, f"No answer to {to}; on its standard error: {self._said()}"
        return line

    def _said(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-2000:]


@contextmanager
def child(minicluster: Minicluster, who: str, command: Sequence[str]) -> Iterator[Child]:
    """Run the program as that principal in the minicluster's folder, where `down` finds it if no test ends it."""
    folders = record.read_site(minicluster.root).folders
    with (
        TemporaryFile() as errors,
        subprocess.Popen(
            command,
            env=minicluster.client_env(who),
            cwd=folders.run,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        running = Child(process, errors)
        try:
            yield running
        finally:
            running.end()
