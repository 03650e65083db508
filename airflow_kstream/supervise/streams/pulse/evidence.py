"""Evidence of a stall: three thread dumps of what runs, in words, and the ends of its logs. It changes nothing.

No signal is sent for a dump: YARN's OUTPUT_THREAD_DUMP is a SIGQUIT to the container's whole process group, and from
JDK 20 on (JDK-8234262) a JVM's child, such as a driver's Python, no longer has it blocked and dies of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.logs.container_log import DumpRound, LoggedContainer, Process, Stillness
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.supervise.streams.folder.engine import Examiner
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.pulse.kept_evidence import containers_of, folder_of, keep, read_logs

# Seconds between the beginnings of two rounds of dumps.
_APART = 10.0
_ROUNDS = 3
# In bytes.
_MOST_OF_A_ROUND = 1 << 20


@dataclass
class _Taken:
    """The answers: rounds of dumps, logs by their file's name, and the errors of the rest."""

    rounds: list[DumpRound] = field(default_factory=list)
    logs: Mapping[str, str] = field(default_factory=dict)
    missing: list[KstreamError] = field(default_factory=list)

    @property
    def processes(self) -> tuple[Process, ...]:
        return tuple(dump.process for dump in self.rounds[-1].dumps) if self.rounds else ()

    @property
    def counts(self) -> list[str]:
        return [each.counts for each in self.rounds]


@dataclass(frozen=True)
class Evidence:
    """The threads of an application that stood still, and the folder on HDFS where the evidence lies.

    `dumped` is whether the threads of the processes that work were seen often enough to tell, and the engine has no
    doubt. `missing` is what could not be taken, and why. `progress` is what the engine counted at the end, `moves`
    whether that was more than at the beginning.
    """

    application: str
    generation: int
    folder: str
    still: Stillness
    dumped: bool
    missing: tuple[str, ...]
    progress: str = ""
    moves: bool = False

    def doubts(self) -> Iterator[str]:
        """Yield what could not be taken, and what it leaves open."""
        yield from (f"not taken: {why}" for why in self.missing)
        if self.still.doubt:
            yield f"whether it hangs is open: {self.still.doubt}"

    def to_json(self) -> dict[str, Any]:
        hung = [
            {"process": str(each.process), "what": each.what, "where": each.where, "frames": each.thread.frames}
            for each in self.still.hanging
        ]
        return {
            "application": self.application,
            "generation": self.generation,
            "folder": self.folder,
            "hanging": hung,
            "dumped": self.dumped,
            "missing": self.missing,
            "doubt": self.still.doubt,
            "moves": self.moves,
        }


def take_evidence(
    run: StreamRun, app: Application, generation: int, tell: Callable[[str], None], query: str = ""
) -> Evidence:
    """Dump the threads of the processes that work three times, and keep them with the ends of their logs.

    Takes half a minute, and at most 80 seconds. What one source lacks is not a reason to leave out another. With the id
    of a `query`, what shows whether its batch moves is its own, and not that of other queries of the application.

    Raises NotFound: when the application doesn't run, or not yet, which passes. Raises Denied, Unavailable: when
    nothing at all could be taken, or when nothing can be kept.
    """
    if app.state is not ApplicationState.RUNNING:
        nothing = "has not begun to run" if app.alive else "runs no longer"
        not_running = NotFound(f"{app.id} is {app.state}: it {nothing}", tried=f"take evidence of {run.spec.name}")
        raise not_running.passing(app.alive)
    taken, examiner = _Taken(), run.engine.examiner(run.session, app, query)
    for words in _dump(examiner, taken):
        tell(f"{words} of {app.id}: {len(taken.processes)} processes")
    still = examiner.stillness()
    taken.logs, unread = read_logs(run, _logged(run, app, taken, still))
    undumped = any(each.missing for each in taken.rounds)
    taken.missing += unread
    if taken.missing and not (taken.rounds or taken.logs):
        raise taken.missing[0]
    found = Evidence(
        app.id,
        generation,
        folder_of(run.id, generation),
        still,
        dumped=len(taken.rounds) > 1 and not undumped and not still.doubt,
        missing=tuple(dict.fromkeys(str(error) for error in taken.missing)),
        progress=taken.counts[-1] if taken.counts else "",
        moves=len(set(taken.counts)) > 1,
    )
    keep(run, generation, _files(found, taken))
    return found


def _dump(examiner: Examiner, taken: _Taken) -> Iterator[str]:
    """Take the rounds, as many as are answered, and yield words for each."""
    for number in range(_ROUNDS):
        began = time.monotonic()
        try:
            taken.rounds.append(examiner.dump())
        except KstreamError as error:
            taken.missing.append(error)
            return
        taken.missing += taken.rounds[-1].missing
        yield f"took thread dump {number + 1} of {_ROUNDS}"
        if number + 1 < _ROUNDS:
            time.sleep(max(began + _APART - time.monotonic(), 0.0))


def _logged(run: StreamRun, app: Application, taken: _Taken, still: Stillness) -> Mapping[str, LoggedContainer]:
    """Return the containers whose logs are kept, first those of what hangs."""
    hung = {each.process.name for each in still.hanging}
    return containers_of(run, app, sorted(taken.processes, key=lambda process: process.name not in hung))


def _files(found: Evidence, taken: _Taken) -> Mapping[str, str]:
    dumps = {
        f"threads-{number}.txt": without_secrets("\n".join(line for dump in each.dumps for line in dump.lines()))
        for number, each in enumerate(taken.rounds, start=1)
    }
    words = [*(str(each) for each in found.still.hanging), *found.doubts()]
    bounded = {name: text[:_MOST_OF_A_ROUND] for name, text in dumps.items()}
    counts = {"progress.txt": "\n\n".join([*taken.counts, ""])}
    return {"summary.txt": "\n".join([found.application, *words, ""]), **counts, **bounded, **taken.logs}
