"""Writers that misbehave on command: a client in Java, as Spark and Flink have it, and a native one for masses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from airflow_kstream.minicluster import Minicluster, record
from airflow_kstream.minicluster.jars import hadoop_jars
from airflow_kstream.minicluster.java import hadoop
from airflow_kstream.minicluster.tools import java_home
from tests.live.writers.children import Child, child
from tests.run_folder import java_options

_HERE = Path(__file__).parent
_PERIOD = bytes(range(251))
# A thread for the packets and one for their acknowledgments in the DataNode, for each open block.
_BLOCKS_AT_ONCE = 1000
_SMALL_BLOCK = 64 * 1024
# Of closing a file in a way that only a fast host interrupts.
_TRIES = 20


def pattern(length: int) -> bytes:
    """Return the first `length` bytes of every file that a writer here wrote."""
    return (_PERIOD * (length // len(_PERIOD) + 1))[:length]


class Writer:
    """One HDFS client in a JVM of its own, and the streams that it has open, each known by its path.

    `holder` is the client name that owns their leases, which it renews by itself while any of them is open. What
    its client raises comes back as Refused.
    """

    def __init__(self, jvm: Child, holder: str) -> None:
        self._jvm = jvm
        self.holder = holder
        self.kill = jvm.kill

    @property
    def pid(self) -> int:
        return self._jvm.pid

    def open(self, path: str, replicas: int | None = None) -> None:
        """Create the file; None means the cluster's default of replicas. Raises Refused: when it exists."""
        self._jvm.ask("open", path, *([replicas] if replicas else []))

    def append(self, path: str) -> int:
        """Open a closed file at its end, and return its length."""
        return int(self._jvm.ask("append", path))

    def write(self, path: str, count: int) -> int:
        """Go on with the pattern for so many bytes, and return the position; they may not have left the client."""
        return int(self._jvm.ask("write", path, count))

    def hflush(self, path: str) -> None:
        """Make the written bytes visible to readers; the NameNode knows nothing of them."""
        self._jvm.ask("hflush", path)

    def hsync(self, path: str, *, update_length: bool = False) -> None:
        """hflush and write to disk; with `update_length` the NameNode learns the length, too."""
        self._jvm.ask("hsync-length" if update_length else "hsync", path)

    def close(self, path: str) -> None:
        self._jvm.ask("close", path)

    def abandon(self, path: str) -> None:
        """The leak: the stream is forgotten unclosed. Its client renews the lease for as long as it lives."""
        self._jvm.ask("abandon", path)

    def interrupt_close(self, path: str) -> bool:
        """The leak of a cancelled task: its thread is interrupted in close(). Returns whether the file stayed open.

        Since 2.8 the client forgets this file, and renews the lease only while another stream of it is open. On a busy
        host the last packet may be acknowledged before the thread waits for that: then the NameNode hears of the end.
        """
        return self._jvm.ask("interrupt-close", path) == "true"

    def delete(self, path: str) -> None:
        assert self._jvm.ask("delete", path) == "true"

    def rename(self, source: str, target: str) -> None:
        """Rename with this client. An open stream continues and is known by its new name."""
        assert self._jvm.ask("rename", source, target) == "true"

    def grow(self, path: str, seconds: float) -> None:
        """Write and hflush 251 bytes now and every so many seconds, until the file is closed."""
        self._jvm.ask("grow", path, int(seconds * 1000))

    def write_utf(self, path: str, text: str) -> None:
        """Write a closed file with the text in the form of Java's DataOutput.writeUTF."""
        self._jvm.ask("write-utf", path, text)

    def leave(self, path: str, count: int, replicas: int | None = None) -> None:
        """Open the file and hflush so many bytes into it."""
        self.open(path, replicas)
        self.write(path, count)
        self.hflush(path)


@contextmanager
def writer(minicluster: Minicluster, who: str = "streamer") -> Iterator[Writer]:
    """A writer that is connected; one that lives at the end exits as clients do, which closes its files."""
    site = record.read_site(minicluster.root)
    *java, classpath = hadoop(site, minicluster.conf_dir, "writer", "-Xmx128m")
    command = [*java, os.pathsep.join([classpath, str(_compiled(minicluster.root / "writer"))]), "Writer"]
    with child(minicluster, who, command) as jvm:
        yield Writer(jvm, jvm.answer("its start"))


@cache
def _compiled(folder: Path) -> Path:
    """Compile the writer into the folder, once: Java would do it at each start, in two seconds of CPU."""
    # A JRE has the compiler without the program javac.
    javac = [
        str(java_home() / "bin/java"),
        "-XX:TieredStopAtLevel=1",
        *java_options(),
        "-m",
        "jdk.compiler/com.sun.tools.javac.Main",
    ]
    classpath = os.pathsep.join(str(jar) for jar in hadoop_jars().glob("*.jar"))
    command = [*javac, "-proc:none", "-d", str(folder), "-cp", classpath, str(_HERE / "Writer.java")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@contextmanager
def native_writer(
    minicluster: Minicluster, paths: Sequence[str], size: int, who: str = "streamer", *, closed: bool = False
) -> Iterator[Child]:
    """One client that holds all these files open, `size` bytes of the pattern hsynced to each; parents are made.

    It has no shutdown hook: however it ends, its files stay open. More than a thousand at once with bytes in them
    are more than the minicluster's DataNode should bear: see `leave_open`.
    """
    with child(minicluster, who, [sys.executable, str(_HERE / "native.py")]) as process:
        task = {
            "url": minicluster.default_fs,
            "paths": paths,
            "size": size,
            "block_size": _SMALL_BLOCK,
            "closed": closed,
        }
        process.ask(json.dumps(task))
        yield process


def leave_open(minicluster: Minicluster, paths: Sequence[str], size: int, who: str = "streamer") -> None:
    """Leave files open by killed writers, a thousand each, one writer after the other."""
    for first in range(0, len(paths), _BLOCKS_AT_ONCE):
        with native_writer(minicluster, paths[first : first + _BLOCKS_AT_ONCE], size, who) as process:
            process.kill()


def make_closed(minicluster: Minicluster, paths: Sequence[str], who: str = "streamer") -> None:
    """Create empty files that no client holds open."""
    with native_writer(minicluster, paths, 0, who, closed=True):
        """They are all there when it is ready."""


@dataclass(frozen=True)
class Bucket:
    """Files of Flink's BucketingSink: `part` is open with `flushed` bytes, and its companion grants fewer."""

    part: str
    companion: str
    valid_length: int
    flushed: int


def leave_bucket(flink: Writer, folder: str, valid_length: int = 1000, flushed: int = 1700) -> Bucket:
    """As a task manager leaves a part file whose task was cancelled in close() and restored from its checkpoint.

    The steps and names are those of BucketingSink of Flink 1.x without truncate: the checkpoint remembers the length
    that was flushed, more follows, close() is interrupted, the restored task renames the file and writes the length.
    """
    part, in_progress = f"{folder}/part-0-6", f"{folder}/_part-0-6.in-progress"
    bucket = Bucket(part, f"{folder}/_part-0-6.valid-length", valid_length, flushed)
    _leave_interrupted(flink, in_progress, valid_length, flushed)
    flink.rename(in_progress, part)
    flink.write_utf(bucket.companion, str(valid_length))
    return bucket


def _leave_interrupted(flink: Writer, path: str, valid_length: int, flushed: int) -> None:
    for _ in range(_TRIES):
        flink.leave(path, valid_length)
        flink.write(path, flushed - valid_length)
        flink.hflush(path)
        if flink.interrupt_close(path):
            return
        flink.delete(path)
    raise AssertionError(f"no close of {path} was interrupted in time")


def flink_like_bucket(minicluster: Minicluster, folder: str, valid_length: int = 1000, flushed: int = 1700) -> Bucket:
    """Leave the bucket of a dead task manager."""
    with writer(minicluster) as flink:
        bucket = leave_bucket(flink, folder, valid_length, flushed)
        flink.kill()
    return bucket
