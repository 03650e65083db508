"""What a Flink job hangs in: which threads count, which only wait for others, and whether the job reads records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_kstream.model.logs.container_log import DumpRound, Process, Stillness, Thread, ThreadDump
from airflow_kstream.model.streams.flink_job import FlinkReading
from airflow_kstream.policy.streams.flink.still_tasks import moved, stillness

JM, TM = Process("JobManager", "node1"), Process("TaskManager 2", "node7", tasks=1)
RUNS = (
    "org.apache.flink.streaming.runtime.tasks.StreamTask.runMailboxLoop(StreamTask.java:973)",
    "org.apache.flink.runtime.taskmanager.Task.doRun(Task.java:763)",
    "org.apache.flink.runtime.taskmanager.Task.run(Task.java:575)",
)
TAKES = "org.apache.flink.streaming.runtime.tasks.mailbox.TaskMailboxImpl.take(TaskMailboxImpl.java:149)"
YIELDS = "org.apache.flink.streaming.runtime.tasks.mailbox.MailboxExecutorImpl.yield(MailboxExecutorImpl.java:86)"
PARKS = ("jdk.internal.misc.Unsafe.park(Native Method)",)
READS = ("sun.nio.ch.Net.poll(Native Method)", "sun.nio.ch.NioSocketImpl.park(NioSocketImpl.java:186)")
READING = FlinkReading(runs=True, spent=1000, counts={"rows [e5a72f35]: waits.numRecordsIn": 708})
LATER = replace(READING, spent=2000)


def task(*frames: str, name: str = "rows -> files: Writer (1/2)#0", state: str = "WAITING") -> Thread:
    return Thread(name, state, (*frames, *RUNS))


def seen(*rounds: tuple[Thread, ...], jobmanager: tuple[Thread, ...] = (), survives: bool = True) -> Stillness:
    dumps = [DumpRound((ThreadDump(JM, jobmanager), ThreadDump(TM, threads))) for threads in rounds]
    return stillness(dumps, [READING, LATER, LATER][: len(rounds)], survives=survives, workers=1)


def stuck(thread: Thread) -> list[str]:
    return [str(each) for each in seen(*[(thread,)] * 3).stuck]


HANGS = {
    (*READS, "org.postgresql.core.PGStream.receiveChar(PGStream.java:1)", "com.example.Look.map(Look.java:7)"): (
        "reads from a socket, and lacks the answer of a database, at com.example.Look.map(Look.java:7)"
    ),
    (
        "java.lang.Object.wait(Native Method)",
        "org.apache.hadoop.hdfs.DataStreamer.waitForAckedSeqno(DataStreamer.java:906)",
        "org.apache.flink.streaming.runtime.operators.sink.SinkWriterOperator.prepareSnapshotPreBarrier(X.java:1)",
        "org.apache.flink.streaming.runtime.tasks.SubtaskCheckpointCoordinatorImpl.checkpointState(S.java:300)",
    ): "waits for another thread, and lacks the answer of a DataNode that writes, in its part of a checkpoint",
    (
        *PARKS,
        TAKES,
        YIELDS,
        "org.apache.flink.streaming.api.operators.async.AsyncWaitOperator.addToWorkQueue(A.java:1)",
    ): ("waits for another thread"),
    ("com.example.Loop.spin(Loop.java:1)",): "computes, at com.example.Loop.spin(Loop.java:1)",
}


@pytest.mark.parametrize(("frames", "words"), HANGS.items(), ids=HANGS.values())
def test_a_task_that_stands_still_is_stuck_and_named_with_its_place(frames: tuple[str, ...], words: str) -> None:
    assert stuck(task(*frames)) == [f"TaskManager 2 on node7, task rows -> files: Writer (1/2)#0: {words}"]


WAITS = {
    "for input": (*PARKS, TAKES),
    "for room in buffers": (
        *PARKS,
        "org.apache.flink.runtime.io.network.buffer.LocalBufferPool.requestMemorySegmentBlocking(L.java:1)",
        "com.example.Explode.flatMap(Explode.java:7)",
    ),
    "for its state": (*READS, "org.apache.flink.streaming.runtime.tasks.StreamTask.restoreInternal(StreamTask.java:1)"),
}


@pytest.mark.parametrize("frames", WAITS.values(), ids=WAITS)
def test_a_task_that_waits_for_others_is_not_stuck(frames: tuple[str, ...]) -> None:
    assert seen(*[(task(*frames),)] * 3) == Stillness()


def test_a_task_that_moved_in_one_of_the_rounds_is_not_stuck() -> None:
    reads, computes = task(*READS), task("com.example.Look.map(Look.java:8)")
    assert seen((reads,), (computes,), (reads,)) == Stillness()


def test_a_task_that_began_again_is_another_thread() -> None:
    again = task(*READS, name="rows -> files: Writer (1/2)#1")
    assert seen((task(*READS),), (again,), (again,)).stuck == ()


def test_a_task_that_waits_for_an_older_sources_lock_is_stuck() -> None:
    """It holds the lock of the checkpoint while its own thread runs the functions that follow."""
    waits = task(
        "org.apache.flink.streaming.runtime.tasks.StreamTaskActionExecutor.runThrowing(S.java:1)", state="BLOCKED"
    )
    source = Thread(f"Legacy Source Thread - {waits.name}", "RUNNABLE", (*READS, "com.example.Look.map(Look.java:7)"))
    found = seen(*[(waits, source)] * 3)
    assert [each.where for each in found.stuck] == ["waits for a lock"]
    assert [each.what for each in found.hanging][1:] == [f"the source of task {waits.name}"]
    assert seen(*[(task(*PARKS, TAKES), source)] * 3) == Stillness(), "it may sleep between two rows"


def test_helpers_and_an_idle_pool_are_none_of_the_work() -> None:
    pool = "java.util.concurrent.ThreadPoolExecutor.getTask(ThreadPoolExecutor.java:1061)"
    names = ("Time Trigger for rows (1/2)#0", "OutputFlusher for rows (1/2)#0", "AsyncOperations-thread-1", "main")
    idle = Thread("SourceCoordinator-Source: rows", "WAITING", (*PARKS, pool))
    helpers = tuple(Thread(name, "WAITING", (*PARKS, pool)) for name in names)
    assert seen(*[helpers] * 3, jobmanager=(idle,)) == Stillness()


def test_a_coordinator_of_a_source_that_waits_for_kafka_is_stuck() -> None:
    frames = (*READS, "org.apache.kafka.clients.admin.KafkaAdminClient.call(K.java:1)")
    asks = Thread("SourceCoordinator-Source: rows", "RUNNABLE", frames)
    (found,) = seen(*[()] * 3, jobmanager=(asks,)).stuck
    assert found.what == "the coordinator of Source: rows"
    assert found.where == "reads from a socket, and lacks the answer of Kafka"


def test_an_asynchronous_part_of_a_checkpoint_is_shown_and_never_stuck() -> None:
    """Flink gives it up when the checkpoint expires, and its task works on."""
    writes = Thread(
        "AsyncOperations-thread-1", "WAITING", (*PARKS, "org.apache.hadoop.hdfs.DFSOutputStream.flush(D:1)")
    )
    found = seen(*[(writes,)] * 3)
    assert (found.stuck, [each.what for each in found.hanging]) == ((), ["the asynchronous part of a checkpoint"])


def test_of_a_thousand_tasks_that_hang_some_are_named() -> None:
    many = tuple(task(*READS, name=f"rows ({number}/1000)#0") for number in range(1, 1001))
    found = seen(*[many] * 3)
    assert len(found.stuck) == len(found.hanging) == 20


def test_one_round_shows_no_stillness() -> None:
    assert seen((task(*READS),)) == Stillness()


def test_nothing_is_stuck_of_a_job_that_no_other_generation_could_follow() -> None:
    found = seen(*[(task(*READS),)] * 3, survives=False)
    assert (found.stuck, len(found.hanging)) == ((), 1)
    assert found.doubt.startswith("its checkpoints end with it")


@pytest.mark.parametrize(
    ("before", "now", "reads"),
    [
        (READING, LATER, False),
        (READING, replace(LATER, counts={"rows [e5a72f35]: waits.numRecordsIn": 709}), True),
        (READING, READING, None),
        (READING, replace(LATER, runs=False), None),
        (replace(READING, counts=None), LATER, None),
        (None, LATER, None),
    ],
    ids=["it reads nothing", "it reads", "nothing new was heard", "a task does not run", "not all told", "once"],
)
def test_two_readings_tell_whether_a_job_reads(
    before: FlinkReading | None, now: FlinkReading, reads: bool | None
) -> None:
    assert moved(before, now) is reads
