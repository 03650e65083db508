"""Questions whose answer may be missing: the reason then takes the answer's place; and work on many streams, a slice in
each thread, because what takes time is waiting for answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from airflow_kstream.model.clusters.cluster_facts import NotKnown
from airflow_kstream.model.errors import Denied, KstreamError
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session

R = TypeVar("R")
# A session logs in to each server, which pays off after some streams only.
_LEAST, _MOST = 20, 6

T = TypeVar("T")


def unanswered(what: str, error: KstreamError) -> NotChecked:
    """Return why a fact of one of many is missing, without the path that was read: a server has one reason for all."""
    server = f" ({error.server})" if error.server else ""
    return NotChecked(what, f"{error.message.rstrip('.')}{server}")


def try_ask(what: str, ask: Callable[[], T], right: str = "") -> T | NotChecked:
    """Return the answer, or why there is none; `right` is what a refused principal lacks."""
    try:
        return ask()
    except NotKnown as missing:
        return missing.fact
    except KstreamError as error:
        return NotChecked(what, error.without_advice, right if isinstance(error, Denied) else "")


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
