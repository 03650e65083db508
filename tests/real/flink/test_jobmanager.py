"""What a JobManager says of its job behind YARN's proxy, to whom; and what its containers hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import psutil
import pytest
import requests

from airflow_kstream.clients.flink_pages import FlinkPages
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.flink import JOB_MANAGER, TASK_MANAGER
from airflow_kstream.model.streams.flink_job import FlinkCheckpointing, FlinkOverview
from airflow_kstream.supervise.clusters.session import ClusterSession
from tests.live.daemons import listening_on, session_as
from tests.live.flink import FlinkRunning, applications, await_checkpoints, launch_token, pages_of, running
from tests.live.streams import await_that
from tests.real.flink.conftest import NewRun

FENCE = "fence-1-0123456789abcdef"
HIDDEN, SHOWN = "hidden-word", "shown-word"


@pytest.fixture(scope="module")
def living(new_run: NewRun, session: ClusterSession) -> Iterator[FlinkRunning]:
    """A job with a keytab, a file that is shipped from HDFS, and a secret under a key that says so."""
    run = new_run("jobmanager")
    session.hdfs.write(f"{run.home}/{FENCE}", "the fence of generation 1")
    fence = f"{run.minicluster.default_fs}{run.home}/{FENCE}"
    words = {"kstream.demo.password": HIDDEN, "kstream.demo.word": SHOWN}
    with running(session, run, {"yarn.ship-files": fence} | words) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(living: FlinkRunning, session: ClusterSession) -> Iterator[FlinkPages]:
    with closing(pages_of(session, living)) as opened:
        yield opened


def test_its_one_job_has_the_id_that_was_known_before_its_submission(living: FlinkRunning, pages: FlinkPages) -> None:
    assert pages.jobs() == (living.run.job,)


def test_yarn_knows_its_tag_and_its_type(living: FlinkRunning) -> None:
    with session_as(living.run.minicluster, "streamer") as http:
        (app,) = applications(living.run.minicluster, http, living.run.tag)
    assert (app["id"], app["applicationType"], app["name"]) == (
        living.application,
        "Apache Flink",
        living.run.name,
    )
    assert {living.run.tag, "flink-runs"} == set(app["applicationTags"].split(","))


def test_the_proxy_shows_what_runs(living: FlinkRunning, pages: FlinkPages) -> None:
    overview, job = pages.overview(), pages.job(living.run.job)
    assert overview == FlinkOverview(taskmanagers=1, running=1)
    assert not overview.starves
    assert (job.state, [vertex.status for vertex in job.vertices]) == ("RUNNING", ["RUNNING"])


def test_a_checkpoint_lies_below_the_id_of_its_job(
    living: FlinkRunning, pages: FlinkPages, session: ClusterSession
) -> None:
    seen = pages.checkpoints(living.run.job)
    assert seen.newest is not None
    folder = f"{living.run.checkpoints}/chk-{seen.newest.number}"
    assert seen.newest.path == f"{living.run.minicluster.default_fs}{folder}"
    assert session.hdfs.names(folder) == {"_metadata"}
    assert (seen.restored, seen.resumed_from, seen.savepoint) == (0, None, None)


def test_it_says_that_its_checkpoints_survive_the_job(living: FlinkRunning, pages: FlinkPages) -> None:
    assert pages.checkpointing(living.run.job) == FlinkCheckpointing(
        interval=timedelta(seconds=2), timeout=timedelta(minutes=10), pause=timedelta(0), tolerable=0, survives=True
    )


@pytest.mark.parametrize(("method", "status"), [("POST", 405), ("PUT", 404), ("PATCH", 501)])
def test_the_proxy_lets_no_command_through(living: FlinkRunning, method: str, status: int) -> None:
    with session_as(living.run.minicluster, "streamer") as http:
        # The first request of a session is answered with a challenge, whatever its method.
        http.get(f"{living.proxy}/overview", timeout=60)
        answer = http.request(method, f"{living.proxy}/jobs/{living.run.job}/stop", json={}, timeout=60)
    assert answer.status_code == status


def test_the_proxy_asks_for_a_ticket(living: FlinkRunning) -> None:
    assert requests.get(f"{living.proxy}/overview", timeout=60).status_code == 401


def test_its_own_port_asks_for_nothing(living: FlinkRunning) -> None:
    with session_as(living.run.minicluster, "streamer") as http:
        (app,) = applications(living.run.minicluster, http, living.run.tag)
    overview = requests.get(f"http://{app['amRPCAddress']}/overview", timeout=60).json()
    assert overview["jobs-running"] == 1


def test_yarn_hides_that_port_from_who_may_not_view_the_application(living: FlinkRunning) -> None:
    with session_as(living.run.minicluster, "watcher") as http:
        (app,) = applications(living.run.minicluster, http, living.run.tag)
    assert "amRPCAddress" not in app


def test_on_the_minicluster_its_processes_listen_on_loopback_alone(living: FlinkRunning) -> None:
    processes = [*living.processes(JOB_MANAGER), *living.processes(TASK_MANAGER)]
    addresses = {address for process in processes for address in listening_on(process)}
    assert addresses in ({"127.0.0.1"}, {"127.0.0.1", "::ffff:127.0.0.1"})


def test_any_user_of_the_proxy_reads_its_settings_but_what_flink_takes_for_a_secret(living: FlinkRunning) -> None:
    settings = {row["key"]: row["value"] for row in living.ask("/jobmanager/config", who="watcher")}
    assert (settings["kstream.demo.password"], settings["kstream.demo.word"]) == ("******", SHOWN)


@pytest.mark.parametrize("role", [JOB_MANAGER, TASK_MANAGER])
def test_a_file_shipped_from_hdfs_lies_in_each_container(living: FlinkRunning, role: str) -> None:
    assert (living.place(role) / FENCE).read_text() == "the fence of generation 1"


def test_its_launch_token_has_no_renewer_and_each_taskmanager_gets_the_same(living: FlinkRunning) -> None:
    first, second = (launch_token(living.place(role)) for role in (JOB_MANAGER, TASK_MANAGER))
    assert first.renewer == ""
    assert (first.sequence_number, first.issued) == (second.sequence_number, second.issued)


def test_its_processes_tell_what_their_threads_do(living: FlinkRunning) -> None:
    (manager,) = living.ask("/taskmanagers")["taskmanagers"]
    for process in ("/jobmanager", f"/taskmanagers/{manager['id']}"):
        threads = living.ask(f"{process}/thread-dump")["threadInfos"]
        assert {"threadName", "stringifiedThreadInfo"} <= threads[0].keys()


def test_a_killed_taskmanager_is_replaced_and_counts_as_a_restore(
    living: FlinkRunning, pages: FlinkPages, flinks: Minicluster
) -> None:
    (process,) = living.processes(TASK_MANAGER)
    psutil.Process(process.pid).kill()
    await_that(lambda: pages.checkpoints(living.run.job).restored == 1, "the job goes on from its checkpoint")
    await_checkpoints(living, 1)
    seen, failures = pages.checkpoints(living.run.job), pages.failures(living.run.job)
    assert pages.overview().taskmanagers == 1
    assert seen.resumed_from is not None
    assert len(failures) == 1
