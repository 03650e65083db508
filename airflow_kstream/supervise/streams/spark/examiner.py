"""Looks into a running Spark application: what its driver's web UI shows of its processes, threads and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing

from airflow_kstream.clients.spark_pages import SparkPages
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.logs.thread_dump import DumpRound, Process, Stillness, ThreadDump
from airflow_kstream.policy.streams.spark.hanging import Share, runs_others, stillness
from airflow_kstream.supervise.clusters.session import ClusterSession

# Seconds that the list of executors, and one round of dumps, may take.
_LIST, _ROUND = 10.0, 10.0
# A round asks so many executors at most, the busiest first.
_EXECUTORS = 20


def spark_processes(session: ClusterSession, app: Application) -> tuple[Process, ...]:
    """Return what the driver tells; nothing if it doesn't."""
    try:
        with closing(_pages(session, app, _LIST)) as pages:
            return pages.processes()
    except KstreamError:
        return ()


class SparkExaminer:
    """The engine's `Examiner` for Spark. With the id of a `query`, what counts is that query's, if others run, too."""

    def __init__(self, session: ClusterSession, app: Application, query: str) -> None:
        self._session, self._app, self._query = session, app, query
        self._rounds: list[DumpRound] = []
        self._share: Share | None = None

    def dump(self) -> DumpRound:
        dumps: list[ThreadDump] = []
        missing: list[KstreamError] = []
        counts = ""
        with closing(_pages(self._session, self._app, _ROUND)) as pages:
            for number, process in enumerate(_asked(pages.processes())):
                try:
                    dumps.append(pages.threads(process))
                except KstreamError as error:
                    missing.append(error)
                if number == 0:
                    # Right after the driver's threads, which tell whether it runs other queries.
                    counts = self._counted(pages, dumps)
        self._rounds.append(DumpRound(tuple(dumps), counts, tuple(missing)))
        return self._rounds[-1]

    def stillness(self) -> Stillness:
        return stillness(self._rounds, self._share)

    def _counted(self, pages: SparkPages, dumps: Sequence[ThreadDump]) -> str:
        if not self._query or not runs_others(dumps, self._query):
            return pages.progress()
        counts, stages = pages.progress_of(self._query)
        self._share = Share(self._query, stages | (self._share.stages if self._share else frozenset()))
        return counts


def _pages(session: ClusterSession, app: Application, within: float) -> SparkPages:
    return SparkPages(session.yarn.active(), app.id, session.identity, session.cluster.tls, within)


def _asked(processes: Iterable[Process]) -> list[Process]:
    """Return the driver, and the executors that run most tasks."""
    busiest = sorted(processes, key=lambda process: (process.tasks is not None, -(process.tasks or 0), process.name))
    return [process for process in busiest[: _EXECUTORS + 1] if process.tasks != 0]
