"""Wait, in the triggerer, until a delegation token is about to reach its max date. Renews none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from airflow_kstream.supervise.tokens.expiry import TokenExpiryCondition, TokenWatch
from airflow_kstream.triggers.awaiting import ClusterPollingTrigger, Poll
from airflow_kstream.triggers.shared import cluster_sessions, shared


class TokenExpiryTrigger(ClusterPollingTrigger):
    """A trigger that reports the tokens whose max date is at most `within` away.

    It outlives tickets of the connection's own principal, as long as the keytab, or a ticket cache that another
    program renews, provides the next one.

    Example::

        TokenExpiryTrigger("prod", {"stream": "orders", "within": "1d"}, every_seconds=60.0)

    :param cluster_conn_id: the `kstream` connection.
    :param awaited: the fields of a `TokenExpiryCondition`.
    :param every_seconds: the pause between two polls.
    """

    @asynccontextmanager
    async def open_poll(self) -> AsyncIterator[Poll]:
        watch = TokenWatch(TokenExpiryCondition.from_mapping(self.awaited))
        async with shared(cluster_sessions, self.cluster_conn_id) as sessions:

            async def poll() -> dict[str, Any] | None:
                check = await sessions.ask(watch.check)
                return check.report() if check.due else None

            yield poll
