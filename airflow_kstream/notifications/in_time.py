"""Work that must not hold up its task."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_time(seconds: float, work: Callable[[], T]) -> T:
    """Do the work in a thread of its own and return what it returns.

    Raises what it raises, and TimeoutError: when it has not returned by then. A thread can't be ended: it is left
    behind, and keeps no process from ending.
    """
    returned: list[T] = []
    raised: list[Exception] = []

    def run() -> None:
        try:
            returned.append(work())
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="kstream-in-time", daemon=True)
    thread.start()
    thread.join(seconds)
    for error in raised:
        raise error
    for value in returned:
        return value
    raise TimeoutError(f"it has not returned within {seconds:.0f} s")
