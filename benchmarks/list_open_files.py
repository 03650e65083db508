"""Three ways to list the open files of a NameNode, in one run on a minicluster: why the RPC is hand-written.

    python -m benchmarks.list_open_files --files 1000

A cold listing is a process of its own, including start and login; a warm one comes later in the same process. CPU
seconds are those of the process and all its children, JVMs included. JVMs start as the minicluster's do, with the first
compiler only and dfsadmin with a class archive too: those of a Hadoop installation take longer.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from hdfs_native import Client, FileWriter
from rich.console import Console
from rich.table import Table

from airflow_kstream.minicluster import Minicluster
from benchmarks.ground import HOME, ground
from benchmarks.programs import Cost, Program, hadoop_program

_WARM = 20
_DFSADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"


def main(
    files: Annotated[int, typer.Option(help="How many files are open.")] = 1000,
    rounds: Annotated[int, typer.Option(help="Cold starts of each way; the result is their median.")] = 3,
) -> None:
    """Start a minicluster, open files on it, list them by each way, and print the ratios."""
    with ground() as under, _open(under.minicluster, files):
        minicluster = under.minicluster
        ways = {
            "this package": _lister(minicluster, "rpc", 0),
            "py4j over pyspark's jars": _lister(minicluster, "py4j", 0),
            "hdfs dfsadmin": hadoop_program(minicluster, _DFSADMIN, "-listOpenFiles"),
        }
        cold = {
            name: _median([_cold(program, files) for _ in under.each(name, range(rounds))])
            for name, program in ways.items()
        }
        warm = {name: _warm(_lister(minicluster, way, _WARM)) for name, way in zip(ways, ("rpc", "py4j"), strict=False)}
    _print(f"{files} open files, cold: median of {rounds} processes", cold)
    _print(f"{files} open files, warm: mean of {_WARM} listings", warm)


@contextmanager
def _open(minicluster: Minicluster, count: int) -> Iterator[list[FileWriter]]:
    client = Client(
        minicluster.default_fs,
        config_dir=str(minicluster.conf_dir),
        kerberos_principal=minicluster.principal("streamer"),
        kerberos_keytab=str(minicluster.keytab("streamer")),
    )
    # Bound to a name: without a reference they would be closed.
    writers = [client.create(f"{HOME}/open/part-{number:05}.in-progress") for number in range(count)]
    yield writers


def _lister(minicluster: Minicluster, way: str, times: int) -> Program:
    where = (minicluster.conf_dir, minicluster.principal("hdfs"), minicluster.keytab("hdfs"), minicluster.krb5_conf)
    return Program([sys.executable, "-m", "benchmarks.listers", way, *map(str, where), str(times)], dict(os.environ))


def _cold(program: Program, files: int) -> Cost:
    ran = program.run()
    found = ran.json()["count"] if ran.said.startswith("{") else ran.said.count(".in-progress")
    if found != files:
        raise RuntimeError(f"{found} of {files} open files were listed by {program.command}")
    return ran.cost


def _warm(program: Program) -> Cost:
    said = program.run().json()
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
