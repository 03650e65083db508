"""Evidence of a stall: three thread dumps of what runs, in words, and the ends of its logs. It changes nothing.

No signal is sent for a dump: YARN's OUTPUT_THREAD_DUMP is a SIGQUIT to the container's whole process group, and from
JDK 20 on (JDK-8234262) a JVM's child, such as a driver's Python, no longer has it blocked and dies of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from airflow_kstream.clients.spark_pages import SparkPages
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.logs.thread_dump import SparkProcess, ThreadDump
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.policy.streams.pulse.hanging import Hanging, Share, hanging, place_of, runs_others, stuck
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.pulse.kept_evidence import containers_of, folder_of, keep, read_logs

# Seconds between two dumps, and that one round of them may take.
_APART, _ROUND = 10.0, 10.0
_ROUNDS = 3
# A round asks so many executors at most, the busiest first, and keeps so many bytes.
_EXECUTORS, _MOST_OF_A_ROUND = 20, 1 << 20


@dataclass
class _Taken:
    """The answers: dumps and Spark's counts of each round, logs by their file's name, and the errors of the rest."""

    rounds: list[list[ThreadDump]] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    share: Share | None = None
    undumped: set[str] = field(default_factory=set)
    logs: Mapping[str, str] = field(default_factory=dict)
    missing: list[KstreamError] = field(default_factory=list)

    @property
    def processes(self) -> tuple[SparkProcess, ...]:
        return tuple(dump.process for dump in self.rounds[-1]) if self.rounds else ()


@dataclass(frozen=True)
class Evidence:
    """The threads of an application that hang, and the folder on HDFS where the evidence lies.

    `dumped` is whether the threads of the driver and of all busy executors were seen often enough to tell. `missing` is
    what could not be taken, and why. `progress` is what Spark counted at the end, `moves` whether that was more than at
    the beginning. `starves` is whether a stage is active, and no executor runs a task of it. `of_query` is what hangs
    of the asked query alone, None where the application runs no other; then the counts are that query's, too.
    """

    application: str
    generation: int
    folder: str
    hanging: tuple[Hanging, ...]
    dumped: bool
    missing: tuple[str, ...]
    progress: str = ""
    moves: bool = False
    starves: bool = False
    of_query: tuple[Hanging, ...] | None = None

    @property
    def stuck(self) -> tuple[Hanging, ...]:
        """Return what shows that the batch itself stands still, not that its driver waits for tasks or executors."""
        return () if self.starves else stuck(self.hanging if self.of_query is None else self.of_query)

    def to_json(self) -> dict[str, Any]:
        hung = [
            {
                "process": str(each.process),
                "what": each.what,
                "where": place_of(each.thread),
                "frames": each.thread.frames,
            }
            for each in self.hanging
        ]
        return {
            "application": self.application,
            "generation": self.generation,
            "folder": self.folder,
            "hanging": hung,
            "dumped": self.dumped,
            "missing": self.missing,
            "moves": self.moves,
        }


def take_evidence(
    run: StreamRun, app: Application, generation: int, tell: Callable[[str], None], query: str = ""
) -> Evidence:
    """Dump the threads of the driver and of busy executors three times, and keep them with the ends of their logs.

    Takes half a minute, and at most 80 seconds. What one source lacks is no reason to leave out another. With the id of
    a `query`, what shows whether its batch moves is its own, and not that of other queries of the application.

    Raises NotFound: when the application doesn't run, or not yet, which passes. Raises Denied, Unavailable: when
    nothing at all could be taken, or when nothing can be kept.
    """
    if app.state is not ApplicationState.RUNNING:
        nothing = "has not begun to run" if app.alive else "runs no longer"
        not_running = NotFound(f"{app.id} is {app.state}: it {nothing}", tried=f"take evidence of {run.spec.name}")
        raise not_running.passing(app.alive)
    taken = _Taken()
    _dump(run, app, taken, tell, query)
    still = hanging(taken.rounds)
    taken.logs, unread = read_logs(run, _logged(app, taken, still))
    taken.missing += unread
    if taken.missing and not (taken.rounds or taken.logs):
        raise taken.missing[0]
    missing = tuple(dict.fromkeys(str(error) for error in taken.missing))
    found = Evidence(
        app.id,
        generation,
        folder_of(run.id, generation),
        still,
        dumped=len(taken.rounds) > 1 and not taken.undumped,
        missing=missing,
        progress=taken.counts[-1] if taken.counts else "",
        moves=len(set(taken.counts)) > 1,
        starves=_starves(taken),
        of_query=hanging(taken.rounds, taken.share) if taken.share else None,
    )
    keep(run, generation, _files(found, taken))
    return found


def _starves(taken: _Taken) -> bool:
    active = bool(taken.counts) and any(line.startswith("stage ") for line in taken.counts[-1].splitlines())
    return active and bool(taken.rounds) and all(process.tasks is None for process in taken.processes)


def _dump(run: StreamRun, app: Application, taken: _Taken, tell: Callable[[str], None], query: str) -> None:
    for number in range(_ROUNDS):
        began = time.monotonic()
        try:
            taken.rounds.append(_one_round(run, app, taken, query))
        except KstreamError as error:
            taken.missing.append(error)
            return
        tell(f"took thread dump {number + 1} of {_ROUNDS} of {app.id}: {len(taken.rounds[-1])} processes")
        if number + 1 < _ROUNDS:
            time.sleep(max(began + _APART - time.monotonic(), 0.0))


def _one_round(run: StreamRun, app: Application, taken: _Taken, query: str) -> list[ThreadDump]:
    session = run.session
    server = session.yarn.active()
    dumps: list[ThreadDump] = []
    with closing(SparkPages(server, app.id, session.identity, session.cluster.tls, _ROUND)) as pages:
        for number, process in enumerate(_asked(pages.processes())):
            try:
                dumps.append(pages.threads(process))
            except KstreamError as error:
                taken.missing.append(error)
                taken.undumped.add(process.id)
            if number == 0:
                # Right after the driver's threads, which tell whether it runs other queries.
                taken.counts.append(_counted(pages, dumps, taken, query))
    return dumps


def _counted(pages: SparkPages, dumps: Sequence[ThreadDump], taken: _Taken, query: str) -> str:
    if not query or not runs_others(dumps, query):
        return pages.progress()
    counts, stages = pages.progress_of(query)
    taken.share = Share(query, stages | (taken.share.stages if taken.share else frozenset()))
    return counts


def _asked(processes: Iterable[SparkProcess]) -> list[SparkProcess]:
    """Return the driver, and the executors that run most tasks."""
    busiest = sorted(processes, key=lambda process: (process.tasks is not None, -(process.tasks or 0), process.id))
    return [process for process in busiest[: _EXECUTORS + 1] if process.tasks != 0]


def _logged(app: Application, taken: _Taken, still: Sequence[Hanging]) -> Mapping[str, LoggedContainer]:
    hung = {each.process.id for each in still}
    return containers_of(app, sorted(taken.processes, key=lambda process: process.id not in hung))


def _files(found: Evidence, taken: _Taken) -> Mapping[str, str]:
    dumps = {
        f"threads-{number}.txt": without_secrets("\n".join(line for dump in dumps for line in dump.lines()))
        for number, dumps in enumerate(taken.rounds, start=1)
    }
    words = [*(str(each) for each in found.hanging), *(f"not taken: {why}" for why in found.missing)]
    bounded = {name: text[:_MOST_OF_A_ROUND] for name, text in dumps.items()}
    counts = {"progress.txt": "\n\n".join([*taken.counts, ""])}
    return {"summary.txt": "\n".join([found.application, *words, ""]), **counts, **bounded, **taken.logs}
