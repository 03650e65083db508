"""Supervisors as processes of their own: the command `kstream streams reconcile`, which can be killed and frozen."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import psutil

from airflow_kstream.minicluster.processes import Identity

_SECONDS = 600

# Words of their command lines.
_CLIENTS = ("SparkSubmit", "CliFrontend")


class Supervisor:
    """One reconcile of a stream, in a process of its own."""

    def __init__(self, command: list[str], output: Path) -> None:
        self._output = output
        with output.open("wb") as sink:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> str:
        """Return its output in one line: a table or an error is broken into lines of the terminal's width."""
        return " ".join(self._output.read_text(errors="replace").split())

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def clients(self) -> list[psutil.Process]:
        """Return the engine's client that submits for it; one that was asked for its version submits nothing."""
        return [child for child in psutil.Process(self.pid).children() if _is_client(child)]

    def kill(self) -> None:
        """SIGKILL it; a client that it started goes on."""
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        Identity.of(self._process.pid).pause()

    def wake(self) -> None:
        Identity.of(self._process.pid).resume()

    def end(self) -> int:
        """Wait for its own end; return its exit code."""
        return self._process.wait(_SECONDS)

    def succeed(self) -> None:
        assert self.end() == 0, self.said


class Supervisors:
    """The supervisors of one stream, one after the other or at once."""

    def __init__(self, cluster_file: Path, declaration: Path, folder: Path) -> None:
        self._cluster_file = cluster_file
        self._declaration = declaration
        self._folder = folder
        self._numbers = itertools.count(1)
        self._all: list[Supervisor] = []

    def begin(self, declaration: Path | None = None) -> Supervisor:
        """Begin one, with another declaration of the stream if one is given."""
        output = self._folder / f"supervisor-{next(self._numbers)}.log"
        command = _command(self._cluster_file, declaration or self._declaration)
        self._all.append(supervisor := Supervisor(command, output))
        return supervisor

    def close(self) -> None:
        for supervisor in self._all:
            if supervisor.running:
                supervisor.kill()


def _command(cluster_file: Path, declaration: Path) -> list[str]:
    kstream = Path(sys.executable).with_name("kstream")
    return [str(kstream), "streams", "reconcile", "--cluster", str(cluster_file), str(declaration)]


def _is_client(process: psutil.Process) -> bool:
    try:
        words = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return any(client in words for client in _CLIENTS) and "--version" not in words
