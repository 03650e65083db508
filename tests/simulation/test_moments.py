"""Two supervisors of one checkpoint: the second one's whole run comes before each request of the first, in turn.

On real servers no test can choose that moment.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.generation import DesiredState, StreamId
from airflow_kstream.model.streams.plan import Report
from airflow_kstream.supervise.streams.checkpoint.take_over import take_over
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.orders.desired import request_restart, set_desired
from tests.simulated.interrupted import COPY, HERE, SPEC, Interrupted, alive, attempt, hdfs, owner, subject, supervise
from tests.simulated.life import Life

__all__ = ["hdfs"]


def taken(run: StreamRun) -> None:
    take_over(run, "", tell=lambda line: None)


def follow(run: StreamRun) -> None:
    taken(run)
    supervise(run)


def test_two_copies_that_start_together_are_one_stream_whatever_the_moment(life: Life, hdfs: Interrupted) -> None:
    hdfs.asked = 0
    supervise(life.run)
    requests = hdfs.asked
    assert requests > 20
    for at in range(1, requests + 1):
        hdfs.files.clear()
        life.yarn.apps.clear()
        winners = race(life, hdfs, at)
        assert len(alive(life)) == len(winners) == 1, f"the other one started before request {at}"


def test_a_race_for_several_checkpoints_leaves_each_with_the_winner_or_nobody(life: Life, hdfs: Interrupted) -> None:
    greedy = subject(life, replace(COPY, checkpoints=("/data/a", HERE)))
    hdfs.asked = 0
    supervise(greedy)
    requests = hdfs.asked
    for at in range(1, requests + 1):
        hdfs.files.clear()
        life.yarn.apps.clear()
        hdfs.asked, hdfs.at, hdfs.happens = 0, at, lambda: attempt(lambda: supervise(life.run))
        attempt(lambda: supervise(greedy))
        owners = {owner(life.run, path) for path in ("/data/a", HERE)} - {None}
        assert len(owners) == len(alive(life)) == 1, f"the other one started before request {at}"


def test_a_start_during_the_release_of_a_stop_keeps_the_checkpoint(life: Life, hdfs: Interrupted) -> None:
    supervise(life.run)
    life.set_desired(DesiredState.STOPPED)
    hdfs.asked = 0
    before = dict(hdfs.files), dict(life.yarn.apps)
    supervise(life.run)
    requests = hdfs.asked
    for at in range(1, requests + 1):
        hdfs.files, life.yarn.apps = dict(before[0]), dict(before[1])
        hdfs.asked, hdfs.at, hdfs.happens = 0, at, lambda: start_again(life)
        supervise(life.run)
        assert not alive(life) or owner(life.run), f"it was started again before request {at}"


def race(life: Life, hdfs: Interrupted, at: int) -> list[Report]:
    """Run one supervisor, and before its request `at` the other one to its end; return the reports."""
    reports: list[Report] = []
    refusals: list[str] = []

    def try_it(run: StreamRun) -> None:
        try:
            reports.append(supervise(run))
        except Conflict as refused:
            refusals.append(str(refused))

    hdfs.asked, hdfs.at, hdfs.happens = 0, at, lambda: try_it(subject(life, COPY, "/elsewhere"))
    try_it(life.run)
    assert all(f"{HERE} belongs to stream" in refusal for refusal in refusals)
    return reports


def start_again(life: Life) -> None:
    set_desired(life.run, DesiredState.RUNNING, "test")
    attempt(lambda: supervise(life.run))


@pytest.mark.parametrize("a_request_takes", [timedelta(), timedelta(milliseconds=20)], ids=["no time", "20 ms"])
def test_a_supervisor_who_holds_a_stream_during_a_restart_is_always_obeyed(
    life: Life, hdfs: Interrupted, a_request_takes: timedelta
) -> None:
    """Another user than the stream's own, with a folder of his own for his orders. Whoever is refused leaves none."""

    def pass_time(request: str, path: str) -> None:
        life.clock.ahead += a_request_takes

    def hold() -> None:
        with hdfs.as_user("hdfs"):
            session = replace(subject(life, SPEC).session, identity=Identity("hdfs@EXAMPLE.COM"))
            set_desired(replace(life.run, session=session), DesiredState.HELD, "wait")

    hdfs.at_request = pass_time
    supervise(life.run)
    bring_back = hdfs.kept()
    hdfs.asked = 0
    request_restart(subject(life, SPEC), "a new jar")
    requests = hdfs.asked
    assert requests > 5
    for at in range(1, requests + 1):
        bring_back()
        hdfs.asked, hdfs.at, hdfs.happens = 0, at, hold
        attempt(lambda: request_restart(subject(life, SPEC), "a new jar"))
        run = subject(life, SPEC)
        order = run.folder.newest_order(run.folder.authored(), run.session.state.look())
        assert run.folder.desired(order).state is DesiredState.HELD, f"the hold came before request {at}"


def test_an_owner_that_claims_during_a_take_over_and_the_other_never_both_submit(life: Life, hdfs: Interrupted) -> None:
    """The former owner starts its next generation before each of the requests of a take-over in turn."""
    life.yarn.end(str(supervise(life.run).job.application))
    before = dict(hdfs.files), dict(life.yarn.apps)
    rival = subject(life, COPY)
    hdfs.asked = 0
    taken(rival)
    requests = hdfs.asked
    for at in range(1, requests + 1):
        hdfs.files, life.yarn.apps = dict(before[0]), dict(before[1])
        hdfs.asked, hdfs.at, hdfs.happens = 0, at, lambda: attempt(lambda: supervise(life.run))
        attempt(lambda: follow(rival))
        assert_its_owner_runs(life, f"the former owner started before request {at}")


def test_a_take_over_during_a_submission_and_its_owner_never_both_submit(life: Life, hdfs: Interrupted) -> None:
    life.yarn.end(str(supervise(life.run).job.application))
    before = dict(hdfs.files), dict(life.yarn.apps)
    rival = subject(life, COPY, "/elsewhere")
    hdfs.asked = 0
    supervise(life.run)
    requests = hdfs.asked
    for at in range(1, requests + 1):
        hdfs.files, life.yarn.apps = dict(before[0]), dict(before[1])
        hdfs.asked, hdfs.at, hdfs.happens = (
            0,
            at,
            lambda: attempt(lambda: follow(rival)),
        )
        attempt(lambda: supervise(life.run))
        assert_its_owner_runs(life, f"it was taken over before request {at}")


def assert_its_owner_runs(life: Life, when: str) -> None:
    (running,) = alive(life) or [when]
    found = owner(life.run)
    assert found is not None, when
    assert StreamId(found.stream, found.state_dir).tag in life.yarn.application(running).tags, when
