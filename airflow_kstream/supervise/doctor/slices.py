"""Work on many streams, a slice in each thread: what takes time is waiting for answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from airflow_kstream.supervise.clusters.session import ClusterSession, open_session

T = TypeVar("T")
R = TypeVar("R")
# A session logs in to each server, which pays off after some streams only.
_LEAST, _MOST = 20, 6


def in_slices(
    session: ClusterSession, things: Sequence[T], work: Callable[[ClusterSession, Sequence[T]], list[R]]
) -> tuple[R, ...]:
    """Return the results in the order of the things. Sessions are for one thread, so that each slice has its own.

    Raises what `work` raises.
    """
    count = min(len(things) // _LEAST, _MOST)
    if count < 2:
        return tuple(work(session, things))

    def at_work(each: Sequence[T]) -> list[R]:
        with open_session(session.cluster, session.identity) as own:
            return work(own, each)

    size = -(-len(things) // count)
    slices = [things[start : start + size] for start in range(0, len(things), size)]
    with ThreadPoolExecutor(count) as threads:
        return tuple(result for results in threads.map(at_work, slices) for result in results)
