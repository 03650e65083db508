"""Seed 003 for real: an executor waits for bytes from a socket during a checkpoint, and no batch ever ends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as parquet  # type: ignore[import-untyped]
import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.plan import Report
from airflow_kstream.model.streams.stall import Heartbeat, Pulse, Stall
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy, OnStall
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.triage.scan import own_catalogue, triage_path
from tests.live.cli import cluster_file, ran
from tests.live.faults.rows import ROWS_A_SECOND, Rows
from tests.live.streams import BRISK_STOP, await_commits, await_that, cluster, rate_stream, reconciler, stop

NAME = "asking"


@dataclass
class Desk:
    """A server that answers whoever connects, until it is told to leave the next checkpoint without an answer."""

    address: str
    silent: threading.Event = field(default_factory=threading.Event)
    held: threading.Event = field(default_factory=threading.Event)
    waiting: list[socket.socket] = field(default_factory=list)

    def serve(self, listening: socket.socket) -> None:
        asked = 0
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                asked += 1
                if self.silent.is_set() and asked % 2 == 0:
                    self.waiting.append(connection)
                    self.held.set()
                else:
                    connection.sendall(b"!")
                    connection.close()


@pytest.fixture
def desk() -> Iterator[Desk]:
    with serving() as running:
        yield running


@contextmanager
def serving() -> Iterator[Desk]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        desk = Desk(f"127.0.0.1:{listening.getsockname()[1]}")
        thread = threading.Thread(target=desk.serve, args=(listening,))
        thread.start()
        try:
            yield desk
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in desk.waiting:
                connection.close()


def asking(desk: Desk) -> StreamSpec:
    usual = rate_stream(NAME, TicketCredentials())
    return replace(
        usual,
        application=usual.application.replace("rate.py", "asking.py"),
        arguments=(*usual.arguments, desk.address),
        # One for each of its queries.
        deploy=Deploy(executor_cores=2),
        # The last of these is longer than its tokens live: nobody may aggregate the logs of what is stopped.
        stop=replace(
            BRISK_STOP,
            marker_grace=timedelta(seconds=5),
            quiescent_wait=timedelta(seconds=2),
            kill_wait=timedelta(days=8),
        ),
        heartbeat=HeartbeatPolicy(stall_floor=timedelta(seconds=20), stall_factor=1.0, on_stall=OnStall.RESTART),
    )


def test_an_executor_that_hangs_in_a_checkpoint_is_noticed_named_and_replaced(
    minicluster: Minicluster, desk: Desk, tmp_path: Path
) -> None:
    """Another query of the application goes on, and hides nothing."""
    spec = asking(desk)
    with reconciler(minicluster, spec) as supervisor:
        supervisor.run()
        await_commits(supervisor.session, spec)
        desk.silent.set()
        assert desk.held.wait(120)
        watcher = Watcher(supervisor)
        stall = watcher.stall()
        assert [beat.pulse for beat in watcher.beats] == [Pulse.HEALTHY, Pulse.SLOW, Pulse.STALLED]
        assert "has been in flight for" in watcher.beats[-1].why

        evidence_names_the_hang(minicluster, supervisor, tmp_path)

        desk.silent.clear()
        restarted = replaced_once_seen_twice(supervisor, watcher, stall)
        assert restarted.generation == 2
        assert any(f"batch {stall.batch} has been in flight for" in done.why for done in restarted.done)
        await_commits(supervisor.session, spec, 2)
        stop(supervisor)
        its_logs_are_kept(supervisor, 2)
        rows = rows_in(minicluster, supervisor, tmp_path)
    assert rows.produced > 0
    assert (rows.lost, rows.doubled) == (0, 0)


class Watcher:
    """One who looks again and again. `beats` are the heartbeats that it saw, one for each verdict in a row."""

    def __init__(self, supervisor: Reconciler) -> None:
        self._watch = Watch(supervisor.session, again=True)
        self.beats: list[Heartbeat] = []

    def stall(self) -> Stall:
        """Watch until a batch counts as stalled, and return it."""
        found: list[Stall] = []

        def stalled() -> bool:
            verdict = self._watch.round([NAME])[NAME]
            beat = verdict.progress.heartbeat
            assert beat is not None, verdict.why
            if not self.beats or self.beats[-1].pulse is not beat.pulse:
                self.beats.append(beat)
            found.extend([verdict.progress.stall] if verdict.progress.stall else [])
            return bool(found)

        await_that(stalled, "the stream counts as stalled")
        return found[0]


def replaced_once_seen_twice(supervisor: Reconciler, watcher: Watcher, stall: Stall) -> Report:
    """Let its task act on the stall: it examines, and replaces the generation where it finds the same once more.

    Not before three times the threshold: a batch of ten times the longest is left alone.
    """
    first = supervisor.run(Mode.WATCH, stall=stall)
    assert (first.generation, [done.what for done in first.done]) == (
        1,
        [f"examined batch {stall.batch} of generation 1"],
    )
    while True:
        stall = watcher.stall()
        report = supervisor.run(Mode.WATCH, stall=stall)
        if report.generation > 1:
            assert stall.lasts > 3 * stall.limit - timedelta(minutes=1)
            return report


def evidence_names_the_hang(minicluster: Minicluster, supervisor: Reconciler, folder: Path) -> None:
    """Let a person ask what hangs: the task, what it lacks, and in which work; kept for the stream's user alone."""
    file = str(cluster_file(minicluster, "streamer", folder))
    found = ran("streams", "evidence", NAME, "--cluster", file)
    assert found.code == 0, found.err
    assert "executor 1 on localhost, task 0.0 in stage" in found.words
    words = "waits for bytes from a socket, and lacks the answer of its Python worker, in the checkpoint of an RDD"
    assert words in found.words
    hdfs, kept = supervisor.session.hdfs, f"{supervisor.subject.id.folder}/evidence"
    assert f"kept on HDFS in {kept}/000001" in found.out
    assert words in hdfs.read(f"{kept}/000001/summary.txt")
    threads = hdfs.read(f"{kept}/000001/threads-3.txt")
    assert "ReliableCheckpointRDD" in threads
    (folder / "threads.txt").write_text(threads)
    assert triage_path(folder / "threads.txt", own_catalogue()).cause == "checkpoint-hangs"
    assert {"driver-stderr.txt", "executor-1-stderr.txt"} <= hdfs.names(f"{kept}/000001")
    with (
        cluster(minicluster, "watcher") as opened,
        open_session(opened, opened.watcher) as other,
        pytest.raises(Denied),
    ):
        other.hdfs.names(f"{kept}/000001")


def its_logs_are_kept(supervisor: Reconciler, generation: int) -> None:
    hdfs, kept = supervisor.session.hdfs, f"{supervisor.subject.id.folder}/evidence/{generation:06d}"
    of_each = {f"{process}-{log}.txt" for process in ("driver", "executor-1") for log in ("stdout", "stderr")}
    assert hdfs.names(kept) == of_each
    assert "kstream" in hdfs.read(f"{kept}/driver-stderr.txt")


def rows_in(minicluster: Minicluster, supervisor: Reconciler, folder: Path) -> Rows:
    """Compare the values of the committed batches with what the source produced until the last of them."""
    hdfs, data = supervisor.session.hdfs, supervisor.spec.arguments[0]
    last = hdfs.checkpoint(f"{data}/checkpoint").position.commit
    seconds = int(hdfs.read(f"{data}/checkpoint/offsets/{last}").splitlines()[-1])
    minicluster.hdfs("dfs", "-get", f"{data}/table", str(folder), as_="streamer")
    files = [file for number in range(last + 1) for file in (folder / f"table/batch={number}").glob("*.parquet")]
    values = [value for file in files for value in parquet.read_table(file)["value"].to_pylist()]
    return Rows.counted(seconds * ROWS_A_SECOND, values)
