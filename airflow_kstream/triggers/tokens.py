"""Wait, in the triggerer, until a delegation token is about to reach its max date. It renews none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_kstream.model.errors import KstreamError
from airflow_kstream.supervise.token_expiry import TokensAwaited, TokenWatch
from airflow_kstream.triggers.shared import error_event, may_pass, shared_access, with_remedy
from airflow_kstream.triggers.stream import SETTLING_SECONDS


class TokenExpiryTrigger(BaseTrigger):
    """Fires once: with `report` when a token is within its last `within`, with `error` when waiting can't help.

    A server that is away, or a file or stream that is not there yet, is waited for. A ticket of the connection's own
    principal that ended is no obstacle while its keytab, or the cache that somebody renews, gives another.
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
        watch, told = TokenWatch(TokensAwaited.from_mapping(self.awaited)), ""
        async with shared_access(self.cluster_conn_id) as access:
            while True:
                try:
                    seen = await access.ask(watch.look)
                except KstreamError as error:
                    if str(error) != told:
                        self.log.warning("%s", error)
                    told = str(error)
                    if not may_pass(error):
                        yield error_event(with_remedy(error))
                        return
                else:
                    if seen.expiring:
                        yield TriggerEvent({"report": seen.report()})  # type: ignore[no-untyped-call]
                        return
                await asyncio.sleep(self.every_seconds)
