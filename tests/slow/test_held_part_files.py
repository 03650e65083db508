"""A part file that nobody completes, and whose holder lives on, as the job that wrote it does: `kstream leases`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.demo.flink_job import build_job
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.supervise.streams.orders.desired import set_desired, start_from
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.brief_clusters import brief_cluster
from tests.live.faults.rows import counted_rows
from tests.live.flink_streams import flink_stream
from tests.live.lease_commands import NO_AGE, commands_as
from tests.live.streams import JOBS, await_commits, await_that, look, reconciler
from tests.live.writers.hadoop_says import is_open

pytestmark = [pytest.mark.lives, pytest.mark.timeout(1800)]

DAY = timedelta(days=1)
# Longer than clocks may differ: so long the file must not have grown before the job's last restart.
SECONDS = 400
BY_SCHEDULE = (*NO_AGE, "--leak-after", "1m", "--pattern", ".part-*.inprogress.*")


@contextmanager
def holding(minicluster: Minicluster, folder: Path) -> Iterator[Reconciler]:
    jar = build_job(Feature.FLINK, folder / "held.jar", JOBS / "Held.java")
    spec = flink_stream(minicluster, Feature.FLINK, str(jar), TicketCredentials(), "holding")
    rows = f"/user/{getuser()}/holding/rows"
    spec = replace(
        spec,
        arguments=(str(SECONDS), f"{minicluster.default_fs}{rows}"),
        deploy=replace(spec.deploy, main_class="kstream.tests.Held"),
        outputs=(rows,),
    )
    with reconciler(minicluster, spec) as supervisor:
        start_from(supervisor.subject, "a test", fresh=True)
        supervisor.run()
        await_commits(supervisor.session, spec)
        yield supervisor


def test_a_held_file_of_a_running_job_is_closed_once_its_job_gave_it_up(tmp_path: Path) -> None:
    """Not before: until the job has restarted once more, its checkpoints could want the file as it is."""
    with brief_cluster(tmp_path / "up", DAY, 7 * DAY, frozenset({Feature.FLINK})) as up, holding(up, tmp_path) as by:
        rows, kstream = f"/user/{getuser()}/holding/rows", commands_as(up, "streamer", tmp_path)
        held = f"{rows}/.part-held-0.inprogress.held"
        assert is_open(up, held)
        length, application = by.session.hdfs.status(held).length, look(by.session, by.spec).current
        assert application is not None

        def left_as_it_is() -> str:
            """Run as scheduled; return what it says of what it left open."""
            done = kstream.run("recover", rows, "--allow", f"{rows}/*", *BY_SCHEDULE)
            print(done.stdout, done.stderr)
            return done.stdout

        await_that(lambda: "its application still runs" in left_as_it_is(), "its holder is known to live")
        assert is_open(up, held)
        await_that(lambda: held not in left_as_it_is(), "its job has given it up", 900)
        assert not is_open(up, held)
        assert by.session.hdfs.status(held).length >= length
        assert any("its job gave it up" in record["reason"] for record in kstream.json("history", held))

        before = newest(by)
        await_that(lambda: newest(by) > before + 2, "the job goes on")
        after = look(by.session, by.spec)
        assert after.current is not None
        assert (after.generation, after.current.id) == (1, application.id)
        set_desired(by.subject, DesiredState.STOPPED, "the test is over")
        by.run()
        counted = counted_rows(up, by.session.hdfs, rows, tmp_path / "rows")
        assert (counted.lost, counted.doubled) == (0, 0)


def newest(by: Reconciler) -> int:
    (point,) = look(by.session, by.spec).checkpoints
    return point.position.commit
