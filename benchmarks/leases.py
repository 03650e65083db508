"""Finding and recovering open files, with this package and with existing tools, measured in one run on a minicluster.

    python -m benchmarks.leases --files 1000 10000 --namespace 1000000 --slow-sample 20
    python -m benchmarks.leases --files 10000 --writers 1 --as owner --limits unlimited --namespace 0

Every measurement is of a whole process, from start to end. The minicluster is one machine: its DataNode answers at
once, and Hadoop's JVMs start faster than those of a real installation, since they find their classes in an archive. So
the figures flatter Hadoop's tools.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain
from pathlib import Path

from rich.console import Console

from benchmarks.finding import checking, finding
from benchmarks.ground import Environment, ground
from benchmarks.recovering import LIMITS, USERS, Plan, recovering
from benchmarks.report import Figure, save, table

# The width without a terminal.
_WIDTH = 190


def main() -> None:
    """Start a minicluster, measure, and print one table."""
    asked = _asked()
    load = os.getloadavg()[0]
    with ground(timedelta(seconds=asked.heartbeat)) as under:
        plan = Plan(asked.files, asked.writers, asked.users, asked.limits, asked.slow_sample, 60 * asked.minutes)
        figures = []
        for figure in chain(recovering(under, plan), _searching(under, asked.namespace)):
            # So a run that is interrupted after ten minutes has printed its figures so far.
            cost = "" if figure.peak is None else f", {figure.cpu or 0:.1f} s of CPU, {figure.peak:.0f} MB"
            under.tell(f"{figure.task}: {figure.backend}: {figure.seconds:.3f} s{cost} {figure.note}".rstrip())
            figures.append(figure)
    caption = (
        f"{os.cpu_count()} cores; load {load:.1f} before, {os.getloadavg()[0]:.1f} after; heartbeat "
        f"{asked.heartbeat} s; the closed files are empty, which is fsck's best case"
    )
    Console(width=None if Console().is_terminal else _WIDTH).print(table(figures, caption))
    if asked.json:
        save(figures, asked.json)


def _searching(under: Environment, namespace: int) -> Iterator[Figure]:
    return chain(checking(under), finding(under, namespace)) if namespace else iter(())


def _asked() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.leases", description="Open files, found and recovered.")
    parser.add_argument("--files", type=int, nargs="+", default=[1000, 10_000], help="how many are recovered")
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 50], help="by how many killed writers")
    parser.add_argument("--as", dest="users", nargs="+", choices=[*USERS], default=[*USERS], help="by whom")
    parser.add_argument("--limits", nargs="+", choices=LIMITS, default=LIMITS, help="within which limits")
    parser.add_argument("--minutes", type=float, default=60, help="after which no further recovery is begun")
    parser.add_argument(
        "--namespace", type=int, default=1_000_000, help="among how many the open ones are; 0 leaves the search out"
    )
    parser.add_argument("--slow-sample", type=int, default=20, help="files for the slow tool; the rest is extrapolated")
    parser.add_argument("--heartbeat", type=int, default=3, help="the DataNode's, in seconds; Hadoop's default is 3")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
