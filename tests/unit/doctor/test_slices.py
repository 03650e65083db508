"""Work in slices: each in a session of its own, results in their order, and an error is not lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from airflow_kstream.model.errors import Denied
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor import slices
from airflow_kstream.supervise.doctor.slices import in_slices
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[ClusterSession]:
    """The sessions that were opened beside the caller's own."""
    sessions: list[ClusterSession] = []

    @contextmanager
    def open_session(*of: object) -> Iterator[ClusterSession]:
        sessions.append(session_of(SimHdfs(SimClock()), SimYarn(SimClock())))
        yield sessions[-1]

    monkeypatch.setattr(slices, "open_session", open_session)
    return sessions


SESSION = session_of(SimHdfs(SimClock()), SimYarn(SimClock()))


@pytest.mark.parametrize(("count", "sessions"), [(0, 0), (1, 0), (39, 0), (40, 2), (41, 2), (200, 6), (1000, 6)])
def test_results_come_in_the_order_of_the_things(opened: list[ClusterSession], count: int, sessions: int) -> None:
    def doubled(session: ClusterSession, numbers: Sequence[int]) -> list[int]:
        return [2 * number for number in numbers]

    assert in_slices(SESSION, range(count), doubled) == tuple(range(0, 2 * count, 2))
    assert len(opened) == sessions


def test_no_session_is_used_by_two_threads(opened: list[ClusterSession]) -> None:
    used: list[tuple[int, int]] = []

    def noted(session: ClusterSession, numbers: Sequence[int]) -> list[int]:
        used.append((id(session), threading.get_ident()))
        return list(numbers)

    in_slices(SESSION, range(100), noted)
    assert len({session for session, _ in used}) == len(used) == 5
    assert id(SESSION) not in {session for session, _ in used}


def test_the_error_of_a_slice_reaches_the_caller(opened: list[ClusterSession]) -> None:
    def refused(session: ClusterSession, numbers: Sequence[int]) -> list[int]:
        if 70 in numbers:
            raise Denied("it is closed")
        return list(numbers)

    with pytest.raises(Denied, match="it is closed"):
        in_slices(SESSION, range(100), refused)
