"""Wait, in the triggerer, for files that are stuck open for write, or until none is open. It touches no lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from typing import Any

from airflow.sdk import BaseHook
from airflow.triggers.base import BaseEventTrigger, BaseTrigger, TriggerEvent

from airflow_kstream.hooks.cluster import fields_of
from airflow_kstream.model.errors import KstreamError, NotFound
from airflow_kstream.model.lease import LeaseRules
from airflow_kstream.supervise.connect import ConnectionFields, cluster_of
from airflow_kstream.supervise.lease_access import open_lease_access
from airflow_kstream.supervise.lease_order import OpenFilesAwaited
from airflow_kstream.supervise.survey import Survey, Surveyor
from airflow_kstream.triggers.stream import SETTLING_SECONDS


class OpenFilesTrigger(BaseTrigger):
    """Fires once: with `report` when what is awaited has come, with `error` when waiting can't help any more.

    A server that is away, or a path that is not there yet, is waited for. HdfsOpenFileSensor says what is awaited.
    """

    def __init__(self, cluster_conn_id: str, awaited: Mapping[str, Any], every_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cluster_conn_id = cluster_conn_id
        self.awaited = awaited
        self.every_seconds = every_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "cluster_conn_id": self.cluster_conn_id,
            "awaited": dict(self.awaited),
            "every_seconds": self.every_seconds,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(SETTLING_SECONDS)
        awaited = OpenFilesAwaited.from_mapping(self.awaited)
        async with _Looker(self.cluster_conn_id, awaited, self.log.info) as looker:
            while True:
                try:
                    survey = await looker.look()
                except KstreamError as error:
                    self.log.warning("%s", error)
                    if not may_pass(error):
                        yield TriggerEvent({"error": _as_data(error)})  # type: ignore[no-untyped-call]
                        return
                else:
                    if awaited.met(survey):
                        yield TriggerEvent({"report": awaited.report(survey)})  # type: ignore[no-untyped-call]
                        return
                await asyncio.sleep(self.every_seconds)


class OpenFileEventTrigger(BaseEventTrigger):
    """For an AssetWatcher: fires each time when files below `path` have become stuck that were not before.

    The event's payload is `{"cluster", "path", "at", "open", "stuck", "stuck_paths", "newly_stuck"}`: when and where
    it was looked, how many files are open and stuck, the first 20 paths of the stuck ones and of the newly stuck. A
    file counts as stuck when it was measured unchanged for `quiet`; nobody is asked whether its holder lives, which
    HdfsLeaseRecoverOperator does. What was fired for is forgotten when the triggerer restarts: then what is still
    stuck fires once more, so let whoever listens be idempotent.

    :param cluster_conn_id: the `kstream` connection.
    :param path: an absolute folder or file; `patterns` as in HdfsOpenFileSensor.
    :param quiet: a duration such as `10m`.
    :param every_seconds: the pause between two looks.
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
        # Here, so that what is wrong is refused where the DAG is parsed.
        self._awaited = OpenFilesAwaited.from_mapping({"path": path, "patterns": patterns, "quiet": quiet})

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
        async with _Looker(self.cluster_conn_id, awaited, self.log.info) as looker:
            while True:
                survey = await self._look(looker)
                if survey:
                    stuck = {(found.path, found.watched.state.file_id) for found in awaited.stuck(survey)}
                    fresh = sorted(path for path, _ in stuck - known)
                    known = stuck
                    if fresh:
                        yield self._event(awaited.report(survey), fresh)
                await asyncio.sleep(self.every_seconds)

    async def _look(self, looker: _Looker) -> Survey | None:
        """None when it failed: a watcher of an asset has no task that could fail, and goes on."""
        try:
            return await looker.look()
        except KstreamError as error:
            self.log.warning("%s", error)
        except Exception:
            self.log.exception("A look at the open files below %s failed", self.path)
        return None

    def _event(self, report: dict[str, Any], fresh: list[str]) -> TriggerEvent:
        payload = {"cluster": self.cluster_conn_id, **report, "newly_stuck": fresh[:20]}
        return TriggerEvent(payload)  # type: ignore[no-untyped-call]


def may_pass(error: KstreamError) -> bool:
    """Whether to go on waiting: a server can come back, and a folder can come to be."""
    return error.retryable or isinstance(error, NotFound)


def _as_data(error: KstreamError) -> dict[str, str]:
    return {name: getattr(error, name) for name in ("message", "tried", "server", "principal")}


class _Looker:
    """Looks in a thread of its own, so that neither the triggerer's loop nor its pool of threads waits for a server.

    The sessions live in that thread and are closed there, after the look that is under way. A look that fails opens
    them anew, from the connection as it is then.
    """

    def __init__(self, conn_id: str, awaited: OpenFilesAwaited, tell: Callable[[str], None]) -> None:
        self._conn_id = conn_id
        self._awaited = awaited
        self._tell = tell
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kstream-leases")
        self._opened = ExitStack()
        self._surveyor: Surveyor | None = None

    async def look(self) -> Survey:
        fields = None if self._surveyor else fields_of(await BaseHook.aget_connection(self._conn_id))
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, copy_context().run, self._look, fields)

    async def __aenter__(self) -> _Looker:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    def _look(self, fields: ConnectionFields | None) -> Survey:
        try:
            if fields:
                self._surveyor = self._open(fields)
            assert self._surveyor
            return self._surveyor.look()
        except Exception:
            self._close()
            raise

    def _open(self, fields: ConnectionFields) -> Surveyor:
        cluster = self._opened.enter_context(cluster_of(self._conn_id, fields))
        access = self._opened.enter_context(open_lease_access(cluster, cluster.watcher))
        return Surveyor(access, self._awaited.search(self._awaited.min_age), LeaseRules(), self._tell)

    def _close(self) -> None:
        self._surveyor = None
        self._opened.close()
