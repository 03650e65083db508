"""Begins and ends of events, as events of a stream's or a cluster's asset: DAGs are scheduled on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_kstream.assets import asset_uri
from airflow_kstream.model.streams.event import Event, EventKind, Ledger, Trouble
from airflow_kstream.model.streams.stream_state import StreamState
from airflow_kstream.notifications import ledgers
from airflow_kstream.policy.events.bundles import compare
from airflow_kstream.policy.states.due import Kind
from airflow_kstream.triggers.awaiting import fired


class StreamEventTrigger(BaseEventTrigger):
    """A trigger for an AssetWatcher that fires at each begin and each end of an event of a stream, or of its cluster.

    The payload is what a notifier gets as `event`: `kind`, `ended`, `cluster`, `stream`, `since`, `until`, `why` and
    `words`. It asks no server: it reads the row of what the task that watches the stream told, and a stream whose task
    does not run has no events. It keeps what it passed on beside that, under a key of its own, so it passes each on
    once, whatever restarts. What begins and ends between two polls it does not see. Anybody who may edit assets in
    Airflow can change both rows, as they can trigger the DAG: an alert is a notifier's business.

    Example::

        watcher = AssetWatcher(name="orders", trigger=StreamEventTrigger("prod", "orders"))
        orders = Asset("kstream://prod/orders", watchers=[watcher])

    :param cluster_conn_id: the `kstream` connection.
    :param stream: the stream's name; the cluster's own events without it.
    :param every_seconds: the pause between two polls.
    :param key: the place of what this watcher passed on, if an asset has several.
    """

    def __init__(
        self, cluster_conn_id: str, stream: str = "", every_seconds: float = 30.0, key: str = "passed_on"
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cluster_conn_id = cluster_conn_id
        self.stream = stream
        self.every_seconds = every_seconds
        self.key = key

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "cluster_conn_id": self.cluster_conn_id,
            "stream": self.stream,
            "every_seconds": self.every_seconds,
            "key": self.key,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        uri, complaint = asset_uri(self.cluster_conn_id, self.stream), ""
        unnoted: Ledger | None = None
        while True:
            try:
                passed_on, events = await self._poll(uri, unnoted)
                for event in events:
                    yield fired(event.to_json())
                if events or unnoted:
                    # After they have left: a triggerer that ends before passes them on again.
                    unnoted = passed_on
                    await ledgers.put(uri, self.key, passed_on.to_json())
                    unnoted = None
                complaint = ""
            except Exception as error:  # An asset's watcher has no task that could fail, and goes on.
                if repr(error) != complaint:
                    self.log.warning("The events of %s can't be read or kept: %r", uri, error)
                complaint = repr(error)
            await asyncio.sleep(self.every_seconds)

    async def _poll(self, uri: str, unnoted: Ledger | None) -> tuple[Ledger, tuple[Event, ...]]:
        told = Ledger.from_json(await ledgers.get(uri, ledgers.KEY))
        passed_on = unnoted or Ledger.from_json(await ledgers.get(uri, self.key))
        seen = [Trouble(event.kind, event.why, event.about) for event in told.lasting.values()]
        subject = self.cluster_conn_id, self.stream
        ledger, events = compare(passed_on, seen, frozenset(EventKind), datetime.now(UTC), *subject)
        if not events or not self.stream:
            return ledger, events
        state = StreamState.from_json(await ledgers.get(uri, Kind.VERDICT.value))
        return ledger, tuple(replace(event, app_name=state.app_name if state else "") for event in events)
