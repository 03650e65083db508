"""Two runs of the same principal at once: the journal tells who was first, whether it works, and what it learned."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.identity import Identity
from airflow_kstream.supervise.leases.journal import Journal, read_journal
from tests.simulated.servers import SimClock, SimHdfs

FOLDER = "/kstream/leases-me"


@pytest.fixture
def hdfs() -> SimHdfs:
    return SimHdfs(SimClock())


def journal(hdfs: SimHdfs) -> Journal:
    return Journal.begin(cast(Hdfs, hdfs), FOLDER, Identity("me@R", "/k"))


def at_work(hdfs: SimHdfs, path: str) -> Journal:
    run = journal(hdfs)
    run.begun(path)
    hdfs.clock.sleep(0.01)
    return run


def before(run: Journal) -> set[str]:
    return {other.run for other in run.runs_before()}


def test_the_later_of_two_runs_waits_for_the_earlier(hdfs: SimHdfs) -> None:
    first, second = at_work(hdfs, "/data"), at_work(hdfs, "/data/landing")

    assert before(first) == set()
    assert before(second) == {first.run_id}


def test_runs_that_wait_keep_their_order_however_long_the_first_one_works(hdfs: SimHdfs) -> None:
    first, second, third = (at_work(hdfs, "/data") for _ in range(3))
    for _ in range(9):
        hdfs.clock.sleep(10)
        first.asked({"/data/a": "client-1"}, "to learn")
        assert before(second) == {first.run_id}
        assert before(third) == {first.run_id, second.run_id}
    first.close()
    later = at_work(hdfs, "/data")

    assert before(second) == set()
    assert before(third) == {second.run_id}
    assert before(later) == {second.run_id, third.run_id}


def test_a_run_at_other_files_is_not_waited_for(hdfs: SimHdfs) -> None:
    at_work(hdfs, "/data/landing")

    assert before(at_work(hdfs, "/data/landing-2")) == set()


def test_a_run_that_has_ended_is_not_waited_for(hdfs: SimHdfs) -> None:
    first, second = at_work(hdfs, "/data"), at_work(hdfs, "/data")
    first.close()

    assert before(second) == set()


def test_a_killed_run_is_waited_for_half_a_minute(hdfs: SimHdfs) -> None:
    killed, second = at_work(hdfs, "/data"), at_work(hdfs, "/data")
    hdfs.clock.sleep(29)
    assert before(second) == {killed.run_id}
    hdfs.clock.sleep(2)

    assert before(second) == set()


def test_a_holder_found_dead_is_known_to_other_runs(hdfs: SimHdfs) -> None:
    first = at_work(hdfs, "/data/one")
    first.asked({"/data/one/a": "client-1", "/data/one/b": "client-2", "/data/one/c": None}, "to learn")
    first.answered(
        {
            path: f"its holder is {is_}"
            for path, is_ in zip(
                ("/data/one/a", "/data/one/b", "/data/one/c"), ("dead", "renewing", "dead"), strict=True
            )
        }
    )
    first.flush()

    assert journal(hdfs).found_dead(hdfs.now() - timedelta(seconds=60)) == {"client-1"}
    # It has read its own answers itself.
    assert first.found_dead(hdfs.now() - timedelta(seconds=60)) == frozenset()
    hdfs.clock.sleep(61)
    assert journal(hdfs).found_dead(hdfs.now() - timedelta(seconds=60)) == frozenset()


def test_that_a_run_began_and_ended_is_no_recovery_in_the_history(hdfs: SimHdfs) -> None:
    at_work(hdfs, "/data").close()

    assert list(read_journal(cast(Hdfs, hdfs), FOLDER)) == []
