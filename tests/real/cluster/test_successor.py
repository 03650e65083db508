"""What the real ResourceManager and NameNode say of what a successor needs. Nothing here is ever submitted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.record import read_site
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.queue import Queue, Size
from airflow_kstream.model.stream import Deploy, TicketCredentials
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.submit import preflight
from tests.live.streams import await_that, cluster, rate_stream, reconciler

STATE = "yarn.scheduler.capacity.root.default.state"
ADMIN = "org.apache.hadoop.yarn.client.cli.RMAdminCLI"


@contextmanager
def stopped_queue(minicluster: Minicluster) -> Iterator[None]:
    """Stop the cluster's only queue, which then takes no application; those that run go on."""
    file = read_site(minicluster.root).folders.daemon_conf / "capacity-scheduler.xml"
    before = file.read_text()
    try:
        refresh(minicluster, file, with_state(before, "STOPPED"))
        yield
    finally:
        # A queue whose state is not configured any longer stays as it is.
        refresh(minicluster, file, with_state(before, "RUNNING"))
        file.write_text(before)


def with_state(conf: str, state: str) -> str:
    end = "</configuration>"
    return conf.replace(end, f"<property><name>{STATE}</name><value>{state}</value></property>{end}")


def refresh(minicluster: Minicluster, file: Path, text: str) -> None:
    file.write_text(text)
    done = minicluster.hadoop_main(ADMIN, "-refreshQueues", as_="hdfs")
    assert done.returncode == 0, done.stderr


def test_the_queue_tells_its_state_and_how_much_it_grants(minicluster: Minicluster) -> None:
    with reconciler(minicluster, rate_stream("roomy", TicketCredentials())) as supervisor:
        queues = supervisor.session.yarn.queues()
        (queue,) = queues.queues
        vcores = queue.largest.vcores
        assert vcores
        assert queue == Queue("root.default", "RUNNING", most=Size(14_336), largest=Size(14_336, vcores))
        assert queues.complete
        preflight(supervisor.subject)


def test_a_stopped_queue_is_an_obstacle_and_a_started_one_is_none(minicluster: Minicluster) -> None:
    with reconciler(minicluster, rate_stream("queued", TicketCredentials())) as supervisor:
        with stopped_queue(minicluster):
            # DRAINING while another test's application runs in it.
            with pytest.raises(Conflict, match=r"queue root\.default is (STOPPED|DRAINING)") as refused:
                supervisor.run()
            assert "find room for the next generation of queued on http" in str(refused.value)
            assert "as streamer" in str(refused.value)
            assert not any(name.startswith("gen-") for name in supervisor.subject.folder.names())

        def runs() -> bool:
            return supervisor.session.yarn.queues().queues[0].state == "RUNNING"

        await_that(runs, "the queue runs again", seconds=60)
        preflight(supervisor.subject)


@pytest.mark.parametrize(
    ("deploy", "application", "error", "says"),
    [
        (
            Deploy(executor_memory="14g"),
            "",
            Conflict,
            "queue root.default grants no container above 14336",
        ),
        (
            Deploy(driver_memory="8g", executor_memory="8g"),
            "",
            Conflict,
            "queue root.default never has more than 14336",
        ),
        (Deploy(executor_cores=4096), "", Conflict, "its executor needs 4096 vcores, and queue root.default grants no"),
        (Deploy(queue="nowhere"), "", Conflict, "there is no queue nowhere; there are root.default"),
        (Deploy(), "hdfs:///no/such/job.py", InvalidInput, "hdfs:///no/such/job.py does not exist"),
    ],
)
def test_what_the_cluster_lacks_is_named(
    minicluster: Minicluster, deploy: Deploy, application: str, error: type[KstreamError], says: str
) -> None:
    spec = rate_stream("needy", TicketCredentials(), deploy=deploy)
    spec = replace(spec, application=application or spec.application)
    with reconciler(minicluster, spec) as supervisor, pytest.raises(error) as refused:
        preflight(supervisor.subject)
    assert says in str(refused.value)


def test_a_right_that_a_principal_lacks_is_denied_without_being_used(minicluster: Minicluster) -> None:
    job = f"/user/{getuser()}/secret-job.py"
    with cluster(minicluster) as opened, open_session(opened, opened.watcher) as session:
        session.hdfs.write(job, "", overwrite=True, permission="600")
        session.hdfs.check_access(job, "r--")
    with cluster(minicluster, "gateway") as opened, open_session(opened, opened.watcher) as session:
        with pytest.raises(Denied, match="Permission denied"):
            session.hdfs.check_access(job, "r--")
        with pytest.raises(NotFound):
            session.hdfs.check_access("/no-such-job.py", "r--")
        session.hdfs.check_access("/", "r-x")
