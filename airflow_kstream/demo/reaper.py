"""Runs one command and leaves nothing of it behind: the program that the supervisor puts between itself and a child.

    python reaper.py SUPERVISOR_FD GRACE_SECONDS COMMAND [ARGUMENT ...]

SUPERVISOR_FD is the read end of a pipe whose write end only the supervisor holds. When it closes, because the
supervisor requests a stop or was itself killed by any signal, the command gets SIGTERM, and after the grace period all
its descendants get SIGKILL, as do those that are left when the command ends by itself. A descendant can't escape by
forking twice or by a session of its own: as "child subreaper" (prctl(2)) the reaper becomes the parent of every orphan
below it.

It does not survive its own SIGKILL: then the command dies too (PR_SET_PDEATHSIG), but the command's children don't.
Linux only. Exit status: the command's, or 128 + the number of the signal that ended it.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NoReturn

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_WAKING = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SWEEP_SECONDS = 0.02


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value}) failed")


def adopt_orphans() -> None:
    """Become the parent of every orphan among this process's descendants, however far below it was started."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill_descendants() -> None:
    """Kill all descendants, until none is left. No other code of this process may wait for a child meanwhile."""
    while descendants := psutil.Process().children(recursive=True):
        for process in descendants:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        for _ in _ended_children():
            continue
        time.sleep(_SWEEP_SECONDS)


def _ended_children() -> Iterator[tuple[int, int]]:
    """Reap children that have ended, adopted ones included; yield the id and the exit code of each."""
    try:
        while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
            yield reaped[0], os.waitstatus_to_exitcode(reaped[1])
    except ChildProcessError:
        return


def _spawn(command: Sequence[str]) -> int:
    """Fork without subprocess: the reaper has one thread, and only `waitpid(-1)` also reaps adopted orphans."""
    # Until exec, the child has the reaper's handlers: a SIGTERM in that moment would be lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAKING)
    pid = os.fork()
    if pid == 0:
        _become(command)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAKING)
    return pid


def _become(command: Sequence[str]) -> NoReturn:
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in _WAKING:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAKING)
        os.execvp(command[0], list(command))
    except OSError as error:
        os.write(2, f"{command[0]} can't be started: {error}\n".encode())
    os._exit(127)


class _Watch:
    """A wait for any of: a signal, the end of the supervisor's pipe, a deadline."""

    def __init__(self, supervisor_fd: int) -> None:
        self._wake_fd, write_fd = os.pipe()
        os.set_blocking(self._wake_fd, False)
        os.set_blocking(write_fd, False)
        signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
        self.asked_to_stop = False
        for number in _WAKING:
            signal.signal(number, self._on_signal)
        self._supervisor_fd = supervisor_fd
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_fd, selectors.EVENT_READ)
        self._selector.register(supervisor_fd, selectors.EVENT_READ)

    def _on_signal(self, number: int, _frame: object) -> None:
        self.asked_to_stop |= number != signal.SIGCHLD

    def wait(self, timeout: float | None = None) -> None:
        for key, _ in self._selector.select(timeout):
            if key.fd == self._wake_fd:
                os.read(self._wake_fd, 4096)
            elif not os.read(self._supervisor_fd, 1):
                self._selector.unregister(self._supervisor_fd)
                self.asked_to_stop = True


class _Command:
    """The command as a process."""

    def __init__(self, command: Sequence[str]) -> None:
        self.pid = _spawn(command)
        self.exit_code: int | None = None

    def reap(self) -> None:
        for pid, code in _ended_children():
            if pid == self.pid:
                self.exit_code = code

    def ended(self, watch: _Watch, deadline: float | None = None) -> bool:
        """Return True if it ended before the deadline (monotonic seconds) or, without one, before a stop request."""
        while self.exit_code is None:
            left = None if deadline is None else deadline - time.monotonic()
            if (left is not None and left <= 0) or (left is None and watch.asked_to_stop):
                return False
            watch.wait(left)
            self.reap()
        return True


def guard(supervisor_fd: int, grace: float, command: Sequence[str]) -> int:
    """Run the command until it ends or a stop is requested; return its exit code, negative for a signal."""
    os.set_inheritable(supervisor_fd, False)
    adopt_orphans()
    watch = _Watch(supervisor_fd)
    running = _Command(command)
    if not running.ended(watch):
        os.kill(running.pid, signal.SIGTERM)
        running.ended(watch, time.monotonic() + grace)
    kill_descendants()
    return running.exit_code if running.exit_code is not None else -signal.SIGKILL


if __name__ == "__main__":
    code = guard(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
    sys.exit(code if code >= 0 else 128 - code)
