"""Evidence of a stall: three thread dumps of what runs, in words, and the ends of its logs. It changes nothing.

No signal is sent for a dump: YARN's OUTPUT_THREAD_DUMP is a SIGQUIT to the container's whole process group, and from
JDK 20 on (JDK-8234262) a JVM's child, such as a driver's Python, no longer has it blocked and dies of it.

It is kept in `evidence/` of the stream's folder on HDFS, for the stream's own user alone, because logs show data, and
for the last generations only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.logs.container_log import DumpRound, LoggedContainer, Process, Stillness
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.streams.contract import EVIDENCE_FOLDER
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.supervise.streams.folder.engine import Examiner
from airflow_kstream.supervise.streams.folder.run import StreamRun

log = logging.getLogger(__name__)

# Seconds for all logs together; containers whose logs are read; bytes of all logs.
_LOGS = 30.0
_CONTAINERS, _MOST = 4, 8 << 20
# The beginnings of the names of what is kept beside logs.
_NO_LOGS = ("summary.", "progress.", "threads-")
_GENERATIONS = 5
_FOLDER_MODE, _FILE_MODE = "700", "600"


def folder_of(stream: StreamId, generation: int) -> str:
    return f"{stream.folder}/{EVIDENCE_FOLDER}/{generation:06d}"


def is_log(name: str) -> bool:
    """Return whether a kept file of this name is the end of a log."""
    return not name.startswith(_NO_LOGS)


def keep(run: StreamRun, generation: int, files: Mapping[str, str]) -> None:
    """Write the files, over those of these names, and forget what was kept of old generations."""
    hdfs, folder = run.session.hdfs, folder_of(run.id, generation)
    above = folder.rpartition("/")[0]
    for path in (above, folder):
        hdfs.make_folder(path, _FOLDER_MODE)
    for name, text in files.items():
        hdfs.write(f"{folder}/{name}", text, overwrite=True, permission=_FILE_MODE)
    for old in sorted(hdfs.names(above))[:-_GENERATIONS]:
        hdfs.delete(f"{above}/{old}", recursive=True)


def containers_of(run: StreamRun, app: Application, processes: Iterable[Process]) -> Mapping[str, LoggedContainer]:
    """Return the container of the process that leads, which YARN itself knows, and of the first others, by a name."""
    named, leader = {process.name: process.container for process in processes}, run.engine.words.leader
    master = named.pop(leader, None) or LoggedContainer.of_link(app.logs_url)
    first = {leader: master, **dict(list(named.items())[: _CONTAINERS - 1])}
    return {name.replace(" ", "-"): container for name, container in first.items() if container}


def read_logs(
    run: StreamRun, containers: Mapping[str, LoggedContainer]
) -> tuple[Mapping[str, str], tuple[KstreamError, ...]]:
    """Return the ends of the containers' logs by the names of files, and the errors of those that can't be read."""
    logs, ends = ContainerLogs(run.cluster, run.session.identity), time.monotonic() + _LOGS
    words = run.engine.words
    files: dict[str, str] = {}
    unread: list[KstreamError] = []
    for name, container in containers.items():
        left = max(ends - time.monotonic(), 0.0)
        names = words.logs if name == words.leader else words.worker_logs or words.logs
        try:
            tails = logs.tails(container, names, _MOST // (_CONTAINERS * len(names)), left)
        except KstreamError as error:
            unread.append(error)
        else:
            files |= {f"{name}-{log}.txt": tail.text for log, tail in tails.items()}
    return files, tuple(unread)


def save_logs(run: StreamRun, app: Application, generation: int, tell: Callable[[str], None]) -> None:
    """Keep the ends of the logs of a generation that is about to end, which may be aggregated no longer.

    Takes at most 40 seconds beside what HDFS takes. A failure holds up nothing: `tell` gets it.
    """
    try:
        files, unread = read_logs(run, containers_of(run, app, run.engine.processes(run.session, app)))
        if files:
            keep(run, generation, files)
    except KstreamError as error:
        tell(f"the logs of {app.id} are not kept: {error.without_advice}")
        return
    except Exception as error:
        # A defect of ours must not keep a generation from being stopped in time.
        log.exception("The logs of %s are not kept", app.id)
        tell(f"the logs of {app.id} are not kept: {error!r}")
        return
    for lost in unread:
        tell(f"a log of {app.id} is not kept: {lost.without_advice}")
    tell(f"kept {len(files)} logs of {app.id} in {folder_of(run.id, generation)}")


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
