"""Rows of what was told, in Airflow's asset state store: pages show them, and an asset's watchers pass them on.

Anybody who may edit assets can change one, so none decides whether an event was told: notes on HDFS do.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context
from typing import Any

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.streams.event import Ledger

log = logging.getLogger(__name__)

KEY = "told"
# Seconds. Airflow writes one row after the other, each within 50 ms.
_PATIENCE = 60.0

Subject = tuple[str, str]


async def get(uri: str, key: str) -> Any:
    """Read a value of an asset; None if there is none. Raises whatever Airflow raises."""
    # airflow.sdk does not export it, and importing it takes as long as a worker's start.
    from airflow.sdk.execution_time.context import AssetStateStoreAccessor

    return await AssetStateStoreAccessor(uri=uri).aget(key)


async def put(uri: str, key: str, value: Any) -> None:
    """Write a value of an asset. Raises whatever Airflow raises, as for an asset that no DAG names."""
    from airflow.sdk.execution_time.context import AssetStateStoreAccessor

    await AssetStateStoreAccessor(uri=uri).aset(key, value)


class Rows:
    """The rows of the subjects that this process watches, each a connection's id and a stream, "" for the cluster.

    Writing never delays a watch: it happens beside it, and what fails is logged once for each cause.
    """

    def __init__(self) -> None:
        self._unwritten: dict[Subject, Ledger] = {}
        self._writer: asyncio.Task[None] | None = None
        self._complaints: set[str] = set()

    def put(self, subject: Subject, ledger: Ledger) -> None:
        """Write what was told of a subject, in its turn. Never blocks."""
        self._unwritten[subject] = ledger
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), context=Context())

    async def _write(self) -> None:
        while self._unwritten:
            subject = next(iter(self._unwritten))
            ledger = self._unwritten.pop(subject)
            try:
                async with asyncio.timeout(_PATIENCE):
                    await put(asset_uri(*subject), KEY, ledger.to_json())
            except Exception as error:
                self._complain(error)

    def _complain(self, error: Exception) -> None:
        """Log each kind of failure once: a fleet has a thousand of them."""
        if (cause := type(error).__name__) not in self._complaints:
            log.warning("What was told can't be shown on pages: %r", error)
        self._complaints.add(cause)
