"""Work in slices: each in a session of its own, results in their order, and an error is not lost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from airflow_kstream.model.errors import Denied
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.try_ask import in_slices
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of

SESSION = session_of(SimHdfs(SimClock()), SimYarn(SimClock()))


@pytest.mark.parametrize(("count", "sessions"), [(0, 0), (1, 0), (39, 0), (40, 2), (41, 2), (200, 6), (1000, 6)])
def test_results_come_in_the_order_of_the_things(count: int, sessions: int) -> None:
    used: list[ClusterSession] = []

    def doubled(session: ClusterSession, numbers: Sequence[int]) -> list[int]:
        used.append(session)
        return [2 * number for number in numbers]

    assert in_slices(SESSION, range(count), doubled) == tuple(range(0, 2 * count, 2))
    assert len([session for session in used if session is not SESSION]) == sessions


def test_no_session_is_used_by_two_threads() -> None:
    used: list[ClusterSession] = []

    def noted(session: ClusterSession, numbers: Sequence[int]) -> list[int]:
        used.append(session)
        return list(numbers)

    in_slices(SESSION, range(100), noted)
    assert len({id(session) for session in used}) == len(used) == 5
    assert not any(session is SESSION for session in used)


def test_the_error_of_a_slice_reaches_the_caller() -> None:
    def refused(session: ClusterSession, numbers: Sequence[int]) -> list[int]:
        if 70 in numbers:
            raise Denied("it is closed")
        return list(numbers)

    with pytest.raises(Denied, match="it is closed"):
        in_slices(SESSION, range(100), refused)
