"""Wait, in the triggerer, until a ticket is about to expire. It renews none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from airflow_kstream.supervise.tickets import expiry
from airflow_kstream.triggers.awaiting import Look, PollingTrigger


class TicketExpiryTrigger(PollingTrigger):
    """Reports the caches on this host that hold no ticket that serves for longer.

    It carries the caches' names and asks no server: a KDC that is away does not disturb it. The files are read anew
    at each look, in a thread, so a ticket that was renewed meanwhile counts at once.
    """

    @asynccontextmanager
    async def open_probe(self) -> AsyncIterator[Look]:
        awaited = expiry.TicketExpiryCondition.from_mapping(self.awaited)

        async def look() -> dict[str, Any] | None:
            seen = await asyncio.to_thread(expiry.look, awaited)
            return seen.report() if seen.expiring else None

        yield look
