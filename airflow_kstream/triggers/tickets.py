"""Wait, in the triggerer, until a ticket is about to expire. Renews none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from airflow_kstream.supervise.tickets import expiry
from airflow_kstream.triggers.awaiting import Poll, PollingTrigger


class TicketExpiryTrigger(PollingTrigger):
    """A trigger that reports the caches on this host whose ticket ends within `within`, has ended, or is missing.

    It carries the caches' names and contacts no server, so an unreachable KDC does not affect it. It reads the files
    again at each poll, in a thread, so a ticket that was renewed meanwhile counts at once.

    Example::

        caches = [{"principal": "etl@EXAMPLE.COM", "cache": "/var/lib/airflow/etl.ccache"}]
        TicketExpiryTrigger({"caches": caches, "within": "1h"}, every_seconds=60.0)

    :param awaited: the fields of a `TicketExpiryCondition`.
    :param every_seconds: the pause between two polls.
    """

    @asynccontextmanager
    async def open_poll(self) -> AsyncIterator[Poll]:
        awaited = expiry.TicketExpiryCondition.from_mapping(self.awaited)

        async def poll() -> dict[str, Any] | None:
            check = await asyncio.to_thread(expiry.check, awaited)
            return check.report() if check.due else None

        yield poll
