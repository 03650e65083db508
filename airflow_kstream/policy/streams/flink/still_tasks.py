"""What a Flink job hangs in: the threads of its tasks that stand still in several dumps, and whether it reads records.

A task has one thread, which also takes its part of each checkpoint: one that hangs keeps every checkpoint from being
complete. A task that waits for input, or for room in the buffers of the next one, stands still without hanging: the
cause is another task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_kstream.model.logs.container_log import DumpRound, Hanging, Process, Stillness, Thread, ThreadDump
from airflow_kstream.model.streams.flink_job import FlinkReading
from airflow_kstream.policy.streams.pulse.standstill import SERVERS, Table, first_of, place, standing

# So many of the threads that stand still are named: a job may have a thousand tasks that wait for one server.
_NAMED = 20
_TASKS = "org.apache.flink.streaming.runtime.tasks."
_TASK_THREAD = "org.apache.flink.runtime.taskmanager.Task."
_COORDINATOR, _LEGACY, _ASYNC = "SourceCoordinator-", "Legacy Source Thread - ", "AsyncOperations-thread-"
# A thread of a pool waits for work.
_POOL = ("java.util.concurrent.ThreadPoolExecutor.getTask",)
_MAILBOX, _YIELD = f"{_TASKS}mailbox.TaskMailboxImpl.take", f"{_TASKS}mailbox.MailboxExecutorImpl.yield"
# Waits for room in the buffers of the next task; restores its state, which may take an hour.
_RESTS = ("org.apache.flink.runtime.io.network.buffer.LocalBufferPool.", f"{_TASKS}StreamTask.restore")
# The first row that a frame matches tells in which work.
_WORK: Table = (
    (
        "its part of a checkpoint",
        (f"{_TASKS}SubtaskCheckpointCoordinatorImpl.", f"{_TASKS}StreamTask.performCheckpoint", f"{_TASKS}AsyncCheck"),
    ),
    ("the commit after a checkpoint", (f"{_TASKS}StreamTask.notifyCheckpoint",)),
    ("its state", ("org.rocksdb.", "org.apache.flink.contrib.streaming.state.", "org.apache.flink.state.rocksdb.")),
    (
        "its sink",
        (
            "org.apache.flink.streaming.runtime.operators.sink.",
            "org.apache.flink.streaming.api.functions.sink.",
            "org.apache.flink.connector.file.sink.",
            "org.apache.flink.connector.base.sink.",
        ),
    ),
)
# A frame that begins with none of these is the job's own code, or that of a library that it brings.
_NOT_ITS_OWN = ("java.", "javax.", "jdk.", "sun.", "com.sun.", "scala.", "org.apache.", "org.rocksdb.")


def stillness(
    rounds: Sequence[DumpRound], readings: Sequence[FlinkReading], *, survives: bool, workers: int
) -> Stillness:
    """Return what stood still in these rounds. Stuck are tasks that wait for no other task, and coordinators of
    sources.

    Nothing counts as stuck while it can't be told whether the job reads records, or if its checkpoints don't survive
    it: then only a savepoint would let another job go on, and none is completed while a task hangs.
    """
    found = standing([each.dumps for each in rounds], _work)
    still = tuple(_telling([each for each in found if not _rests(each.thread)]))
    doubt = "" if len(readings) < 2 else _doubt(readings, survives=survives, workers=workers)
    stuck = () if doubt else tuple(each for each in still if not each.thread.name.startswith((_LEGACY, _ASYNC)))
    return Stillness(still[:_NAMED], stuck[:_NAMED], doubt)


def moved(before: FlinkReading | None, now: FlinkReading | None) -> bool | None:
    """Return whether the job counted records between two readings, None if that can't be told.

    A task that waits for a slot counts none, whatever hangs. A JobManager that has heard nothing of its tasks since
    repeats its numbers.
    """
    if before is None or now is None or not (before.runs and now.runs) or not (before.counts and now.counts):
        return None
    if before.counts != now.counts:
        return True
    return False if before.spent != now.spent else None


def _doubt(readings: Sequence[FlinkReading], *, survives: bool, workers: int) -> str:
    first, last = readings[0], readings[-1]
    if workers == 0:
        return "no TaskManager works for it; `kstream streams status` tells why, as its JobManager's log has it"
    if not survives:
        return "its checkpoints end with it, so no other generation could go on with them"
    if not all(each.runs for each in readings):
        return "not all of the job's tasks run"
    if moved(first, last) is None:
        return "the JobManager does not tell whether its job reads records: it has no new counts of its tasks"
    return ""


def _work(dumps: Sequence[ThreadDump]) -> Iterator[Hanging]:
    for dump in dumps:
        for thread in dump.threads:
            if what := _what(dump.process, thread):
                yield Hanging(dump.process, what, thread, _where(thread))


def _what(process: Process, thread: Thread) -> str:
    """Return the work of a thread, empty if it is none of the job's."""
    if process.tasks is None:
        return f"the coordinator of {_named(thread, _COORDINATOR)}" if thread.name.startswith(_COORDINATOR) else ""
    if thread.name.startswith(_LEGACY):
        return f"the source of task {_named(thread, _LEGACY)}"
    if thread.name.startswith(_ASYNC):
        return "the asynchronous part of a checkpoint"
    return f"task {thread.name}" if any(frame.startswith(_TASK_THREAD) for frame in thread.frames) else ""


def _named(thread: Thread, prefix: str) -> str:
    return thread.name.removeprefix(prefix)


def _telling(still: Sequence[Hanging]) -> Iterator[Hanging]:
    """Yield all but sources of the older kind whose task gets on: they may sleep between two rows."""
    names = {each.thread.name for each in still}
    for each in still:
        if not each.thread.name.startswith(_LEGACY) or _named(each.thread, _LEGACY) in names:
            yield each


def _rests(thread: Thread) -> bool:
    if any(frame.startswith((*_POOL, *_RESTS)) for frame in thread.frames):
        return True
    waits = any(frame.startswith(_MAILBOX) for frame in thread.frames)
    # An operator that yields waits for an answer that it has requested.
    return waits and not any(frame.startswith(_YIELD) for frame in thread.frames)


def _where(thread: Thread) -> str:
    words = place(thread, SERVERS, _WORK)
    own = next((frame for frame in thread.frames if not frame.startswith(_NOT_ITS_OWN) and not _served(frame)), "")
    return f"{words}, at {own}" if own else words


def _served(frame: str) -> bool:
    return bool(first_of(SERVERS, (frame,))) or "$$Lambda" in frame
