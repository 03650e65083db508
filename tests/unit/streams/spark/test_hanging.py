"""What a query hangs in: which threads count, and the words for the place where they stand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_kstream.clients.spark_pages import DRIVER
from airflow_kstream.model.logs.container_log import DumpRound, Process, Thread, ThreadDump, plain_frame
from airflow_kstream.policy.streams.spark.hanging import Share, hanging, place_of, runs_others, stillness, stuck

EXECUTOR, DRIVING = Process("executor 3", "node7", tasks=1), Process(DRIVER, "node1")
# Seed 003, shortened.
S3 = (
    "java.net.SocketInputStream.socketRead0(Native Method)",
    "java.net.SocketInputStream.read(SocketInputStream.java:170)",
    "sun.security.ssl.InputRecord.readFully(InputRecord.java:465)",
    "org.apache.http.conn.ssl.SSLSocketFactory.connectSocket(SSLSocketFactory.java:533)",
    "org.jets3t.service.impl.rest.httpclient.RestStorageService.performRequest(RestStorageService.java:326)",
    "org.apache.hadoop.fs.FileSystem.exists(FileSystem.java:1424)",
    "org.apache.spark.rdd.ReliableCheckpointRDD$.writePartitionToCheckpointFile(ReliableCheckpointRDD.scala:168)",
    "org.apache.spark.executor.Executor$TaskRunner.run(Executor.scala:214)",
)
TASK = Thread("Executor task launch worker for task 0.0 in stage 3.0 (TID 3)", "RUNNABLE", S3)
QUERY = Thread(
    "stream execution thread for orders [id = 1, runId = 2]",
    "WAITING",
    (
        "jdk.internal.misc.Unsafe.park(Native Method)",
        "org.apache.spark.scheduler.DAGScheduler.runJob(DAGScheduler.scala:1052)",
        "org.apache.spark.api.python.PythonRDD$.collectAndServe(PythonRDD.scala:232)",
        "py4j.Gateway.invoke(Gateway.java:282)",
        "org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink.addBatch(ForeachBatchSink.scala:87)",
    ),
)
IDLE = Thread("Executor task launch worker-0", "WAITING", ("java.lang.Object.wait(Native Method)",))


def dumped(*threads: Thread, driver: Thread = QUERY) -> tuple[ThreadDump, ...]:
    return ThreadDump(DRIVING, (driver,)), ThreadDump(EXECUTOR, (IDLE, *threads))


def moved(thread: Thread) -> Thread:
    return replace(thread, frames=("scala.collection.Iterator.next(Iterator.scala:1)", *thread.frames[3:]))


def test_the_task_of_seed_003_is_named_with_what_it_lacks_and_in_which_work() -> None:
    (found,) = hanging([dumped(TASK)] * 3)
    assert str(found) == (
        "executor 3 on node7, task 0.0 in stage 3.0 (TID 3): reads from a socket, and lacks the answer of an object "
        "store, in the checkpoint of an RDD"
    )


def test_a_task_that_moved_between_two_dumps_does_not_hang() -> None:
    """Nor does the query that waits for its job: only where no task stands still is the query itself named."""
    assert [found.process for found in hanging([dumped(TASK), dumped(moved(TASK)), dumped(TASK)])] == [DRIVING]
    assert hanging([dumped(TASK), dumped(moved(TASK), driver=moved(QUERY)), dumped(TASK)]) == ()


def test_a_task_that_ended_or_began_meanwhile_does_not_hang() -> None:
    ended = [dumped(TASK), dumped(TASK), dumped()]
    began = [dumped(), dumped(TASK), dumped(TASK)]
    assert all(found.process is DRIVING for dumps in (ended, began) for found in hanging(dumps))


def test_one_dump_shows_no_stillness() -> None:
    assert hanging([dumped(TASK)]) == ()
    assert hanging([]) == ()


def test_a_query_that_hangs_by_itself_is_named() -> None:
    (found,) = hanging([dumped()] * 3)
    assert str(found) == (
        "driver on node1, the query orders [id = 1, runId = 2]: waits for another thread, and lacks the answer of a "
        "Spark job, in foreachBatch"
    )


def test_a_query_that_waits_for_the_tasks_of_a_job_is_not_stuck_itself() -> None:
    """Its tasks may move, and where it has none YARN may have no room for its executors."""
    assert stuck(hanging([dumped()] * 3)) == ()
    asks = Thread(QUERY.name, "RUNNABLE", ("java.net.SocketInputStream.socketRead0(Native Method)",))
    assert [each.process for each in stuck(hanging([dumped(driver=asks)] * 3))] == [DRIVING]
    assert [each.process for each in stuck(hanging([dumped(TASK)] * 3))] == [EXECUTOR]


def test_a_query_that_sleeps_until_its_trigger_is_not_stuck() -> None:
    """Beside it another query of the same driver may be late."""
    sleeps = Thread(QUERY.name, "TIMED_WAITING", ("java.lang.Thread.sleep(Native Method)",))
    waits = Thread(
        QUERY.name, "TIMED_WAITING", ("java.lang.Object.wait(Native)", "org.apache.spark.util.SystemClock.x")
    )
    assert stuck(hanging([dumped(driver=sleeps)] * 3)) == stuck(hanging([dumped(driver=waits)] * 3)) == ()


PLACES = {
    ("sun.nio.ch.Net.poll(Native Method)", "sun.nio.ch.NioSocketImpl.park(NioSocketImpl.java:186)"): (
        "reads from a socket"
    ),
    ("sun.nio.ch.Net.poll(Native Method)", "sun.nio.ch.NioSocketImpl.connect(NioSocketImpl.java:592)"): "connects",
    (
        "java.lang.Object.wait(Native Method)",
        "org.apache.hadoop.hdfs.DataStreamer.waitForAckedSeqno(DataStreamer.java:906)",
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider.commitUpdates(X.scala:1)",
    ): "waits for another thread, and lacks the answer of a DataNode that writes, in the state of the query",
    (
        "java.lang.Object.wait(Native Method)",
        "org.apache.hadoop.ipc.Client.call(Client.java:1529)",
        "org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog.add(HDFSMetadataLog.scala:1)",
    ): "waits for another thread, and lacks the answer of a Hadoop server, in the checkpoint of the query",
    (
        "sun.nio.ch.EPoll.wait(Native Method)",
        "org.apache.kafka.common.network.Selector.select(Selector.java:874)",
        "org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer.get(KafkaDataConsumer.scala:1)",
    ): "waits for bytes from a socket, and lacks the answer of Kafka, in its input from Kafka",
    ("java.lang.Thread.sleep(Native Method)",): "sleeps",
    ("com.example.Loop.spin(Loop.java:1)", "org.apache.kafka.clients.consumer.KafkaConsumer.poll(K.java:1)"): (
        "computes"
    ),
}


@pytest.mark.parametrize(("frames", "words"), PLACES.items(), ids=PLACES.values())
def test_a_place_has_words_of_its_own(frames: tuple[str, ...], words: str) -> None:
    assert place_of(Thread("any", "RUNNABLE", frames)) == words


def test_a_thread_can_wait_for_a_lock() -> None:
    assert place_of(Thread("any", "BLOCKED", ("com.example.Cache.get(Cache.java:1)",))) == "waits for a lock"


@pytest.mark.parametrize(
    ("sent", "plain"),
    [
        ("java.base@17.0.15/sun.nio.ch.EPoll.wait(Native Method)\n", "sun.nio.ch.EPoll.wait(Native Method)"),
        ("app//org.apache.spark.util.A$.b(A.scala:4)\n", "org.apache.spark.util.A$.b(A.scala:4)"),
        ("java.lang.Object.wait(Native Method)\n\t-  waiting on a.B@ea2341c\n", "java.lang.Object.wait(Native Method)"),
        ("jdk.proxy3/jdk.proxy3.$Proxy73.call(Unknown Source)\n", "jdk.proxy3.$Proxy73.call(Unknown Source)"),
        ("a.B$$Lambda$28/0x07f84.apply(Unknown Source)\n", "a.B$$Lambda$28/0x07f84.apply(Unknown Source)"),
    ],
)  # fmt: skip
def test_a_frame_has_neither_its_module_nor_addresses_of_locks(sent: str, plain: str) -> None:
    """A lock that another object replaced is not a movement."""
    assert plain_frame(sent) == plain


OTHER = Thread("stream execution thread for bills [id = 7, runId = 8]", "WAITING", ("java.lang.Object.wait(Native)",))
OTHERS_TASK = replace(TASK, name="Executor task launch worker for task 1.0 in stage 9.0 (TID 12)")


def test_a_query_beside_which_none_runs_shares_nothing() -> None:
    assert not runs_others(dumped(), "1")
    assert runs_others(dumped(driver=OTHER), "1")
    assert not runs_others((ThreadDump(DRIVING, (IDLE,)),), "1")


def test_of_several_queries_only_the_tasks_and_the_thread_of_one_are_looked_at() -> None:
    dumps = [dumped(TASK, OTHERS_TASK)] * 3
    assert [found.what for found in hanging(dumps)] == [
        "task 0.0 in stage 3.0 (TID 3)",
        "task 1.0 in stage 9.0 (TID 12)",
    ]
    assert [found.what for found in hanging(dumps, Share("1", frozenset({3})))] == ["task 0.0 in stage 3.0 (TID 3)"]
    (query,) = hanging(dumps, Share("1", frozenset({4})))
    assert query.what == "the query orders [id = 1, runId = 2]"
    assert hanging([dumped(OTHERS_TASK, driver=OTHER)] * 3, Share("1", frozenset({4}))) == ()


STAGE = "stage 3.0: numCompleteTasks=1"


def test_what_stands_still_in_all_rounds_is_stuck() -> None:
    still = stillness([DumpRound(dumped(TASK), STAGE)] * 3)
    assert still.hanging == still.stuck
    assert [each.process for each in still.stuck] == [EXECUTOR]


def test_a_stage_that_has_no_executor_yet_is_not_stuck() -> None:
    """YARN may have no room for them: a successor would get no more."""
    asks = Thread(QUERY.name, "RUNNABLE", ("java.net.SocketInputStream.socketRead0(Native Method)",))
    alone = (ThreadDump(DRIVING, (asks,)),)
    assert stillness([DumpRound(alone, STAGE)] * 3).stuck == ()
    assert [each.process for each in stillness([DumpRound(alone)] * 3).stuck] == [DRIVING]


def test_another_querys_work_hangs_and_is_not_stuck() -> None:
    still = stillness([DumpRound(dumped(OTHERS_TASK, driver=OTHER), STAGE)] * 3, Share("1", frozenset({4})))
    assert [each.what for each in still.hanging] == ["task 1.0 in stage 9.0 (TID 12)"]
    assert still.stuck == ()
