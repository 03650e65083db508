"""A job that hangs in one of its functions: evidence names the thread, and its generation is replaced.

One that is slow sleeps at the same place in each dump, and counts records meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest

from airflow_kstream.demo.flink_job import compile_java
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.jars import flink_jars
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase, Report
from airflow_kstream.model.streams.stall import Pulse, Stall
from airflow_kstream.model.streams.stream import KeytabCredentials
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy, OnStall
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.orders.desired import set_desired, start_from
from airflow_kstream.supervise.streams.pulse.evidence import take_evidence
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.cli import cluster_file, ran
from tests.live.flink import rows_of
from tests.live.flink_streams import Stream, declared
from tests.live.streams import await_that

SOURCE = Path(__file__).parents[2] / "live/flink_jar/Hangs.java"
TASK = "task Source: counted -> waits -> files: Writer -> files: Committer (1/1)#0"
PLACE = "sleeps, at kstream.live.Hangs$Waits.map(Hangs.java:"
# The newest checkpoint may be a minute old: five times the timeout, because failures are tolerated. By default Flink
# restarts a job whose checkpoint has expired, and ends its hang so.
CONF = {
    "execution.checkpointing.interval": "2s",
    "execution.checkpointing.timeout": "12s",
    "execution.checkpointing.tolerable-failed-checkpoints": "1000",
}


@pytest.fixture
def word(tmp_path: Path) -> Path:
    """Return the file in which the job looks for what it is to do."""
    return tmp_path / "word"


@pytest.fixture
def stream(
    flinks: Minicluster, session: ClusterSession, feature: Feature, tmp_path: Path, word: Path
) -> Iterator[Stream]:
    keytab = KeytabCredentials(flinks.principal("streamer"), keytab=str(flinks.keytab("streamer")))
    usual = declared(flinks, session, feature, hangs(feature, tmp_path), keytab, "hangs")
    usual.spec = replace(
        usual.spec,
        arguments=(str(word), usual.spec.arguments[-1]),
        conf=CONF,
        deploy=replace(usual.spec.deploy, main_class="kstream.live.Hangs"),
        heartbeat=HeartbeatPolicy(on_stall=OnStall.RESTART),
    )
    try:
        yield usual
    finally:
        usual.end()


def hangs(feature: Feature, folder: Path) -> Path:
    """Build the job's jar."""
    jar, classes = folder / "hangs.jar", folder / "classes"
    classes.mkdir()
    compile_java([SOURCE], sorted(flink_jars(feature).glob("*.jar")), classes)
    with ZipFile(jar, "w") as target:
        for file in sorted(classes.rglob("*.class")):
            target.write(file, file.relative_to(classes))
    return jar


def test_a_job_that_hangs_is_named_and_replaced_and_loses_and_doubles_no_row(
    stream: Stream, word: Path, tmp_path: Path
) -> None:
    start_from(stream.run, "a test", fresh=True)
    stream.reconcile()
    stream.await_checkpoints(2)
    first = stream.application.id

    word.write_text("slow")
    slow = take_evidence(stream.run, stream.application, 1, print)
    # Its thread sleeps at one place whenever it is looked at.
    assert (slow.dumped, slow.moves) == (True, True), slow

    word.write_text("hang")
    stall = stalled(stream)
    assert str(stall).startswith(f"checkpoint {stall.batch} has not come for ")
    word.unlink()
    evidence_names_the_hang(stream, tmp_path)

    restarted = replaced_once_seen_twice(stream, stall)
    assert restarted.generation == 2
    assert "and hangs" in " ".join(done.why for done in restarted.done)
    assert stream.session.yarn.application(first).state is ApplicationState.KILLED
    stream.await_checkpoints(2)
    resumed = stream.claim.start.resume
    assert resumed is not None
    assert (resumed.made_by, "/chk-" in resumed.path) == (1, True)

    set_desired(stream.run, DesiredState.STOPPED, "a test")
    assert stream.reconcile().phase is Phase.STOPPED
    rows = rows_of(stream.session, stream.rows)
    assert sorted(rows) == list(range(len(rows)))
    assert len(rows) > 100


def stalled(stream: Stream) -> Stall:
    """Watch until a checkpoint is one that its task is to examine."""
    watch = Watch(stream.session, again=True)
    found: list[Stall] = []

    def look() -> bool:
        progress = watch.round([stream.spec.name])[stream.spec.name].progress
        assert progress.heartbeat is not None
        if progress.stall:
            assert progress.heartbeat.pulse is Pulse.STALLED
            found.append(progress.stall)
        return bool(found)

    await_that(look, "its task is to examine it")
    return found[0]


def replaced_once_seen_twice(stream: Stream, stall: Stall) -> Report:
    while True:
        report = Reconciler(stream.run, tell=stream.told.append).run(Mode.WATCH, stall=stall)
        if report.generation > 1:
            return report
        assert report.done[0].what == f"examined checkpoint {stall.batch} of generation 1"
        stall = stalled(stream)


def evidence_names_the_hang(stream: Stream, folder: Path) -> None:
    """Let a person ask what hangs; it is kept with the logs of both processes."""
    file = cluster_file(stream.minicluster, "streamer", folder)
    found = ran("streams", "evidence", stream.spec.name, "--cluster", str(file))
    assert found.code == 0, found.err
    assert f"TaskManager 2 on localhost, {TASK}: {PLACE}" in found.words
    hdfs, kept = stream.session.hdfs, f"{stream.run.id.folder}/evidence/000001"
    assert PLACE in hdfs.read(f"{kept}/summary.txt")
    assert "Hangs$Waits.map" in hdfs.read(f"{kept}/threads-3.txt")
    assert "waits.numRecordsIn" in hdfs.read(f"{kept}/progress.txt")
    assert {"JobManager-jobmanager.log.txt", "TaskManager-2-taskmanager.log.txt"} <= hdfs.names(kept)
