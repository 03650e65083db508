"""Wait, in the triggerer, for files that are stuck open for write, or until none is open. Touches no lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.leases.lease import LeaseRules
from airflow_kstream.model.leases.requests import OpenFileCondition
from airflow_kstream.supervise.leases.findings import Survey, condition_report, is_met, stuck_files
from airflow_kstream.supervise.leases.session import open_lease_session
from airflow_kstream.supervise.leases.survey import Surveyor
from airflow_kstream.triggers.awaiting import ClusterPollingTrigger, Poll, fired
from airflow_kstream.triggers.shared import Sessions, own_sessions


class OpenFilesTrigger(ClusterPollingTrigger):
    """A trigger that reports the open files below a path, when enough of them are stuck or when none is left.

    Example::

        OpenFilesTrigger("prod", {"path": "/data/landing", "until": "none"}, every_seconds=60.0)

    :param cluster_conn_id: the `kstream` connection.
    :param awaited: the fields of an `OpenFileCondition`.
    :param every_seconds: the pause between two polls.
    """

    @asynccontextmanager
    async def open_poll(self) -> AsyncIterator[Poll]:
        awaited = OpenFileCondition.from_mapping(self.awaited)
        async with _surveyors(self.cluster_conn_id, awaited, self.log.info) as sessions:

            async def poll() -> dict[str, Any] | None:
                survey = await sessions.ask(Surveyor.scan)
                return condition_report(awaited, survey) if is_met(awaited, survey) else None

            yield poll


class OpenFileEventTrigger(BaseEventTrigger):
    """A trigger for an AssetWatcher that fires each time when more files below `path` have become stuck.

    The event's payload is `{"cluster", "path", "at", "open", "stuck", "stuck_paths", "newly_stuck"}`: the place and
    the time (this host's clock) of the poll, how many files are open and stuck, and the first 20 paths of the stuck
    and of the newly stuck ones. A file counts as stuck when it was measured unchanged for `quiet`; the trigger does
    not probe its holder, which HdfsLeaseRecoverOperator does. A triggerer that restarts forgets the events: files that
    are still stuck fire once more, so consumers must be idempotent.

    Example::

        watcher = AssetWatcher(name="landing", trigger=OpenFileEventTrigger("prod", "/data/landing", quiet="30m"))
        landing = Asset("landing", watchers=[watcher])

    :param cluster_conn_id: the `kstream` connection.
    :param path: an absolute folder or file; `patterns` as in OpenFileCondition.
    :param quiet: a duration such as `10m`.
    :param every_seconds: the pause between two polls.
    """

    def __init__(
        self,
        cluster_conn_id: str,
        path: str,
        patterns: list[str] | None = None,
        quiet: str = "10m",
        every_seconds: float = 60.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cluster_conn_id = cluster_conn_id
        self.path = path
        self.patterns = patterns
        self.quiet = quiet
        self.every_seconds = every_seconds
        # Here, so that parsing the DAG refuses a wrong field.
        self._awaited = OpenFileCondition.from_mapping({"path": path, "patterns": patterns, "quiet": quiet})

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "cluster_conn_id": self.cluster_conn_id,
            "path": self.path,
            "patterns": self.patterns,
            "quiet": self.quiet,
            "every_seconds": self.every_seconds,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        awaited = self._awaited
        known: set[tuple[str, int]] = set()
        async with _surveyors(self.cluster_conn_id, awaited, self.log.info) as sessions:
            while True:
                survey = await self._poll(sessions)
                if survey:
                    stuck = {(finding.path, finding.history.state.file_id) for finding in stuck_files(awaited, survey)}
                    fresh = sorted(path for path, _ in stuck - known)
                    known = stuck
                    if fresh:
                        yield self._event(condition_report(awaited, survey), fresh)
                await asyncio.sleep(self.every_seconds)

    async def _poll(self, sessions: Sessions[Surveyor]) -> Survey | None:
        """Return the survey, None when the poll failed: an asset's watcher has no task that could fail, and goes on."""
        try:
            return await sessions.ask(Surveyor.scan)
        except KstreamError as error:
            self.log.warning("%s", error)
        except Exception:
            self.log.exception("A poll of the open files below %s failed", self.path)
        return None

    def _event(self, report: dict[str, Any], fresh: list[str]) -> TriggerEvent:
        payload = {"cluster": self.cluster_conn_id, **report, "newly_stuck": fresh[:20]}
        return fired(payload)


def _surveyors(
    conn_id: str, awaited: OpenFileCondition, tell: Callable[[str], None]
) -> AbstractAsyncContextManager[Sessions[Surveyor]]:
    """Open sessions with one surveyor, which remembers what it logged; after a failure with a new one."""

    @contextmanager
    def surveyor(cluster: Cluster) -> Iterator[Surveyor]:
        with open_lease_session(cluster, cluster.watcher) as session:
            yield Surveyor(session, awaited.search(awaited.min_age), LeaseRules(), tell)

    return own_sessions(conn_id, surveyor)
