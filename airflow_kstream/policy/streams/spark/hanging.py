"""What a query of Spark's hangs in: the threads of its work that stand still in several thread dumps, in words.

A thread of a healthy batch moves between two dumps that are seconds apart, or waits for one that moves. So a task that
stands still is named, and the driver's own thread only where no task is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from airflow_kstream.model.logs.container_log import DumpRound, Hanging, Stillness, Thread, ThreadDump
from airflow_kstream.policy.streams.pulse.standstill import SERVERS, SLEEPS, Table, how_of, place, standing

# Executor.TaskRunner and StreamExecution name their threads so.
_TASK = re.compile(r"Executor task launch worker for (?P<task>task .*)")
_QUERY = re.compile(r"stream execution thread for (?P<query>.*)")
# StreamExecution.prettyIdString; a task's name ends with the attempt of its stage.
_ID = re.compile(r"\[id = (?P<id>[^,\]]+)")
_STAGE = re.compile(r" in stage (?P<stage>\d{1,9})\.")
_SQL, _STREAMING = "org.apache.spark.sql.execution.", "org.apache.spark.sql.execution.streaming."
# ProcessingTimeExecutor waits so for its next batch.
_OF_A_TRIGGER = ("org.apache.spark.util.SystemClock.", "org.apache.spark.util.Clock.")
_OF_A_JOB = ("org.apache.spark.scheduler.DAGScheduler.",)
# The first row that a frame matches tells whose answer a thread lacks: a server's, or that of the job's own parts.
_WHOSE: Table = (
    ("a Spark job", _OF_A_JOB),
    *SERVERS,
    ("another executor", ("org.apache.spark.storage.ShuffleBlockFetcherIterator.",)),
    ("its Python worker", ("org.apache.spark.api.python.", f"{_SQL}python.")),
    ("the driver's Python", ("py4j.",)),
)
# The first row that a frame matches tells in which work.
_WORK: Table = (
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
    still = standing(dumps, _work)
    ours = tuple(each for each in still if share is None or share.has(each))
    tasks = tuple(each for each in ours if each.process.tasks is not None)
    return tasks or ours


def stuck(still: Sequence[Hanging]) -> tuple[Hanging, ...]:
    """Return those whose stillness is a batch's: not a query that waits for the tasks of a Spark job, which may move or
    wait for executors, and not one that sleeps until its trigger."""
    return tuple(each for each in still if each.process.tasks is not None or not _rests(each.thread))


def _rests(thread: Thread) -> bool:
    return how_of(thread) == SLEEPS or any(frame.startswith((*_OF_A_JOB, *_OF_A_TRIGGER)) for frame in thread.frames)


def place_of(thread: Thread) -> str:
    """Return in words where a thread stands: how it waits, for whose answer, and in which work."""
    return place(thread, _WHOSE, _WORK)


def _work(dumps: Sequence[ThreadDump]) -> Iterator[Hanging]:
    for dump in dumps:
        for thread in dump.threads:
            if task := _TASK.fullmatch(thread.name):
                yield Hanging(dump.process, task["task"], thread, place_of(thread))
            elif query := _QUERY.fullmatch(thread.name):
                yield Hanging(dump.process, f"the query {query['query']}", thread, place_of(thread))
