"""Processes that are started in sessions of their own; daemons among them outlive their starter, and end by pid."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from airflow_kstream.model.errors import MiniclusterError

# The start time that psutil computes moves by a fraction of a second when the clock is adjusted.
_SAME_START_SECONDS = 2.0
_GRACE_SECONDS = 4.0
_KILL_SECONDS = 10.0
_POLL_SECONDS = 0.02
_STOP_SECONDS = 10.0
_TAIL_BYTES = 8192
_TAIL_LINES = 15
_STILL = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD})


@dataclass(frozen=True)
class Identity:
    """The identity of a process, different from that of a later one with the same pid."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> Identity:
        return cls(pid, psutil.Process(pid).create_time())

    def process(self) -> psutil.Process | None:
        """Return the living process, or None; a zombie is dead once its last thread has released files and ports."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < _SAME_START_SECONDS
            dead = process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
            return process if same and not dead else None
        except psutil.NoSuchProcess:
            return None

    def state(self) -> str:
        """Return `running`, `paused` or `dead`."""
        process = self.process()
        if not process:
            return "dead"
        return "paused" if process.status() == psutil.STATUS_STOPPED else "running"

    def wait(self, seconds: float) -> bool:
        """Return True if it is dead within so many seconds; a process that its parent has not reaped yet counts."""
        deadline = time.monotonic() + seconds
        while self.process():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process := self.process():
                process.send_signal(number)

    def pause(self) -> None:
        """SIGSTOP it, and return once it stands still or is dead. Raises MiniclusterError: when a thread runs on.

        SIGSTOP stops each thread as the thread meets it, which is after kill(2) has returned: a server may still answer
        a request that was sent later.
        """
        self.send(signal.SIGSTOP)
        deadline = time.monotonic() + _STOP_SECONDS
        while (process := self.process()) and not _stands_still(process):
            if time.monotonic() > deadline:
                raise MiniclusterError(f"Process {self.pid} does not stand still {_STOP_SECONDS:.0f} s after SIGSTOP")
            time.sleep(_POLL_SECONDS)

    def resume(self) -> None:
        self.send(signal.SIGCONT)


def _stands_still(process: psutil.Process) -> bool:
    try:
        # To /proc, a thread's id is as good as a process's.
        return all(psutil.Process(thread.id).status() in _STILL for thread in process.threads())
    except psutil.NoSuchProcess:
        return False


@dataclass(frozen=True)
class Launch:
    """The command, whole environment and folder of a process; only its user may read its `output`.

    Put secrets into `environment` or a file, never into `command`, which every user of the machine can read.
    """

    command: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    folder: Path
    output: Path

    def start(self, under: Sequence[str] = (), pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        """Start it in a session of its own, so that no signal for its starter reaches it.

        `under` is the command of a program that runs it, and gets these open files. Raises OSError: when the program or
        the output can't be opened.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
            return subprocess.Popen(
                [*under, *self.command],
                env=dict(self.environment),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=pass_fds,
                start_new_session=True,
            )


def spawn(launch: Launch) -> Identity:
    """Start a daemon, which outlives its starter."""
    child = launch.start()
    identity = Identity.of(child.pid)
    # No process waits for it: a dead one is recognised as a zombie until it is reaped.
    child.returncode = 0
    return identity


def log_tail(path: Path) -> str:
    """Return the last lines of a log, an empty string if there is none."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return "\n".join(stream.read().decode(errors="replace").splitlines()[-_TAIL_LINES:])
    except FileNotFoundError:
        return ""


def below(*folders: Path) -> list[Identity]:
    """Return every living process that works in or below one of these folders, even deleted ones; never the caller."""
    return [identity for process in psutil.process_iter() if (identity := _if_inside(process, folders))]


def _if_inside(process: psutil.Process, folders: tuple[Path, ...]) -> Identity | None:
    try:
        place = Path(process.cwd().removesuffix(" (deleted)"))
        inside = process.pid != os.getpid() and any(place.is_relative_to(folder) for folder in folders)
        return Identity.of(process.pid) if inside else None
    except psutil.Error:
        return None


def end(identities: Iterable[Identity], grace: float = _GRACE_SECONDS) -> None:
    """Send SIGTERM to all, and SIGKILL to those that are left after `grace` seconds."""
    identities = list(identities)
    for identity in identities:
        identity.send(signal.SIGTERM)
        # A paused process handles SIGTERM only after it is resumed.
        identity.send(signal.SIGCONT)
    deadline = time.monotonic() + grace
    for identity in identities:
        if not identity.wait(deadline - time.monotonic()):
            identity.send(signal.SIGKILL)
            identity.wait(_KILL_SECONDS)
