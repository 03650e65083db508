"""Recovering files of killed writers: `kstream leases recover` as it is typed, and Hadoop's own tool in a loop."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from statistics import mean

from benchmarks.ground import HOME, Environment
from benchmarks.programs import Program, hadoop_program, ours
from benchmarks.report import Figure
from tests.cluster.cli import cluster_file
from tests.cluster.writers import leave_open, pattern
from tests.cluster.writers.hadoop_says import content, open_files

_SIZE = 1000
# The minicluster's DataNode bears no more blocks of one writer at once.
_BY_ONE_WRITER = 1000
_READ_AGAIN = 20
_DEBUG = "org.apache.hadoop.hdfs.tools.DebugAdmin"
# From the kill until the NameNode counts the holder as dead (LEASE_SOFTLIMIT_PERIOD), and a margin.
_SOFT_LIMIT = 65.0
# From a first look until a second one settles that a file does not grow.
_SETTLED = 12.0
_USERS = {"streamer": "the owner", "hdfs": "a superuser"}


@dataclass(frozen=True)
class _Case:
    """One command: so many files of so many writers, as whom, within which limits, seen by an earlier run or not."""

    count: int
    writers: int
    who: str
    limits: str
    seen: bool = False

    @property
    def folder(self) -> str:
        return f"{HOME}/typed/{self.count}-{self.writers}-{self.who}-{self.limits}-{'seen' if self.seen else 'unseen'}"

    @property
    def words(self) -> str:
        seen = ", looked at by an earlier run" if self.seen else ""
        return f"kstream leases recover, {_USERS[self.who]}, {self.limits} limits{seen}"

    @property
    def task(self) -> str:
        writers = "a killed writer" if self.writers == 1 else f"{self.writers} killed writers"
        return f"recover {self.count:,} files of {writers}"


def recovering(ground: Environment, counts: Sequence[int], sample: int, only: int | None = None) -> Iterator[Figure]:
    """Measure, for each count, files with some flushed bytes whose writers were killed, from the typed command on.

    The command finds them, looks twice, probes their holders, recovers them and records it. All files are left first,
    so that the minute until a holder counts as dead is waited for once. `only` is how many commands, None for all.
    """
    costs = _by_hand(ground, sample)
    cases = [case for count in counts for case in _cases(count)[:only]]
    for case in cases:
        _leave(ground, case)
    died = time.monotonic()
    for case in cases:
        if case.seen:
            _kstream(ground, "list", case).run()
    rest = max(_SETTLED, died + _SOFT_LIMIT - time.monotonic())
    ground.doing("waiting until the NameNode takes the writers for dead", partial(time.sleep, rest))
    for task in dict.fromkeys(case.task for case in cases):
        of_task = [case for case in cases if case.task == task]
        yield Figure(
            task=task,
            backend="loop of hdfs debug recoverLease -retries 3",
            seconds=mean(costs) * of_task[0].count,
            files=of_task[0].count,
            extrapolated=sample,
        )
        yield from (_typed(ground, case) for case in of_task)


def _cases(count: int) -> list[_Case]:
    """Return the commands for this many files; the last is a scheduled task's, which earlier ones saw files for."""
    few = -(-count // _BY_ONE_WRITER)
    cases = [
        _Case(count, writers, who, limits)
        for writers in sorted({few, min(50, count)})
        for who in _USERS
        for limits in ("default", "unlimited")
    ]
    return [*cases, _Case(count, few, "streamer", "default", seen=True)]


def _by_hand(ground: Environment, sample: int) -> list[float]:
    folder = f"{HOME}/by-hand"
    paths = [_path(folder, number) for number in range(sample)]
    leave_open(ground.minicluster, paths, _SIZE)
    program = partial(hadoop_program, ground.minicluster, _DEBUG, "recoverLease", "-retries", "3", "-path")
    costs = [program(path).run().cost.wall for path in ground.each("hdfs debug recoverLease", paths)]
    _verify(ground, folder, sample)
    return costs


def _typed(ground: Environment, case: _Case) -> Figure:
    program = _kstream(ground, "recover", case, "--limits", case.limits, "--json")
    began = datetime.now(UTC)
    ran = ground.doing(f"{case.task}: {case.words}", program.run)
    recoveries = json.loads(ran.said)[0]["recoveries"]
    closed = [row for row in recoveries if row["outcome"] == "closed"]
    if len(closed) != case.count:
        raise RuntimeError(f"of {case.count} files below {case.folder} only {len(closed)} were closed")
    _verify(ground, case.folder, case.count)
    last = max(datetime.fromisoformat(row["started"]).timestamp() + row["seconds"] for row in closed if row["started"])
    return Figure(
        task=case.task,
        backend=case.words,
        seconds=ran.cost.wall,
        files=case.count,
        cpu=ran.cost.cpu,
        peak=ran.peak,
        note=f"the last was closed after {last - began.timestamp():.1f} s; {_parts(began, closed)}",
    )


def _parts(began: datetime, closed: Sequence[dict[str, object]]) -> str:
    first = min(datetime.fromisoformat(str(row["started"])) for row in closed if row["started"])
    return f"the first was requested after {(first - began).total_seconds():.1f} s"


def _kstream(ground: Environment, verb: str, case: _Case, *words: str) -> Program:
    root = ground.minicluster.root / case.who
    root.mkdir(exist_ok=True)
    typed = [sys.executable, "-c", "from airflow_kstream.cli import main; main()", "leases", verb, case.folder]
    file = cluster_file(ground.minicluster, case.who, root)
    environment = ours(ground.minicluster, "", case.who).environment
    return Program([*typed, "--min-age", "0s", *words, "--cluster", str(file)], environment)


def _leave(ground: Environment, case: _Case) -> None:
    """Leave the files open, each writer's share after the other's."""
    share = case.count // case.writers
    for begin in ground.each(f"leaving {case.count:,} files open", range(0, case.count, share)):
        numbers = range(begin, min(begin + share, case.count))
        leave_open(ground.minicluster, [_path(case.folder, number) for number in numbers], _SIZE)


def _path(folder: str, number: int) -> str:
    return f"{folder}/part-{number:05}.in-progress"


def _verify(ground: Environment, folder: str, count: int) -> None:
    """Check with Hadoop's own tools that no file is open, and that a sample has every flushed byte."""
    still = ground.doing("checking that all are closed", lambda: open_files(ground.minicluster, folder))
    if still:
        raise RuntimeError(f"{len(still)} of {count} files below {folder} are still open")
    for number in range(0, count, max(1, count // _READ_AGAIN)):
        if content(ground.minicluster, _path(folder, number)) != pattern(_SIZE):
            raise RuntimeError(f"bytes of {_path(folder, number)} are lost")
