"""The triage job on a local Spark: it finds what the quick look finds, however the files are cut."""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from signal import SIGINT, pthread_kill
from threading import Event, Thread, Timer, main_thread
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_kstream.model.log_scan.sections import Section
from airflow_kstream.policy.triage.sources import ScannedLog
from airflow_kstream.policy.triage.verdict import diagnose
from airflow_kstream.supervise.triage.scan import own_catalogue, triage_path
from airflow_kstream.supervise.triage.spark import JOB, settings_of, write_modules
from tests.differences import first_difference
from tests.simulated.logs import AGGREGATED, DRIVER, EXECUTOR, died, driver, executor, failing, line, stopped, working


@pytest.fixture(scope="module")
def job(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The job's module as the driver has it, and its modules shipped to the workers."""
    archive = str(write_modules(tmp_path_factory.mktemp("shipped")))
    spark.sparkContext.addPyFile(archive)
    sys.path[:0] = [archive, str(JOB.parent)]
    import triage  # type: ignore[import-not-found]

    yield triage
    for name in ("triage", "log_parts", "log_reads", "log_scan"):
        sys.modules.pop(name, None)
    del sys.path[:2]


class NobodyYet:
    """Workers that are about to start."""

    ready = False


def found_in(job: ModuleType, path: Path, size: int, workers: object = None) -> dict[str, Any]:
    """Run the job on the session's context, which is there."""
    known = settings_of(own_catalogue())
    return job.found_in(job.Java.started(), workers or job.Workers(known), known, [path.as_uri()], "", size)  # type: ignore[no-any-return]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An application's logs; the driver's is cut in the middle of records and lines by a small size of tasks."""
    between = "".join(line(f"09:{at // 60:02}:{at % 60:02}", "a line" * 20) for at in range(3600))
    refused = failing("09:59:59", "failed", "java.io.IOException: No space left on device")
    for name, text in (
        (DRIVER, driver(between, working("09:59:58"), refused * 3, died("10:00:01"))),
        (EXECUTOR, executor(stopped("10:00:02"))),
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "old.gz").write_bytes(gzip.compress(b"first\n") + gzip.compress(working("08:00:00").encode()))
    (tmp_path / "core.1").write_bytes(b"\x7fELF\0")
    for file in AGGREGATED.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


@pytest.mark.parametrize("size", [2_000, 1 << 26])
def test_it_finds_what_the_quick_look_finds(spark: SparkSession, job: ModuleType, folder: Path, size: int) -> None:
    if size == 2_000:
        # A task for each two kilobytes: they begin and end within lines and records.
        (folder / DRIVER).write_text("".join((folder / DRIVER).read_text().splitlines(keepends=True)[-60:]))
    found = found_in(job, folder, size)
    logs = [ScannedLog(log["name"], [Section.of_plain(each) for each in log["sections"]]) for log in found["logs"]]
    verdict, quick = diagnose(logs, own_catalogue(), unread=found["unread"]), triage_path(folder, own_catalogue())
    assert verdict.cause == "disk-full"
    assert verdict.evidence == quick.evidence
    assert verdict.timeline == quick.timeline
    assert verdict.scanned == quick.scanned


def test_the_driver_scans_until_somebody_else_can(job: ModuleType, spark: SparkSession, folder: Path) -> None:
    awaited = job.Workers(settings_of(own_catalogue()), awaited=True)
    by_workers, by_the_driver = (found_in(job, folder, 100_000, workers) for workers in (awaited, NobodyYet()))
    assert by_workers == by_the_driver
    assert len(by_workers["logs"]) > 3


def test_what_it_found_is_written_for_its_owner_alone(spark: SparkSession, job: ModuleType, tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    job.write(job.Java.started(), out.as_uri(), json.dumps({"logs": []}))
    assert json.loads(out.read_text()) == {"logs": []}
    assert out.stat().st_mode & 0o777 == 0o600


def test_one_large_file_is_cut_for_all_cores(job: ModuleType, folder: Path) -> None:
    file = folder / DRIVER
    source = job.Source(file.as_uri(), DRIVER, file.stat().st_size)
    parts = job.parts_of(job.Reader(job.WebHdfs()), source, 100_000)
    assert len(parts) > 3
    assert (parts[0].begin, parts[-1].end) == (0, source.length)
    reader = job.Reader(job.WebHdfs())
    read = b"".join(b"".join(sys.modules["log_parts"].lines_of(reader, part)) for part in parts)
    assert not first_difference(read, file.read_bytes())


@pytest.mark.parametrize("compression", ["none", "gz"])
def test_an_indexed_file_of_yarn_is_read_by_its_index(
    spark: SparkSession, job: ModuleType, tmp_path: Path, compression: str
) -> None:
    """Written by Hadoop's own controller; a large log in it is cut."""
    application = "application_1700000000001_0042"
    logs, local = tmp_path / application, tmp_path / "local"
    container = local / application / DRIVER.partition("/")[0]
    container.mkdir(parents=True)
    lines = working(*(f"09:{at // 60:02}:{at % 60:02}" for at in range(600)))
    refused = failing("10:00:00", "failed", "java.io.IOException: No space left on device")
    (container / "stderr").write_text(driver(lines, refused, died("10:00:01")))
    (container / "stdout").write_text("a line\n")
    aggregate(spark, INDEXED, logs, local, container.name, compression)
    found = found_in(job, logs, 10_000)
    assert found["unread"] == []
    by_name = {log["name"].rpartition("/")[2]: log for log in found["logs"]}
    assert set(by_name) == {"stderr", "stdout"}
    ((hit, *_), *_) = by_name["stderr"]["sections"][0]["found"]["disk-full"][1:]
    assert hit[0] == (container / "stderr").read_text().splitlines().index("Caused by: " + hit[1][11:]) + 1


@pytest.mark.parametrize("compression", ["none", "gz"])
def test_a_large_log_in_a_tfile_is_cut_for_all_cores(
    spark: SparkSession, job: ModuleType, tmp_path: Path, compression: str
) -> None:
    """Written by Hadoop's own controller, in chunks of a megabyte; a compressed one is read as a whole."""
    logs, local = tmp_path / "application_1700000000001_0042", tmp_path / "local"
    container = local / logs.name / DRIVER.partition("/")[0]
    container.mkdir(parents=True)
    lines = "".join(line(f"09:{at // 60 % 60:02}:{at % 60:02}", f"{at} {'x' * 100}") for at in range(30_000))
    (container / "stderr").write_text(driver(lines, failing("10:00:00", "failed", FULL), died("10:00:01")))
    (container / "stdout").write_text("a line\n" * 1000)
    (container / "empty").write_text("")
    aggregate(spark, TFILE, logs, local, container.name, compression)
    (file,) = logs.glob("node1_*")
    source, reader = job.Source(file.as_uri(), file.name, file.stat().st_size), job.Reader(job.WebHdfs())
    if compression == "none":
        for size in (999_999, 300_000):
            parts = [part for part in job.parts_of(reader, source, size) if part.name.endswith("/stderr")]
            assert len(parts) == -(-(container / "stderr").stat().st_size // size)
            read = [b"".join(sys.modules["log_parts"].lines_of(reader, part)) for part in parts]
            assert not first_difference(b"".join(read), (container / "stderr").read_bytes())
            assert all(part.endswith(b"\n") for part in read)
    found = found_in(job, file, 300_000)
    assert found["unread"] == []
    by_name = {log["name"].rpartition("/")[2]: log for log in found["logs"]}
    ((hit, *_), *_) = by_name["stderr"]["sections"][0]["found"]["disk-full"][1:]
    assert hit[0] == (container / "stderr").read_text().splitlines().index("Caused by: " + FULL) + 1
    assert sum(section["lines"] for section in by_name["stdout"]["sections"]) == 1000


INDEXED, TFILE = "ifile.LogAggregationIndexedFileController", "tfile.LogAggregationTFileController"
FULL = "java.io.IOException: No space left on device"


def aggregate(
    spark: SparkSession, controller_class: str, logs: Path, local: Path, container: str, compression: str
) -> None:
    """Let a controller of YARN's aggregate a container's logs, as a NodeManager does."""
    jvm = spark._jvm
    yarn, records = jvm.org.apache.hadoop.yarn, jvm.org.apache.hadoop.yarn.api.records  # type: ignore[union-attr]
    conf = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration()  # type: ignore[union-attr]
    conf.set("fs.defaultFS", "file:///")
    conf.set("yarn.nodemanager.log-aggregation.compression-type", compression)
    for kind in ("IFile", "TFile"):
        conf.set(f"yarn.log-aggregation.{kind}.remote-app-log-dir", str(logs.parent))
    user = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser()  # type: ignore[union-attr]
    path = jvm.org.apache.hadoop.fs.Path(str(logs / "node1_45454"))  # type: ignore[union-attr]
    logs.mkdir()
    id_of_container = records.ContainerId.fromString(container)
    application = id_of_container.getApplicationAttemptId().getApplicationId()
    node, rights = records.NodeId.newInstance("node1", 45454), jvm.java.util.HashMap()  # type: ignore[union-attr]
    context = yarn.logaggregation.filecontroller.LogAggregationFileControllerContext(
        path, path.suffix(".tmp"), False, 0, application, rights, node, user
    )
    kind, name = controller_class.split(".")
    controller = getattr(getattr(yarn.logaggregation.filecontroller, kind), name)()
    controller.initialize(conf, {"ifile": "IFile", "tfile": "TFile"}[kind])
    context.setUploadedLogsInThisCycle(True)
    controller.initializeWriter(context)
    format_ = getattr(yarn.logaggregation, "AggregatedLogFormat$LogKey")
    value = getattr(yarn.logaggregation, "AggregatedLogFormat$LogValue")
    folders = jvm.java.util.ArrayList()  # type: ignore[union-attr]
    folders.add(str(local))
    controller.write(format_(id_of_container), value(folders, id_of_container, user.getShortUserName()))
    controller.postWrite(context)
    controller.closeWriter()


def in_blocks(content: bytes, size: int = 1 << 20) -> Iterator[bytes]:
    yield from (content[at : at + size] for at in range(0, len(content), size))


@pytest.mark.usefixtures("job")
def test_what_a_few_bytes_inflate_to_is_never_in_memory_at_once() -> None:
    """200 MB of zeros are 200 kB of gzip."""
    bomb = gzip.compress(bytes(200 << 20))
    tracemalloc.start()
    try:
        inflated = sum(len(piece) for piece in sys.modules["log_parts"].unpacked(in_blocks(bomb)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert inflated == 200 << 20
    assert peak < 20 << 20


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_members_of_a_compressed_log_are_read_wherever_blocks_end(size: int) -> None:
    members = [driver(working("08:00:00")).encode(), b"", b"x" * 3000, b"the end\n"]
    packed = b"".join(map(gzip.compress, members))
    unpacked = sys.modules["log_parts"].unpacked
    assert b"".join(unpacked(in_blocks(packed, size))) == b"".join(members)
    assert b"".join(unpacked(in_blocks(zlib.compress(members[0]), size))) == members[0]


def test_a_damaged_file_is_named_and_hides_no_other(job: ModuleType, folder: Path) -> None:
    index = b"\x01\x11data:BCFile.index\x04none\xfb\x01\x01" + bytes(8)
    (folder / "node1_45454").write_bytes(index + (AGGREGATED / "plain.tfile").read_bytes()[-20:])
    whole = (folder / "old.gz").read_bytes()
    (folder / "torn.gz").write_bytes(whole[:20] + b"\xff" * 20)
    found = found_in(job, folder, 1 << 26)
    named = {why.partition(":")[0] for why in found["unread"]}
    assert named == {"node1_45454", "torn.gz", "core.1"}
    assert len(found["logs"]) > 3


def test_a_token_is_shown_by_no_error_and_no_repr(job: ModuleType) -> None:
    hdfs = job.WebHdfs(("http://localhost:1",), "hunter2")
    assert "hunter2" not in repr(job.Reader(hdfs))
    with pytest.raises(OSError, match="refused") as failed:
        hdfs.read_at("/logs/a", 0, 10)
    assert "hunter2" not in str(failed.value)


class OneFile(BaseHTTPRequestHandler):
    """A NameNode's web server that has one file."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"a log")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_what_a_worker_cannot_read_natively_it_reads_over_webhdfs_from_then_on(
    job: ModuleType,
) -> None:
    native = sys.modules["log_reads"]._native("hdfs://nameservice.invalid")
    with HTTPServer(("127.0.0.1", 0), OneFile) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        reader = job.Reader(job.WebHdfs((f"http://127.0.0.1:{server.server_port}",)))
        assert reader.read_at(job.Source("hdfs://nameservice.invalid/logs/a", "a", 5), 0, 5) == b"a log"
        server.shutdown()
    assert not native.usable


@pytest.mark.usefixtures("job")
def test_who_interrupts_a_read_that_waits_for_a_server_ends_the_job() -> None:
    """It is not a failure of hdfs-native, after which WebHDFS would go on."""
    ended = Event()
    slow_file = SimpleNamespace(read_range=lambda at, size: ended.wait())
    native = sys.modules["log_reads"].NativeHdfs("hdfs://nameservice", _client=object(), _file=("/logs/a", slow_file))
    Timer(0.1, pthread_kill, (main_thread().ident, SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        native.read_at("/logs/a", 0, 5)
    ended.set()
    assert native.usable


def test_an_aggregated_log_without_a_container_is_no_trouble(
    spark: SparkSession, job: ModuleType, tmp_path: Path
) -> None:
    logs, local = tmp_path / "application_1700000000001_0042", tmp_path / "local"
    aggregate(spark, TFILE, logs, local, DRIVER.partition("/")[0], "none")
    found = found_in(job, logs, 1000)
    assert found == {"logs": [], "unread": []}
