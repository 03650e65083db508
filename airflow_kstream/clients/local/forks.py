"""Work in forks of this process: each has what this one has compiled, and a lock of Python's for itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from airflow_kstream.model.errors import Unavailable

Result = TypeVar("Result")
_works: Sequence[Callable[[], Any]] = ()


def may_fork() -> bool:
    """Return whether this process has one thread only: a lock that another one holds stays locked in a fork."""
    try:
        return len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:
        return False


def in_forks(works: Sequence[Callable[[], Result]]) -> list[Result]:
    """Do each work in a fork of its own, all at once, and return the results, which are pickled.

    Raises what a work raises, and Unavailable: when a fork was killed.
    """
    # They take time to import, and few logs are so large.
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    forks = ProcessPoolExecutor(len(works), get_context("fork"), initializer=_keep, initargs=(works,))
    try:
        with forks:
            return list(forks.map(_do, range(len(works))))
    except BrokenProcessPool:
        raise Unavailable("a process was killed: has this host enough memory?", tried="work on all cores") from None


def _keep(works: Sequence[Callable[[], Any]]) -> None:
    # A fork takes over what can't be pickled.
    global _works
    _works = works


def _do(number: int) -> Any:
    return _works[number]()
