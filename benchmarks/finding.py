"""Finding a few open files among many closed ones, and a check that finds none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

from benchmarks.ground import HOME, Environment
from benchmarks.namespace import Lake, fill
from benchmarks.programs import Program, Ran, hadoop_program, ours
from benchmarks.report import Figure
from tests.live.writers import native_writer

_OPEN = 100
_ROUNDS = 3
_FSCK = "org.apache.hadoop.hdfs.tools.DFSck"
_DFSADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"


def finding(ground: Environment, files: int) -> Iterator[Figure]:
    """Measure the superuser's list and a walk over the tree, with Hadoop's tool and with this package."""
    lake = _filled(ground, files)
    task = f"find {_OPEN} open among {files:,} files"
    with native_writer(ground.minicluster, _spread(lake), 1000):
        yield _fsck(ground, lake, task)
        folder = {"folder": lake.path}
        scanned = _median(ground, ours(ground.minicluster, "scan", **folder), _found)
        yield _of(task, "this package, superuser: the whole scan", scanned)
        listed = _median(ground, ours(ground.minicluster, "list", **folder), _found)
        yield _of(task, "this package, superuser: listOpenFiles", listed)
        yield Figure(task, "  the same, once connected", listed.json()["warm"])
        small = f"{lake.path}/{lake.folders[0]}"
        walked = _median(ground, ours(ground.minicluster, "walk", "streamer", small=small, **folder), _found)
        grown = f"grew by {walked.json()['grown']:.1f} MB"
        yield _of(task, "this package, ordinary user: fsck, streamed", walked, grown)


def checking(ground: Environment) -> Iterator[Figure]:
    """Measure the cost of a check when no file is open."""
    task = "a check that finds nothing"
    tools = {"hdfs dfsadmin -listOpenFiles": (_DFSADMIN, "-listOpenFiles"), "hdfs fsck": (_FSCK, HOME, "-openforwrite")}
    for name, (main_class, *arguments) in tools.items():
        ran = _median(ground, hadoop_program(ground.minicluster, main_class, *arguments), _found_none)
        yield Figure(task, name, ran.cost.wall, cpu=ran.cost.cpu, note="a JVM")
    ran = _median(ground, ours(ground.minicluster, "check", folder=HOME), _found_none_by_us)
    said = ran.json()
    yield Figure(
        task, "this package: the sensor, beyond Airflow's start", said["seconds"], cpu=said["cpu"], peak=said["peak"],
        note=f"no JVM; {said['imports']:.2f} s of the CPU are imports; Airflow's {said['airflow']:.2f} s are not in it",
    )  # fmt: skip


def _filled(ground: Environment, files: int) -> Lake:
    lake, begun = Lake(f"{HOME}/lake", files), time.monotonic()
    ground.doing(f"making {files:,} files", lambda: fill(ground.minicluster, lake))
    ground.tell(f"{files:,} files were made in {time.monotonic() - begun:.0f} s")
    return lake


def _spread(lake: Lake) -> list[str]:
    folders = [lake.folders[number * len(lake.folders) // _OPEN] for number in range(_OPEN)]
    return [f"{lake.path}/{folder}/open-{number:03}.avro.tmp" for number, folder in enumerate(folders)]


def _fsck(ground: Environment, lake: Lake, task: str) -> Figure:
    def as_many(ran: Ran) -> bool:
        # Including the open ones and the folder's first file, which all others are copies of.
        total = f"Total files:\t{lake.files + _OPEN + 1}\n"
        return ran.said.count("OPENFORWRITE") == _OPEN and total in ran.said

    ran = _median(ground, hadoop_program(ground.minicluster, _FSCK, lake.path, "-openforwrite"), as_many)
    return Figure(task, "hdfs fsck -openforwrite", ran.cost.wall, cpu=ran.cost.cpu)


def _median(ground: Environment, program: Program, is_right: Callable[[Ran], bool]) -> Ran:
    """Return the median of three runs."""
    runs = [program.run() for _ in ground.each(" ".join(program.command[-3:])[:80], range(_ROUNDS))]
    for ran in runs:
        if not is_right(ran):
            raise RuntimeError(f"{program.command} found something else: {ran.said[-1500:]}")
    middle = median(ran.cost.wall for ran in runs)
    return next(ran for ran in runs if ran.cost.wall == middle)


def _of(task: str, backend: str, ran: Ran, note: str = "") -> Figure:
    said = ran.json()
    inside = f"{said['seconds']:.2f} s without the process's start"
    return Figure(
        task, backend, ran.cost.wall, cpu=ran.cost.cpu, peak=said["peak"], note="; ".join(filter(None, (inside, note)))
    )


def _found(ran: Ran) -> bool:
    return (ran.json()["found"],) == (_OPEN,)


def _found_none(ran: Ran) -> bool:
    """Return whether the tool found no file: then dfsadmin ends with its header, and fsck marks no open file."""
    return "OPENFORWRITE" not in ran.said and f"{HOME}/" not in ran.said


def _found_none_by_us(ran: Ran) -> bool:
    said = ran.json()
    return (said["found"], said["children"]) == (0, 0)
