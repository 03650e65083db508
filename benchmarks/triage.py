"""The verdict on millions of aggregated lines, against `yarn logs | grep`, which finds lines and judges nothing.

    python -m benchmarks.triage                                         # 7 million lines, 0.7 GB
    python -m benchmarks.triage --lines 105000000 --only verdicts       # 10 GB

The lines are those that the minicluster's own daemons have logged, again and again, and at the end those of a command
that failed. A container leaves them as its log, and YARN aggregates it on HDFS. The patterns of grep and ripgrep are
one of each cause of the catalogue, 30 of them; triage looks for the whole catalogue, and so does ripgrep once. Every
time of a verdict is that of a process from its start to its end; the second table says where the seconds go. The disk
has the lines twice for a while: 10 GB of them need 22 GB.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from getpass import getuser
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.clients.spark import find_spark_submit
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.log_scan.engines import PlainEngine
from airflow_kstream.model.log_scan.scanner import Scanner
from airflow_kstream.model.logs.container_log import aggregated_files
from airflow_kstream.model.logs.signature import SignatureKind
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.triage.look import LogLimits, opened_log, reads_of
from airflow_kstream.supervise.triage.scan import own_catalogue, scanner_of
from airflow_kstream.supervise.triage.spark import application_logs
from benchmarks.ground import Environment, ground
from benchmarks.report import Figure, save, table
from benchmarks.token_pushes import session_on

_WIDTH = 150
_LOGS_CLI = "org.apache.hadoop.yarn.client.cli.LogsCLI"
_SHELL = "org.apache.hadoop.fs.FsShell"
_DAEMONS = ("nn1", "nn2", "resourcemanager", "nodemanager", "datanode", "journalnode")
_PATTERNS, _SAMPLE = 30, 32 << 20
# In seconds, between two looks at a process's memory.
_LOOK = 0.1
_TAG = "benchmark-triage"
# In seconds, and for each GB more.
_AGGREGATION, _AGGREGATION_GB = 120, 60
# What a container runs: it leaves the file as a log of its own, which YARN deletes once it is aggregated.
_JOB = """
import os, shutil, sys
shutil.move(sys.argv[1], os.path.join(os.environ["LOG_DIRS"].split(",")[0], "application.log"))
"""
# What scans a file on so many cores, in a process of its own: this one has threads, so it forks none.
_SCAN = """
import sys, time
from pathlib import Path
from airflow_kstream.supervise.triage.scan import own_catalogue
from airflow_kstream.supervise.triage.scan import scanned_file, scanner_of
scanner = scanner_of(own_catalogue())
began = time.monotonic()
scanned_file(Path(sys.argv[1]), "log", scanner, int(sys.argv[2]))
print(time.monotonic() - began)
"""
_MASTERS = ("", "local[1]", "local[2]", "yarn")
_GROUPS = ("scans", "verdicts", "parts")


def main() -> None:
    """Start a minicluster, grow the logs, measure, and print two tables."""
    asked = _asked()
    load = os.getloadavg()[0]
    with ground() as under, session_on(under.minicluster) as session:
        grown = _grown(under.minicluster, asked.lines)
        size = grown.stat().st_size
        figures = list(_scans(under, grown)) if "scans" in asked.only else []
        application = under.doing("aggregating", lambda: _aggregated(under, session, grown, size))
        figures += _verdicts(under, session, application, size) if "verdicts" in asked.only else []
        parts = list(_parts(under, session, application)) if "parts" in asked.only else []
    caption = f"{os.cpu_count()} cores; load {load:.1f} before, {os.getloadavg()[0]:.1f} after"
    console = Console(width=None if Console().is_terminal else _WIDTH)
    for rows, words in ((figures, caption), (parts, "where the seconds of a verdict without Spark go")):
        if rows:
            console.print(table(rows, words))
    if asked.json:
        save([*figures, *parts], asked.json)


def _grown(minicluster: Minicluster, lines: int) -> Path:
    """Write the daemons' lines so often that there are `lines`, and a failure's at the end."""
    own = b"".join(minicluster.log(name).read_bytes() for name in _DAEMONS)
    failed = minicluster.hdfs("dfs", "-mkdir", "/forbidden", as_="watcher").stderr.encode()
    file = minicluster.root / "grown.log"
    times, rest = divmod(lines, own.count(b"\n"))
    with file.open("wb") as grown:
        for _ in range(times):
            grown.write(own)
        grown.write(b"".join(own.splitlines(keepends=True)[:rest]))
        grown.write(failed)
    return file


def _aggregated(under: Environment, session: ClusterSession, grown: Path, size: int) -> str:
    """Let a container leave the file as its log, and wait until that is on HDFS."""
    minicluster = under.minicluster
    job = minicluster.root / "leave.py"
    job.write_text(_JOB)
    conf = {**minicluster.spark_conf(), "spark.yarn.tags": _TAG, "spark.yarn.maxAppAttempts": "1"}
    argv = [find_spark_submit(), "--master", "yarn", "--deploy-mode", "cluster"]
    argv += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    subprocess.run(
        [*argv, str(job), str(grown)], env=minicluster.client_env("streamer"), capture_output=True, check=False
    )
    (app,) = session.yarn.applications(_TAG)
    logs = ContainerLogs(session.cluster, session.identity)
    patience = time.monotonic() + _AGGREGATION + size / 1e9 * _AGGREGATION_GB
    while not any(logs.aggregated_nodes(session.hdfs, app.id, getuser())):
        if time.monotonic() > patience:
            raise SystemExit(f"the logs of {app.id} are not aggregated: is the disk full?")
        time.sleep(1)
    return app.id


def _scans(under: Environment, grown: Path) -> Iterator[Figure]:
    """Measure the scan alone, of a local file."""
    task, minicluster = f"scan {grown.stat().st_size / 1e6:.0f} MB of a local file", under.minicluster
    locale, scanner = {"LC_ALL": "C.UTF-8"}, scanner_of(own_catalogue())
    one_of_each, all_of_them = _pattern_file(minicluster), _own_pattern_file(minicluster, scanner)
    grep = ["grep", "-cE", "-f", str(one_of_each), str(grown)]
    yield Figure(task, f"grep -cE, {_PATTERNS} patterns", under.doing("grep", partial(_run_seconds, grep, locale)))
    for file, number in ((one_of_each, _PATTERNS), (all_of_them, len(scanner.patterns))) if shutil.which("rg") else ():
        rg = ["rg", "--no-config", "-j1", "-ac", "-f", str(file), str(grown)]
        yield Figure(task, f"ripgrep, {number} patterns", under.doing("rg", partial(_run_seconds, rg, locale)))
    for cores in (1, 2):
        name = f"the scanner, {cores} core{'s' if cores > 1 else ''}, {len(scanner.patterns)} patterns"
        ran = under.doing(name, partial(_run, [sys.executable, "-c", _SCAN, str(grown), str(cores)], {}))
        yield Figure(task, name, float(ran.output), peak=ran.peak)
    plain = PlainEngine([pattern.regex for pattern in scanner.patterns])
    with grown.open("rb") as log:
        sample = log.read(_SAMPLE)
    seconds = under.doing("Python's re", lambda: _timed(lambda: plain.matches(sample)))
    share = grown.stat().st_size / len(sample)
    note = f"{len(sample) >> 20} MB measured, the rest extrapolated"
    yield Figure(task, "the scanner without Hyperscan", seconds * share, note=note)


def _verdicts(under: Environment, session: ClusterSession, application: str, size: int) -> Iterator[Figure]:
    """Measure whole processes on the aggregated logs."""
    minicluster, task = under.minicluster, "the aggregated logs on HDFS"
    yield from _greps(under, session, application, task)
    cluster = minicluster.root / "cluster.yaml"
    # JSON is YAML.
    connection = minicluster.connection()
    # Its jobs have one core otherwise, and memory for the Python of one.
    cores = {"spark.executor.cores": str(os.cpu_count()), "spark.executor.memoryOverhead": "1g"}
    connection["spark_conf"] |= cores
    cluster.write_text(json.dumps(connection))
    kstream = [sys.executable, "-m", "airflow_kstream.cli", "triage", application, "--cluster", str(cluster), "--json"]
    # Without Spark it reads no log that is larger than this.
    for master in _MASTERS if size <= LogLimits().size else _MASTERS[1:]:
        name = f"kstream triage --spark {master}" if master else "kstream triage"
        words = [*kstream, *(["--spark", master] if master else [])]
        # A ticket of its own: tickets live for ten minutes here.
        ran = under.doing(name, partial(_run, words, minicluster.client_env("streamer")))
        yield Figure(task, name, ran.seconds, peak=None if master else ran.peak, note=_verdict_in(ran))


def _greps(under: Environment, session: ClusterSession, application: str, task: str) -> Iterator[Figure]:
    """Measure the ways to grep, and count what they print: of a log beyond 2 GB `yarn logs` often prints nothing."""
    minicluster = under.minicluster
    ways = {
        "yarn logs": minicluster.hadoop_command(_LOGS_CLI, "-applicationId", application),
        "hdfs dfs -cat": minicluster.hadoop_command(_SHELL, "-cat", *application_logs(session, application)),
    }
    for name, words in ways.items():
        command = f"{shlex.join(words)} 2>/dev/null"
        pipe = ["bash", "-c", f"{command} | grep -acE -f {_pattern_file(minicluster)}"]
        seconds = under.doing(f"{name} | grep", partial(_run_seconds, pipe, minicluster.client_env("streamer")))
        # Counting them is not part of the time.
        count = ["bash", "-c", f"{command} | wc -l"]
        printed = under.doing(name, partial(_run, count, minicluster.client_env("streamer"))).output.strip()
        yield Figure(task, f"{name} | grep -acE, no verdict", seconds, note=f"{printed} lines")


def _parts(under: Environment, session: ClusterSession, application: str) -> Iterator[Figure]:
    """Measure the parts of a verdict in this process."""
    app = session.yarn.application(application)
    logs = list(ContainerLogs(session.cluster, session.identity).aggregated_nodes(session.hdfs, app.id, app.user))
    start = [sys.executable, "-m", "airflow_kstream.cli", "triage", "--help"]
    yield Figure("parts", "start of the process", under.doing("start", lambda: _run(start, {}).seconds))
    yield Figure("parts", "reading the catalogue", _timed(own_catalogue.__wrapped__))
    yield Figure("parts", "compiling the patterns", _timed(lambda: scanner_of.__wrapped__(own_catalogue())))

    def read() -> None:
        reads = reads_of(session)
        for path, file in logs:
            with opened_log(reads, path, file.length) as read_at:
                for log in aggregated_files(read_at, file.length):
                    deque(log.blocks, maxlen=0)

    yield Figure("parts", "reading from HDFS, and nothing else", under.doing("reading", lambda: _timed(read)))


def _pattern_file(minicluster: Minicluster) -> Path:
    """Write a pattern of each cause for grep, which has no groups without a number."""
    causes = own_catalogue().of_kind(SignatureKind.CAUSE).values()
    regexes = [cause.patterns[0].replace("(?:", "(") for cause in causes if cause.patterns][:_PATTERNS]
    file = minicluster.root / "patterns"
    file.write_text("".join(f"{regex}\n" for regex in regexes))
    return file


def _own_pattern_file(minicluster: Minicluster, scanner: Scanner) -> Path:
    """Write all that triage looks for."""
    file = minicluster.root / "own-patterns"
    file.write_text("".join(f"{pattern.regex}\n" for pattern in scanner.patterns))
    return file


class _Ran(NamedTuple):
    """`peak` is the peak memory in MB of the process itself, not of its children."""

    seconds: float
    output: str
    errors: str
    peak: float


def _verdict_in(ran: _Ran) -> str:
    """Return the verdict in words; one that failed hides no other."""
    if not ran.output.startswith("{"):
        return f"FAILED: {ran.errors[-300:]}"
    verdict = json.loads(ran.output)
    return f"{verdict['cause']}, {verdict['scanned']['lines']} lines"


def _run(words: list[str], env: Mapping[str, str]) -> _Ran:
    began = time.monotonic()
    started = subprocess.Popen(
        words, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    peak = 0.0
    while True:
        try:
            output, errors = started.communicate(timeout=_LOOK)
            break
        except subprocess.TimeoutExpired:
            peak = max(peak, _peak(started.pid))
    if started.returncode not in {0, 1}:
        raise SystemExit(f"{words[:4]} ended with {started.returncode}: {errors[-2000:]}")
    return _Ran(time.monotonic() - began, output, errors, peak)


def _run_seconds(words: list[str], env: Mapping[str, str]) -> float:
    return _run(words, env).seconds


def _peak(pid: int) -> float:
    """Return the peak memory so far in MB, 0 once the process has ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _asked() -> Namespace:
    parser = ArgumentParser(description="Measure triage against yarn logs | grep on a minicluster.")
    parser.add_argument("--lines", type=int, default=7_000_000)
    only = "Measure these alone; can be repeated."
    parser.add_argument("--only", action="append", choices=_GROUPS, help=only)
    parser.add_argument("--json", type=Path, help="Write the figures there, too.")
    asked = parser.parse_args()
    asked.only = asked.only or _GROUPS
    return asked


if __name__ == "__main__":
    main()
