"""Wait, in the triggerer, until a delegation token is about to reach its max date. It renews none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from airflow_kstream.supervise.tokens.expiry import TokenExpiryCondition, TokenWatch
from airflow_kstream.triggers.awaiting import ClusterAwaitingTrigger, Look
from airflow_kstream.triggers.shared import cluster_sessions, shared


class TokenExpiryTrigger(ClusterAwaitingTrigger):
    """Reports the tokens that are within their last `within`.

    A ticket of the connection's own principal that ended is no obstacle while its keytab, or the cache that somebody
    renews, gives another.
    """

    @asynccontextmanager
    async def open_probe(self) -> AsyncIterator[Look]:
        watch = TokenWatch(TokenExpiryCondition.from_mapping(self.awaited))
        async with shared(cluster_sessions, self.cluster_conn_id) as sessions:

            async def look() -> dict[str, Any] | None:
                seen = await sessions.ask(watch.look)
                return seen.report() if seen.expiring else None

            yield look
