"""Wait, in the triggerer, until a ticket is about to expire. It renews none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_kstream.supervise.ticket_expiry import TicketsAwaited, look
from airflow_kstream.triggers.stream import SETTLING_SECONDS


class TicketExpiryTrigger(BaseTrigger):
    """Fires once, with `report`, when one of the caches on this host holds no ticket that serves for longer.

    It carries the caches' names and asks no server: a KDC that is away does not disturb it. The files are read anew
    at each look, in a thread, so a ticket that was renewed meanwhile counts at once.
    """

    def __init__(self, awaited: Mapping[str, Any], every_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.awaited = awaited
        self.every_seconds = every_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "awaited": dict(self.awaited),
            "every_seconds": self.every_seconds,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(SETTLING_SECONDS)
        awaited = TicketsAwaited.from_mapping(self.awaited)
        while True:
            seen = await asyncio.to_thread(look, awaited)
            if seen.expiring:
                yield TriggerEvent({"report": seen.report()})  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(self.every_seconds)
