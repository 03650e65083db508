"""Renewing the tickets of many principals: this package in one process against a loop of kinit, in one run.

    python -m benchmarks.tickets --principals 200 --rounds 5

The KDC is on this machine and answers at once; the further away it is, the more it matters that one process requests
several tickets at a time. Both sides log in from the same keytabs and take turns; the result is the median of the
rounds. kinit writes its caches in place; this package syncs its caches to disk and renames them.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from rich.console import Console

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.kerberos.declarations import RenewalPolicy
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.tickets.managed import ManagedTicket
from airflow_kstream.supervise.tickets.renewal import RenewalOutcome, renew_all
from benchmarks.ground import Environment, ground
from benchmarks.report import Figure, save, table

_WIDTH = 150
# Python's audit hook reports every process that it is about to start.
_BEGINNINGS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
_started: list[str] = []
_RENEW, _CHECK = "log in as {count} principals", "check that {count} tickets are fresh"


def main() -> None:
    """Start a minicluster, measure, and print one table."""
    asked = _asked()
    sys.addaudithook(lambda event, _: _started.append(event) if event in _BEGINNINGS else None)
    load = os.getloadavg()[0]
    with ground() as under:
        names = [f"principal{number}" for number in range(asked.principals)]
        under.doing(f"{asked.principals} principals", lambda: under.minicluster.add_principal(*names))
        figures = list(_figures(under, names, asked.rounds))
    caption = f"{os.cpu_count()} cores; load {load:.1f} before, {os.getloadavg()[0]:.1f} after; {asked.rounds} rounds"
    drawn = table(figures, caption)
    Console(width=None if Console().is_terminal else _WIDTH).print(drawn)
    if asked.json:
        save(figures, asked.json)


def _figures(under: Environment, names: Sequence[str], rounds: int) -> Iterator[Figure]:
    folder = under.minicluster.root / "benchmark"
    folder.mkdir(0o700)
    kept = [_kept(under.minicluster, name, folder) for name in names]
    backend: dict[str, Callable[[], None]] = {
        "kinit, one after the other": lambda: _kinit(under.minicluster, names, folder),
        "renew_all, one process": lambda: _ours(kept, RenewalOutcome.ACQUIRED, force=True),
    }
    looking = {
        "klist -s, one after the other": lambda: _klist(kept),
        "renew_all, one process": lambda: _ours(kept, RenewalOutcome.KEPT),
    }
    yield from _compared(under, _RENEW.format(count=len(names)), backend, (len(names), rounds))
    yield from _compared(under, _CHECK.format(count=len(names)), looking, (len(names), rounds))


def _compared(
    under: Environment, task: str, backend: dict[str, Callable[[], None]], size: tuple[int, int]
) -> Iterator[Figure]:
    """Run the sides in turns, so that other load on this machine affects all of them."""
    count, rounds = size
    measured: dict[str, list[tuple[float, float, int]]] = {name: [] for name in backend}
    for _ in under.each(task, range(rounds)):
        for name, work in backend.items():
            measured[name].append(_measured(work))
    for name, runs in measured.items():
        wall, cpu = median(run[0] for run in runs), median(run[1] for run in runs)
        slowest = max(run[0] for run in runs)
        note = f"{runs[-1][2]} processes; slowest round {slowest:.2f} s"
        yield Figure(task, name, wall, count, cpu=cpu, note=note)


def _measured(work: Callable[[], None]) -> tuple[float, float, int]:
    """Return wall-clock and CPU seconds, children included, and the number of processes started."""
    before, processes, began = _cpu(), len(_started), time.perf_counter()
    work()
    return time.perf_counter() - began, _cpu() - before, len(_started) - processes


def _cpu() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def _kept(minicluster: Minicluster, name: str, folder: Path) -> ManagedTicket:
    identity = Identity(minicluster.principal(name), keytab=str(minicluster.keytab(name)))
    return ManagedTicket("minicluster", identity, folder / "ours" / name)


def _ours(kept: Sequence[ManagedTicket], expected: RenewalOutcome, *, force: bool = False) -> None:
    reports = list(renew_all(kept, RenewalPolicy(), force=force))
    wrong = [report for report in reports if report.outcome is not expected]
    if wrong:
        raise SystemExit(f"{len(wrong)} tickets were not {expected}, the first: {wrong[0]}")


def _kinit(minicluster: Minicluster, names: Sequence[str], folder: Path) -> None:
    for name in names:
        cache = f"FILE:{folder}/kinit-{name}"
        _run(["kinit", "-k", "-t", str(minicluster.keytab(name)), "-c", cache, minicluster.principal(name)])


def _klist(kept: Sequence[ManagedTicket]) -> None:
    for each in kept:
        _run(["klist", "-s", "-c", f"FILE:{each.cache}"])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def _asked() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.tickets", description="Tickets of many principals, renewed.")
    parser.add_argument("--principals", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5, help="how often each side does it")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
