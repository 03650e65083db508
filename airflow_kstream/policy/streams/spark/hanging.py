"""What a query of Spark's hangs in: the threads of its work that stand still in several thread dumps, in words.

A thread of a healthy batch moves between two dumps that are seconds apart, or waits for one that moves. So a task that
stands still is named, and the driver's own thread only where no task is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from airflow_kstream.model.logs.container_log import DumpRound, Hanging, Stillness, Thread, ThreadDump

# Executor.TaskRunner and StreamExecution name their threads so.
_TASK = re.compile(r"Executor task launch worker for (?P<task>task .*)")
_QUERY = re.compile(r"stream execution thread for (?P<query>.*)")
# StreamExecution.prettyIdString; a task's name ends with the attempt of its stage.
_ID = re.compile(r"\[id = (?P<id>[^,\]]+)")
_STAGE = re.compile(r" in stage (?P<stage>\d{1,9})\.")
# Of the frames, so many tell how it waits; the rest tell for whom, and in which work.
_INNERMOST = 8

_SQL, _STREAMING = "org.apache.spark.sql.execution.", "org.apache.spark.sql.execution.streaming."
_SLEEPS = "sleeps"
# Words, and the beginnings of frames: the first of these with one among the innermost frames tells how a thread waits.
_HOW = (
    (
        "connects",
        ("java.net.PlainSocketImpl.socketConnect", "sun.nio.ch.Net.connect", "sun.nio.ch.NioSocketImpl.connect"),
    ),
    (
        "reads from a socket",
        ("java.net.SocketInputStream.", "sun.nio.ch.NioSocketImpl.", "sun.nio.ch.SocketDispatcher."),
    ),
    ("waits for bytes from a socket", ("sun.nio.ch.EPoll", "sun.nio.ch.SelectorImpl.")),
    (_SLEEPS, ("java.lang.Thread.sleep",)),
    ("waits for another thread", ("java.lang.Object.wait", "jdk.internal.misc.Unsafe.park", "sun.misc.Unsafe.park")),
)
_COMPUTES = "computes"
# ProcessingTimeExecutor waits so for its next batch.
_OF_A_TRIGGER = ("org.apache.spark.util.SystemClock.", "org.apache.spark.util.Clock.")
_OF_A_JOB = ("org.apache.spark.scheduler.DAGScheduler.",)
# The first of these with any frame tells whose answer it lacks: one that speaks by means of another comes before it.
_WHOSE = (
    ("a Spark job", _OF_A_JOB),
    ("a DataNode that writes", ("org.apache.hadoop.hdfs.DFSOutputStream.", "org.apache.hadoop.hdfs.DataStreamer.")),
    (
        "a DataNode that reads",
        ("org.apache.hadoop.hdfs.DFSInputStream.", "org.apache.hadoop.hdfs.client.impl.BlockReader"),
    ),
    ("a Hadoop server", ("org.apache.hadoop.ipc.Client.",)),
    ("an object store", ("org.apache.hadoop.fs.s3", "com.amazonaws.", "software.amazon.awssdk.", "org.jets3t.")),
    ("an object store", ("org.apache.hadoop.fs.azure", "com.google.cloud.hadoop.")),
    ("Kafka", ("org.apache.kafka.",)),
    ("HBase", ("org.apache.hadoop.hbase.",)),
    ("Hive's metastore", ("org.apache.hadoop.hive.metastore.", "org.apache.thrift.")),
    ("a database", ("org.postgresql.", "com.mysql.", "oracle.jdbc.", "com.microsoft.sqlserver.", "org.mariadb.")),
    ("another executor", ("org.apache.spark.storage.ShuffleBlockFetcherIterator.",)),
    ("its Python worker", ("org.apache.spark.api.python.", f"{_SQL}python.")),
    ("an HTTP server", ("org.apache.http.", "okhttp3.", "jdk.internal.net.http.", "sun.net.www.protocol.http")),
    ("the driver's Python", ("py4j.",)),
)
# The first of these with any frame tells in which work.
_WORK = (
    ("the checkpoint of an RDD", ("org.apache.spark.rdd.ReliableCheckpointRDD",)),
    ("the state of the query", (f"{_STREAMING}state.",)),
    ("the checkpoint of the query", (f"{_STREAMING}checkpointing.", f"{_STREAMING}HDFSMetadataLog")),
    ("its output", (f"{_SQL}datasources.FileFormat", f"{_SQL}datasources.v2.DataWriting")),
    ("its input from Kafka", ("org.apache.spark.sql.kafka010.",)),
    ("foreachBatch", (f"{_STREAMING}sources.ForeachBatchSink", f"{_STREAMING}sources.PythonForeachBatch")),
)


@dataclass(frozen=True)
class Share:
    """The work of one query in an application that runs several: the query's id, and the stages of its jobs."""

    query: str
    stages: frozenset[int]

    def has(self, work: Hanging) -> bool:
        """Return whether it is this query's; the task of an unknown stage is."""
        if work.process.tasks is None:
            return _id_of(work.what) == self.query
        stage = _STAGE.search(work.what)
        return stage is None or int(stage["stage"]) in self.stages


def stillness(rounds: Sequence[DumpRound], share: Share | None = None) -> Stillness:
    """Return what stood still in these rounds; with a `share`, stuck is what is its query's.

    Nothing is stuck while a stage is active and no executor runs a task of it: the batch waits for executors.
    """
    dumps = [each.dumps for each in rounds]
    still = hanging(dumps)
    return Stillness(still, () if _starves(rounds) else stuck(hanging(dumps, share) if share else still))


def _starves(rounds: Sequence[DumpRound]) -> bool:
    last = rounds[-1] if rounds else DumpRound(())
    active = any(line.startswith("stage ") for line in last.counts.splitlines())
    return active and all(dump.process.tasks is None for dump in last.dumps)


def runs_others(dumps: Sequence[ThreadDump], query: str) -> bool:
    """Return whether the driver runs queries beside this one."""
    names = (_QUERY.fullmatch(thread.name) for dump in dumps for thread in dump.threads)
    return any(name is not None and _id_of(name["query"]) != query for name in names)


def _id_of(query: str) -> str:
    found = _ID.search(query)
    return found["id"] if found else ""


def hanging(dumps: Sequence[Sequence[ThreadDump]], share: Share | None = None) -> tuple[Hanging, ...]:
    """Return what stood still in all of them, each taken seconds after the one before: tasks or, without any, queries.

    With a `share`, only that is looked at. Empty for fewer than two dumps: one shows no stillness.
    """
    if len(dumps) < 2:
        return ()
    first, *later = ({(each.process.name, each.thread.name): each for each in _work(dump)} for dump in dumps)
    still = [
        each for key, each in first.items() if all(key in dump and dump[key].thread == each.thread for dump in later)
    ]
    ours = tuple(each for each in still if share is None or share.has(each))
    tasks = tuple(each for each in ours if each.process.tasks is not None)
    return tasks or ours


def stuck(still: Sequence[Hanging]) -> tuple[Hanging, ...]:
    """Return those whose stillness is a batch's: not a query that waits for the tasks of a Spark job, which may move or
    wait for executors, and not one that sleeps until its trigger."""
    return tuple(each for each in still if each.process.tasks is not None or not _rests(each.thread))


def _rests(thread: Thread) -> bool:
    return _how(thread) == _SLEEPS or any(frame.startswith((*_OF_A_JOB, *_OF_A_TRIGGER)) for frame in thread.frames)


def place_of(thread: Thread) -> str:
    """Return in words where a thread stands: how it waits, for whose answer, and in which work."""
    how, whose, work = _how(thread), _first(_WHOSE, thread.frames), _first(_WORK, thread.frames)
    words = f"{how}, and lacks the answer of {whose}" if whose and how != _COMPUTES else how
    return f"{words}, in {work}" if work else words


def _how(thread: Thread) -> str:
    known = _first(_HOW, thread.frames[:_INNERMOST])
    return known or ("waits for a lock" if thread.state == "BLOCKED" else _COMPUTES)


def _first(table: Sequence[tuple[str, tuple[str, ...]]], frames: Sequence[str]) -> str:
    return next((words for words, beginnings in table if any(frame.startswith(beginnings) for frame in frames)), "")


def _work(dumps: Sequence[ThreadDump]) -> Iterator[Hanging]:
    for dump in dumps:
        for thread in dump.threads:
            if task := _TASK.fullmatch(thread.name):
                yield Hanging(dump.process, task["task"], thread, place_of(thread))
            elif query := _QUERY.fullmatch(thread.name):
                yield Hanging(dump.process, f"the query {query['query']}", thread, place_of(thread))
