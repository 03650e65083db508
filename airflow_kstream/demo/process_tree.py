"""One run of a child of the supervisor: its reaper, the child, and everything below."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_REAPER = Path(__file__).with_name("reaper.py")
_TAIL_BYTES = 8192
_TAIL_LINES = 15


@dataclass(frozen=True)
class Child:
    """A program to run. `env` is its whole environment, `grace` the seconds between SIGTERM and SIGKILL.

    Put secrets into `env` or a file, never into `argv`, which every user of the machine can read.
    """

    name: str
    argv: tuple[str, ...]
    log_file: Path
    env: Mapping[str, str] = field(repr=False)
    cwd: Path | None = None
    grace: float = 10.0


def log_tail(path: Path) -> str:
    """Return the last lines of a log, an empty string if there is none."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return "\n".join(stream.read().decode(errors="replace").splitlines()[-_TAIL_LINES:])
    except FileNotFoundError:
        return ""


class ProcessTree:
    """A running tree: the constructor starts it. Raises OSError: when the reaper or the log can't be opened."""

    def __init__(self, child: Child) -> None:
        self._released = threading.Lock()
        with os.fdopen(os.open(child.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
            read_fd, self._hold_fd = os.pipe()
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", str(_REAPER), str(read_fd), str(child.grace), *child.argv],
                    env=dict(child.env),
                    cwd=child.cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(read_fd,),
                    start_new_session=True,
                )
            except OSError:
                self.release()
                raise
            finally:
                os.close(read_fd)

    def wait(self, timeout: float | None = None) -> int:
        return self._process.wait(timeout)

    def release(self) -> None:
        """Ask the reaper to end the tree; it also does so when this process ends, which closes the pipe."""
        if self._released.acquire(blocking=False):
            os.close(self._hold_fd)

    def processes(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def crash(self) -> list[int]:
        """SIGKILL everything below the reaper, as if a machine had lost power; return the process ids."""
        frozen: set[psutil.Process] = set()
        # Freeze them first: none may see another one die and still write to a database.
        while running := set(self.processes()) - frozen:
            for process in running:
                with suppress(psutil.NoSuchProcess):
                    process.suspend()
            frozen |= running
        for process in frozen:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(list(frozen), timeout=5)
        return sorted(process.pid for process in frozen)

    def destroy(self) -> None:
        self.crash()
        self._process.kill()
        self._process.wait()
