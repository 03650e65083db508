"""Recovering files of killed writers: `kstream leases recover` as it is typed, and Hadoop's own tool in a loop."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import product, zip_longest
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.ground import HOME, Environment
from benchmarks.programs import Program, hadoop_program, hdfs_command, ours
from benchmarks.report import Figure
from tests.live.cli import cluster_file
from tests.live.writers import leave_open, pattern
from tests.live.writers.hadoop_says import content, open_files

_SIZE = 1000
_READ_AGAIN = 20
# The minicluster's DataNode bears no more blocks of one writer at once.
_BY_ONE_WRITER = 1000
# In seconds, of a step.
_WORTH_A_WORD = 0.05
_DEBUG = "org.apache.hadoop.hdfs.tools.DebugAdmin"
# From the kill until the NameNode counts the holder as dead (LEASE_SOFTLIMIT_PERIOD), and a margin.
_SOFT_LIMIT = 65.0
USERS = {"owner": "streamer", "superuser": "hdfs"}
LIMITS = ("default", "unlimited")
_WORDS = {"streamer": "the owner", "hdfs": "a superuser"}


@dataclass(frozen=True)
class Plan:
    """The commands that are measured: each count of files by each number of writers, as each user, within each limits.

    `sample` are the files of `hdfs debug recoverLease`, alone and as this package's means; `seconds` is the time after
    which no further command is begun.
    """

    counts: Sequence[int]
    writers: Sequence[int]
    users: Sequence[str]
    limits: Sequence[str]
    sample: int
    seconds: float

    def cases(self) -> list[_Case]:
        """Return the commands. A thousand files are recovered by a scheduled task, too, which has seen them before."""
        return [case for count in self.counts for case in self._of(count)]

    def _of(self, count: int) -> list[_Case]:
        few = -(-count // _BY_ONE_WRITER)
        writers = sorted({min(max(number, few), count) for number in self.writers})
        combined = product(writers, self.users, self.limits)
        cases = [_Case(count, number, USERS[user], limits) for number, user, limits in combined]
        scheduled = (replace(case, seen=True) for case in cases[:1] if case.limits == "default" and few == 1)
        return [*cases, *scheduled]


@dataclass(frozen=True)
class _Case:
    """One command: so many files of so many writers, as whom, within which limits, seen by an earlier run or not."""

    count: int
    writers: int
    who: str
    limits: str
    seen: bool = False
    backend: str = "native"

    @property
    def folder(self) -> str:
        seen = "seen" if self.seen else "unseen"
        return f"{HOME}/typed/{self.count}-{self.writers}-{self.who}-{self.limits}-{seen}-{self.backend}"

    @property
    def words(self) -> str:
        seen = ", looked at by an earlier run" if self.seen else ""
        means = "" if self.backend == "native" else f", --backend {self.backend}"
        return f"kstream leases recover, {_WORDS[self.who]}, {self.limits} limits{seen}{means}"

    @property
    def task(self) -> str:
        writers = "a killed writer" if self.writers == 1 else f"{self.writers} killed writers"
        return f"recover {self.count:,} files of {writers}"


def recovering(ground: Environment, plan: Plan) -> Iterator[Figure]:
    """Measure files with some flushed bytes whose writers were killed, from the typed command on.

    The command finds them, looks twice, probes their holders, recovers them and records it. Each task's files are left
    open right before the task that precedes it is measured: meanwhile their holders come to count as dead, and HDFS
    itself, which closes files after 20 minutes (its hard limit), does not come first.
    """
    until = time.monotonic() + plan.seconds
    costs = _by_hand(ground, plan.sample)
    cases = [*plan.cases(), _Case(plan.sample, 1, "streamer", "default", backend="hdfs-debug")]
    tasks = [[case for case in cases if case.task == task] for task in dict.fromkeys(case.task for case in cases)]
    died = _leave(ground, tasks[0])
    for task, later in zip_longest(tasks, tasks[1:]):
        dead = died + _SOFT_LIMIT
        if later:
            died = _leave(ground, later)
        rest = max(0.0, dead - time.monotonic())
        ground.doing("waiting until the NameNode takes the writers for dead", partial(time.sleep, rest))
        yield _loop(task[0].task, task[0].count, costs)
        for case in task:
            if time.monotonic() < until:
                yield _typed(ground, case)
            else:
                ground.tell(f"{case.task}: {case.words}: not measured, the time is over")


def _loop(task: str, count: int, costs: Sequence[float]) -> Figure:
    return Figure(
        task=task,
        backend="loop of hdfs debug recoverLease -retries 3",
        seconds=mean(costs) * count,
        files=count,
        extrapolated=len(costs) if len(costs) < count else None,
    )


def _by_hand(ground: Environment, sample: int) -> list[float]:
    folder = f"{HOME}/by-hand"
    paths = [_path(folder, number) for number in range(sample)]
    leave_open(ground.minicluster, paths, _SIZE)
    program = partial(hadoop_program, ground.minicluster, _DEBUG, "recoverLease", "-retries", "3", "-path")
    costs = [program(path).run().cost.wall for path in ground.each("hdfs debug recoverLease", paths)]
    _verify(ground, folder, sample)
    return costs


def _typed(ground: Environment, case: _Case) -> Figure:
    timeline = ground.minicluster.root / "timeline.json"
    words = ("--limits", case.limits, "--backend", case.backend, "--json")
    program = _kstream(ground, "recover", case, *words, timeline=timeline)
    load, began = os.getloadavg()[0], datetime.now(UTC)
    ran = ground.doing(f"{case.task}: {case.words}", program.run)
    recoveries = json.loads(ran.said)[0]["recoveries"]
    closed = [row for row in recoveries if row["outcome"] == "closed"]
    if len(closed) != case.count:
        raise RuntimeError(f"of {case.count} files below {case.folder} only {len(closed)} were closed")
    _verify(ground, case.folder, case.count)
    return Figure(
        task=case.task,
        backend=case.words,
        seconds=ran.cost.wall,
        files=case.count,
        cpu=ran.cost.cpu,
        peak=ran.peak,
        note=f"load {load:.1f}; {_moments(began, closed)}; {_steps(json.loads(timeline.read_text()))}",
    )


def _moments(began: datetime, closed: Sequence[dict[str, Any]]) -> str:
    """Say when the first request was sent, and when the last file was closed, after the command's start."""
    requested = [row for row in closed if row["started"]]
    if not requested:
        return "the probe's recovery closed all"
    started = [(datetime.fromisoformat(row["started"]) - began).total_seconds() for row in requested]
    last = max(after + row["seconds"] for after, row in zip(started, requested, strict=True))
    return f"first requested after {min(started):.1f} s, last closed after {last:.1f} s"


def _steps(steps: Mapping[str, float]) -> str:
    longest = sorted(steps.items(), key=lambda step: -step[1])
    return ", ".join(f"{name} {seconds:.1f}" for name, seconds in longest if seconds >= _WORTH_A_WORD)


def _kstream(ground: Environment, verb: str, case: _Case, *words: str, timeline: Path = Path(os.devnull)) -> Program:
    root = ground.minicluster.root / case.who
    root.mkdir(exist_ok=True)
    typed = [sys.executable, "-m", "benchmarks.timeline", str(timeline), "leases", verb, case.folder]
    file = cluster_file(ground.minicluster, case.who, root)
    environment = ours(ground.minicluster, "", case.who).environment
    environment["PATH"] = os.pathsep.join([str(hdfs_command(ground.minicluster)), environment["PATH"]])
    return Program([*typed, "--min-age", "0s", *words, "--cluster", str(file)], environment)


def _leave(ground: Environment, cases: Sequence[_Case]) -> float:
    """Leave the files of these commands open, and return when the last writer died, by the monotonic clock."""
    for case in cases:
        # Each writer's share after the other's.
        share = -(-case.count // case.writers)
        for begin in ground.each(f"leaving {case.count:,} files open", range(0, case.count, share)):
            numbers = range(begin, min(begin + share, case.count))
            leave_open(ground.minicluster, [_path(case.folder, number) for number in numbers], _SIZE)
    for case in cases:
        if case.seen:
            _kstream(ground, "list", case).run()
    return time.monotonic()


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
