"""Which threads stand at one place in several dumps, and where that is, in words: what all engines share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from airflow_kstream.model.logs.container_log import Hanging, Thread, ThreadDump

# Words, and the beginnings of frames.
Table = Sequence[tuple[str, tuple[str, ...]]]
# Of the frames, so many tell how it waits; the rest tell for whom, and in which work.
_INNERMOST = 8

SLEEPS = "sleeps"
# The first row that one of the innermost frames matches tells how a thread waits.
_HOW: Table = (
    (
        "connects",
        ("java.net.PlainSocketImpl.socketConnect", "sun.nio.ch.Net.connect", "sun.nio.ch.NioSocketImpl.connect"),
    ),
    (
        "reads from a socket",
        ("java.net.SocketInputStream.", "sun.nio.ch.NioSocketImpl.", "sun.nio.ch.SocketDispatcher."),
    ),
    ("waits for bytes from a socket", ("sun.nio.ch.EPoll", "sun.nio.ch.SelectorImpl.")),
    (SLEEPS, ("java.lang.Thread.sleep",)),
    ("waits for another thread", ("java.lang.Object.wait", "jdk.internal.misc.Unsafe.park", "sun.misc.Unsafe.park")),
)
_COMPUTES = "computes"
# Servers that a job may wait for: the first row that a frame matches tells whose answer it lacks. A server that is
# reached by way of another one stands before it.
SERVERS: Table = (
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
    ("an HTTP server", ("org.apache.http.", "okhttp3.", "jdk.internal.net.http.", "sun.net.www.protocol.http")),
)


def standing(
    dumps: Sequence[Sequence[ThreadDump]], work: Callable[[Sequence[ThreadDump]], Iterable[Hanging]]
) -> tuple[Hanging, ...]:
    """Return the `work` that stood still in all rounds of dumps, each taken seconds after the one before.

    Empty for fewer than two rounds: one shows no stillness.
    """
    if len(dumps) < 2:
        return ()
    first, *later = ({(each.process.name, each.thread.name): each for each in work(dump)} for dump in dumps)
    return tuple(
        each for key, each in first.items() if all(key in dump and dump[key].thread == each.thread for dump in later)
    )


def place(thread: Thread, whose: Table, work: Table) -> str:
    """Return in words where a thread stands: how it waits, for whose answer, and in which work."""
    how, lacks, within = how_of(thread), first_of(whose, thread.frames), first_of(work, thread.frames)
    words = f"{how}, and lacks the answer of {lacks}" if lacks and how != _COMPUTES else how
    return f"{words}, in {within}" if within else words


def how_of(thread: Thread) -> str:
    known = first_of(_HOW, thread.frames[:_INNERMOST])
    return known or ("waits for a lock" if thread.state == "BLOCKED" else _COMPUTES)


def first_of(table: Table, frames: Sequence[str]) -> str:
    """Return the words of the first row that one of the frames matches, empty if none does."""
    return next((words for words, beginnings in table if any(frame.startswith(beginnings) for frame in frames)), "")
