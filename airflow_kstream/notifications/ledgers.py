"""The place of what was told: Airflow's asset state store, under the asset of the stream or the cluster.

A triggerer may only view HDFS, its triggers can't change what Airflow keeps of them until they fire, and a retry of
their task forgets even that. The asset state store outlives triggerers, workers, retries and runs, and a trigger may
write it. It is a cache: the scheduler deletes what no DAG names any longer, and a stream whose DAG does not name its
asset has none. So a deferred task carries the ledger as well, and the one with more changes holds. Where both are lost
somebody hears of an event that lasts a second time, which is better than never.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.event import Event, Ledger

log = logging.getLogger(__name__)

KEY = "told"
# Seconds. Airflow writes one row after the other, each within 50 ms.
_PATIENCE = 60.0

Subject = tuple[str, str]
Getter = Callable[[str, str], Awaitable[Any]]
Setter = Callable[[str, str, Any], Awaitable[None]]


async def get(uri: str, key: str) -> Any:
    """Read a value of an asset; None if there is none. Raises whatever Airflow raises."""
    # airflow.sdk does not export it, and importing it takes as long as a worker's start.
    from airflow.sdk.execution_time.context import AssetStateStoreAccessor

    return await AssetStateStoreAccessor(uri=uri).aget(key)


async def put(uri: str, key: str, value: Any) -> None:
    """Write a value of an asset. Raises whatever Airflow raises, as for an asset that no DAG names."""
    from airflow.sdk.execution_time.context import AssetStateStoreAccessor

    await AssetStateStoreAccessor(uri=uri).aset(key, value)


class Ledgers:
    """The ledgers of the subjects that this process watches, each a connection's id and a stream, "" for the cluster.

    Reading and writing never delays a watch: both happen beside it, and what fails is logged once for each cause.
    """

    def __init__(self) -> None:
        self._current: dict[Subject, Ledger] = {}
        self._unwritten: dict[Subject, None] = {}
        self._writer: asyncio.Task[None] | None = None
        self._complaints: set[str] = set()

    async def load(self, subject: Subject) -> Ledger:
        """Return what was told of the subject, nothing if that can't be read within a minute."""
        try:
            async with asyncio.timeout(_PATIENCE):
                return Ledger.from_json(await get(asset_uri(*subject), KEY))
        except Exception as error:
            self._complain("read", error)
        return Ledger()

    def keep(self, subject: Subject, ledger: Ledger) -> None:
        """Take the newest ledger; it is written when its events were told."""
        self._current[subject] = ledger

    def told(self, event: Event) -> None:
        """Write the ledger of an event's subject, in its turn."""
        self._unwritten[event.cluster, event.stream] = None
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), context=Context())

    async def _write(self) -> None:
        while self._unwritten:
            subject = next(iter(self._unwritten))
            del self._unwritten[subject]
            try:
                async with asyncio.timeout(_PATIENCE):
                    await put(asset_uri(*subject), KEY, self._current[subject].to_json())
            except Exception as error:
                self._complain("written", error)

    def _complain(self, what: str, error: Exception) -> None:
        """Log each kind of failure once: a fleet has a thousand of them."""
        cause = f"{what} {type(error).__name__}"
        if cause not in self._complaints:
            log.warning("What was told can't be %s, so a restart may tell it again: %r", what, error)
        self._complaints.add(cause)
