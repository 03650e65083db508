"""Three ways to list the open files of a NameNode, in one run on a stand: why the RPC is hand-written.

    python benchmarks/list_open_files.py --files 1000

A cold listing is a process of its own, with its start and its login; a warm one comes later in the same process. The
seconds of CPU are those of the process and all its children: the JVM's are in them. The JVMs start as the stand's do,
with the first compiler alone and dfsadmin with a class archive too: those of a Hadoop installation take longer.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from typing import Annotated

import typer
from hdfs_native import Client, FileWriter
from rich.console import Console
from rich.table import Table

from airflow_kstream.stand import Stand, StandPlan, record
from airflow_kstream.stand.java import hadoop
from airflow_kstream.stand.plan import Feature

_WARM = 20
_DFSADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock, and of CPU."""

    wall: float
    cpu: float


def main(
    files: Annotated[int, typer.Option(help="How many files are open.")] = 1000,
    rounds: Annotated[int, typer.Option(help="Cold starts of each way; the median is told.")] = 3,
) -> None:
    """Start a stand, open files on it, list them by each way, and print the ratios."""
    with _stand() as stand, _open(stand, files):
        ways = {
            "this package": _lister(stand, "rpc", 0),
            "py4j over pyspark's jars": _lister(stand, "py4j", 0),
            "hdfs dfsadmin": _dfsadmin(stand),
        }
        cold = {name: _median([_cold(program, files) for _ in range(rounds)]) for name, program in ways.items()}
        warm = {name: _warm(_lister(stand, way, _WARM)) for name, way in zip(ways, ("rpc", "py4j"), strict=False)}
    _print(f"{files} open files, cold: median of {rounds} processes", cold)
    _print(f"{files} open files, warm: mean of {_WARM} listings", warm)


@contextmanager
def _stand() -> Iterator[Stand]:
    with tempfile.TemporaryDirectory(prefix="kstream-benchmark-") as root:
        stand = Stand.up(StandPlan(Path(root), frozenset({Feature.HA})))
        try:
            yield stand
        finally:
            stand.down()


@contextmanager
def _open(stand: Stand, count: int) -> Iterator[list[FileWriter]]:
    os.environ["KRB5_CONFIG"] = str(stand.krb5_conf)
    client = Client(
        stand.default_fs,
        config_dir=str(stand.conf_dir),
        kerberos_principal=stand.principal("streamer"),
        kerberos_keytab=str(stand.keytab("streamer")),
    )
    # Bound to a name: what nobody refers to does not stay open.
    writers = [client.create(f"/user/{getuser()}/open/part-{number:05}.in-progress") for number in range(count)]
    yield writers


@dataclass(frozen=True)
class Program:
    command: list[str]
    environment: dict[str, str]

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command, env=self.environment, stdout=subprocess.PIPE, text=True)


def _lister(stand: Stand, way: str, times: int) -> Program:
    where = (stand.conf_dir, stand.principal("hdfs"), stand.keytab("hdfs"), stand.krb5_conf)
    script = Path(__file__).with_name("listers.py")
    return Program([sys.executable, str(script), way, *map(str, where), str(times)], dict(os.environ))


def _dfsadmin(stand: Stand) -> Program:
    java = hadoop(record.read_site(stand.root), stand.conf_dir, "benchmark")
    return Program([*java, _DFSADMIN, "-listOpenFiles"], stand.client_env("hdfs"))


def _cold(program: Program, files: int) -> Cost:
    begun = time.perf_counter()
    process = program.start()
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    found = json.loads(said)["count"] if said.startswith("{") else said.count(".in-progress")
    if found != files:
        raise RuntimeError(f"{found} of {files} open files were listed by {program.command}")
    return Cost(wall, usage.ru_utime + usage.ru_stime)


def _warm(program: Program) -> Cost:
    said = json.loads(program.start().communicate()[0])
    return Cost(said["wall"], said["cpu"])


def _median(costs: list[Cost]) -> Cost:
    columns = ([getattr(cost, name) for cost in costs] for name in ("wall", "cpu"))
    return Cost(*map(statistics.median, columns))


def _print(title: str, costs: dict[str, Cost]) -> None:
    table = Table("", "seconds", "ratio", "CPU seconds", "ratio", title=title)
    best, *_ = costs.values()
    for name, cost in costs.items():
        ratios = f"{cost.wall / best.wall:.1f}", f"{cost.cpu / best.cpu:.1f}"
        table.add_row(name, f"{cost.wall:.3f}", ratios[0], f"{cost.cpu:.3f}", ratios[1])
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
