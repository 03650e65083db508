"""Looks into a running Flink application, through its JobManager's pages: its processes, threads and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace

from airflow_kstream.clients.flink_pages import JOB_MANAGER, FlinkPages
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.logs.container_log import DumpRound, LoggedContainer, Process, Stillness, ThreadDump
from airflow_kstream.model.streams.flink_job import FlinkReading
from airflow_kstream.policy.streams.flink.still_tasks import stillness
from airflow_kstream.supervise.clusters.session import ClusterSession

# Seconds that the list of TaskManagers, and one round of dumps, may take.
_LIST, _ROUND = 10.0, 10.0
# A round asks so many TaskManagers at most, those with most tasks first.
_TASK_MANAGERS = 20


def flink_processes(session: ClusterSession, app: Application) -> tuple[Process, ...]:
    """Return the JobManager and the TaskManagers that it lists, with their containers; nothing if it doesn't answer."""
    try:
        with closing(_pages(session, app, _LIST)) as pages:
            found = pages.taskmanagers()
    except KstreamError:
        return ()
    containers = _containers(session, app)
    return (_jobmanager(app), *(replace(each, container=containers.get(id)) for id, each in found.items()))


class FlinkExaminer:
    """The engine's `Examiner` for Flink."""

    def __init__(self, session: ClusterSession, app: Application) -> None:
        self._session, self._app = session, app
        self._containers = _containers(session, app)
        self._rounds: list[DumpRound] = []
        self._readings: list[FlinkReading] = []
        self._names: dict[str, tuple[str, ...]] = {}
        self._job, self._survives, self._workers = "", False, 0

    def dump(self) -> DumpRound:
        dumps: list[ThreadDump] = []
        missing: list[KstreamError] = []
        with closing(_pages(self._session, self._app, _ROUND)) as pages:
            if not self._rounds:
                (self._job, *_) = pages.jobs() or ("",)
                self._survives = pages.checkpointing(self._job).survives
            # This makes the JobManager ask its TaskManagers, which answer while the threads are dumped.
            pages.job(self._job)
            workers = pages.taskmanagers()
            self._workers = len(workers)
            for id, process in _asked(_jobmanager(self._app), workers):
                try:
                    dumps.append(pages.threads(replace(process, container=self._container(id, process)), id))
                except KstreamError as error:
                    missing.append(error)
            self._readings.append(pages.reading(self._job, self._names))
        self._rounds.append(DumpRound(tuple(dumps), _text(self._readings[-1]), tuple(missing)))
        return self._rounds[-1]

    def stillness(self) -> Stillness:
        return stillness(self._rounds, self._readings, survives=self._survives, workers=self._workers)

    def _container(self, id: str, process: Process) -> LoggedContainer | None:
        return self._containers.get(id) if id else process.container


def _pages(session: ClusterSession, app: Application, within: float) -> FlinkPages:
    return FlinkPages(session.yarn.active(), app.id, session.identity, session.cluster.tls, within)


def _jobmanager(app: Application) -> Process:
    container = LoggedContainer.of_link(app.logs_url)
    return Process(JOB_MANAGER, container.host if container else "", None, container)


def _containers(session: ClusterSession, app: Application) -> Mapping[str, LoggedContainer]:
    """Return the containers by their ids, as YARN tells them; none if it doesn't: only logs need them."""
    try:
        return {each.id: each for each in session.yarn.live_containers(app.id)}
    except KstreamError:
        return {}


def _asked(jobmanager: Process, found: Mapping[str, Process]) -> Iterable[tuple[str, Process]]:
    """Return the JobManager, which has no id, and the TaskManagers that run most tasks."""
    works = sorted(
        ((id, each) for id, each in found.items() if each.tasks), key=lambda one: (-(one[1].tasks or 0), one)
    )
    return (("", jobmanager), *works[:_TASK_MANAGERS])


def _text(reading: FlinkReading) -> str:
    return "\n".join(f"{name}={count}" for name, count in sorted((reading.counts or {}).items()))
