"""From Kafka, as a principal with a keytab, to files on HDFS: each record once, though a TaskManager is killed."""

from __future__ import annotations

from contextlib import closing

from kafka import KafkaProducer

from airflow_kstream.clients.kafka import KafkaLogin
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.flink import TASK_MANAGER
from airflow_kstream.supervise.clusters.session import ClusterSession
from tests.live.flink import rows_of, running
from tests.live.streams import await_that
from tests.live.token_makers import identity
from tests.real.flink.conftest import NewRun

# In application mode the job's jar is on the class path, too: of classes that both have, one must win.
ONE_OF_EACH = {"classloader.resolve-order": "parent-first"}


def test_each_record_of_a_topic_becomes_one_row(flinks: Minicluster, session: ClusterSession, new_run: NewRun) -> None:
    run = new_run("from-kafka")
    topic, rows = run.name, f"{flinks.default_fs}{run.rows}"
    write(flinks, topic, range(500))
    with running(session, run, ONE_OF_EACH, ("kafka", flinks.bootstrap_servers, topic, rows)) as living:
        (process,) = living.processes(TASK_MANAGER)
        process.kill()
        write(flinks, topic, range(500, 1000))
        await_that(lambda: len(rows_of(session, run.rows)) >= 1000, "the job has written all records")
        assert sorted(rows_of(session, run.rows)) == list(range(1000))


def write(minicluster: Minicluster, topic: str, numbers: range) -> None:
    login = KafkaLogin(minicluster.bootstrap_servers, identity(minicluster, "streamer"))
    with closing(KafkaProducer(**login.options())) as writer:
        for number in numbers:
            writer.send(topic, str(number).encode())
        writer.flush()
