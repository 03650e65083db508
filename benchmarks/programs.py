"""Programs that are measured from their start to their end."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event, Thread
from typing import Any

from airflow_kstream.minicluster import Minicluster, record
from airflow_kstream.minicluster.java import hadoop
from airflow_kstream.minicluster.tools import java_home
from tests.live.streams import fields

Said = dict[str, Any]
# The folder from which `python -m benchmarks.…` finds them.
_LOOK_EVERY = 0.2
_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Cost:
    """The cost of a run: wall-clock seconds, and CPU seconds including all children."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Ran:
    """Cost and output of a program, and its peak memory in MB: of the child alone, which getrusage does not tell."""

    cost: Cost
    said: str
    peak: float

    def json(self) -> Said:
        """Parse its last line: Airflow logs to standard output."""
        found: Said = json.loads(self.said.splitlines()[-1])
        return found


@dataclass(frozen=True)
class Program:
    command: list[str]
    environment: dict[str, str]
    question: str = ""

    def run(self) -> Ran:
        """Run the program. Raises RuntimeError: when it fails; the message has its output."""
        with TemporaryFile() as errors:
            begun = time.perf_counter()
            process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                text=True, cwd=_ROOT,
            )  # fmt: skip
            with _watching(process.pid) as peak:
                said = _asked(process, self.question)
            # Only this call returns the figures of a single child.
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - begun
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                errors.seek(0)
                why = errors.read().decode(errors="replace")[-2000:]
                raise RuntimeError(f"{self.command} ended with {process.returncode}: {why}")
        return Ran(Cost(wall, usage.ru_utime + usage.ru_stime), said, max(peak, default=0.0))


@contextmanager
def _watching(process: int) -> Iterator[list[float]]:
    """Yield a list that gets the process's peak memory several times a second."""
    done, peaks = Event(), list[float]()

    def watch() -> None:
        while not done.wait(_LOOK_EVERY):
            with suppress(OSError, StopIteration):
                lines = Path(f"/proc/{process}/status").read_text().splitlines()
                peaks.append(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024)

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        done.set()
        watcher.join()


def _asked(process: subprocess.Popen[str], question: str) -> str:
    assert process.stdin
    assert process.stdout
    with process.stdin, process.stdout:
        process.stdin.write(question)
        process.stdin.close()
        return process.stdout.read()


def hadoop_program(minicluster: Minicluster, main_class: str, *arguments: str) -> Program:
    """Return a Hadoop tool as the superuser, with a ticket and with the quick JVM start of the minicluster."""
    java = hadoop(record.read_site(minicluster.root), minicluster.conf_dir, "benchmark")
    return Program([*java, main_class, *arguments], minicluster.client_env("hdfs"))


def hdfs_command(minicluster: Minicluster) -> Path:
    """Write the command `hdfs` of a Hadoop client, as far as `debug` needs it, and return its folder."""
    folder = minicluster.root / "hadoop-client"
    folder.mkdir(exist_ok=True)
    java = shlex.join(hadoop_program(minicluster, "org.apache.hadoop.hdfs.tools.DebugAdmin").command)
    (folder / "hdfs").write_text(f'#!/bin/sh\n[ "$1" = debug ] || exit 64\nshift\nexec {java} "$@"\n')
    (folder / "hdfs").chmod(0o755)
    return folder


def ours(minicluster: Minicluster, verb: str, who: str = "hdfs", **question: Any) -> Program:
    """Return a program that does one thing with this package: see `benchmarks/ours.py`."""
    given = fields(minicluster, who)
    connection = {name: getattr(given, name) for name in ("principal", "state_dir", "keytab_path", "hadoop_conf_dir")}
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(minicluster.root),
        "AIRFLOW_HOME": str(minicluster.root / "airflow"),
        "JAVA_HOME": str(java_home()),
        "KRB5_CONFIG": str(minicluster.krb5_conf),
    }
    command = [sys.executable, "-m", "benchmarks.ours", verb]
    return Program(command, environment, json.dumps({"connection": connection, **question}))
