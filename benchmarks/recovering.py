"""Recovering files of killed writers, with this package and with Hadoop's own tool in a loop."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from statistics import mean

from benchmarks.ground import HOME, Environment
from benchmarks.programs import Said, hadoop_program, ours
from benchmarks.report import Figure
from tests.cluster.writers import leave_open, pattern
from tests.cluster.writers.hadoop_says import content, open_files

_SIZE = 1000
_BLOCKS_AT_ONCE = 1000
_READ_AGAIN = 20
_DEBUG = "org.apache.hadoop.hdfs.tools.DebugAdmin"
# From the kill until the NameNode counts the holder as dead (LEASE_SOFTLIMIT_PERIOD), and a margin.
_SOFT_LIMIT = 65.0


def recovering(ground: Environment, counts: Sequence[int], sample: int, *, judged: bool) -> Iterator[Figure]:
    """Measure, for each count, files with some flushed bytes whose writers were killed.

    With `judged`, measure the first count a third time with everything that the operator and the command do.
    """
    first = _left(ground, "judged", counts[0]) if judged else ""
    killed = time.monotonic()
    costs = _by_hand(ground, sample)
    for count in counts:
        yield Figure(
            task=f"recover {count:,} files of a killed writer",
            backend="loop of hdfs debug recoverLease -retries 3",
            seconds=mean(costs) * count,
            files=count,
            extrapolated=sample,
        )
        for name, unlimited in (("default limits", False), ("no limits", True)):
            rounds = _rounds(count)
            waits = [ground.minicluster.plan.heartbeat * number / rounds for number in range(rounds)]
            yield _in_the_middle([_left_and_recovered(ground, count, name, unlimited, wait) for wait in waits])
        if judged and count == counts[0]:
            rest = max(0.0, killed + _SOFT_LIMIT - time.monotonic())
            ground.doing("waiting until the NameNode takes the first writer for dead", partial(time.sleep, rest))
            yield _by_us(ground, first, count, "no limits, the holder asked first", "rescue", unlimited=True)


def _rounds(count: int) -> int:
    """Run several rounds. A recovery begins with the DataNode's next heartbeat, a large part of a small one's time.

    A round ends just after a heartbeat, so without a pause every round would begin at the same phase of it.
    """
    return 3 if count <= _BLOCKS_AT_ONCE else 1


def _left_and_recovered(ground: Environment, count: int, name: str, unlimited: bool, wait: timedelta) -> Figure:
    folder = _left(ground, f"{count}-{name.replace(' ', '-')}-{time.time_ns()}", count)
    time.sleep(wait.total_seconds())
    return _by_us(ground, folder, count, name, "recover", unlimited=unlimited)


def _in_the_middle(figures: list[Figure]) -> Figure:
    """Return the median figure; the range is in its note."""
    ordered = sorted(figures, key=lambda figure: figure.seconds)
    middle = ordered[len(ordered) // 2]
    if len(ordered) == 1:
        return middle
    spread = f"median of {len(ordered)}, {ordered[0].seconds:.2f} to {ordered[-1].seconds:.2f} s"
    return replace(middle, note=f"{spread}; {middle.note}")


def _by_hand(ground: Environment, sample: int) -> list[float]:
    folder = _left(ground, "by-hand", sample)
    paths = [_path(folder, number) for number in range(sample)]
    program = partial(hadoop_program, ground.minicluster, _DEBUG, "recoverLease", "-retries", "3", "-path")
    costs = [program(path).run().cost.wall for path in ground.each("hdfs debug recoverLease", paths)]
    _verify(ground, folder, sample)
    return costs


def _by_us(ground: Environment, folder: str, count: int, name: str, verb: str, *, unlimited: bool) -> Figure:
    program = ours(ground.minicluster, verb, folder=folder, unlimited=unlimited)
    ran = ground.doing(f"recovering {count:,} files: {name}", program.run)
    said = ran.json()
    if said["outcomes"] != {"closed": count}:
        raise RuntimeError(f"of {count} files below {folder} came {said}")
    _verify(ground, folder, count)
    return Figure(
        task=f"recover {count:,} files of a killed writer",
        backend=f"this package, {name}",
        seconds=ran.cost.wall,
        files=count,
        cpu=ran.cost.cpu,
        peak=said["peak"],
        note=_note(said),
    )


def _note(said: Said) -> str:
    if "settle" in said:
        return f"scanned twice and judged; {said['settle']:.0f} s between the scans are in it"
    return f"{said['seconds']:.1f} s without the process's start, the last was closed after {said['closed']:.1f} s"


def _left(ground: Environment, name: str, count: int) -> str:
    """Make a folder with `count` open files whose writers were killed."""
    folder = f"{HOME}/{name}"
    parts = range(0, count, _BLOCKS_AT_ONCE)
    for begin in ground.each(f"leaving {count:,} files open", parts):
        numbers = range(begin, min(begin + _BLOCKS_AT_ONCE, count))
        leave_open(ground.minicluster, [_path(folder, number) for number in numbers], _SIZE)
    return folder


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
