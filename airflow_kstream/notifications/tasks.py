"""Events of a cluster that a task finds: told from its worker, at its end, within a bounded time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from airflow_kstream import metrics
from airflow_kstream.assets import asset_uri
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.event import Event, EventKind, Ledger, Trouble
from airflow_kstream.model.notify import NotifyPolicy
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.notifications.notifier import configured, notify_now
from airflow_kstream.notifications.outbox import DEADLINE, context_of
from airflow_kstream.policy.events.bundles import words
from airflow_kstream.policy.events.ledger import compare

log = logging.getLogger(__name__)


def get(uri: str, key: str) -> Any:
    """Read a value of an asset; None if there is none. Raises whatever Airflow raises."""
    from airflow.sdk.execution_time.context import AssetStateStoreAccessor

    return AssetStateStoreAccessor(uri=uri).get(key)


def put(uri: str, key: str, value: Any) -> None:
    """Write a value of an asset. Raises whatever Airflow raises."""
    from airflow.sdk.execution_time.context import AssetStateStoreAccessor

    AssetStateStoreAccessor(uri=uri).set(key, value)


def delete(uri: str, key: str) -> None:
    """Delete a value of an asset, if there is one. Raises whatever Airflow raises."""
    from airflow.sdk.execution_time.context import AssetStateStoreAccessor

    AssetStateStoreAccessor(uri=uri).delete(key)


def tell_from_task(
    cluster: str, notify: NotifyPolicy, seen: Sequence[Trouble], kinds: Collection[EventKind], key: str
) -> None:
    """Tell what begins and ends by what this task saw, one message for each kind; it fails no task.

    `notify` is the task's own notifier; without one, the configured one tells.
    `key` is the place of what was told, in the state of the cluster's asset: runs and tries share it. Where that can't
    be read, every run tells what lasts.
    """
    uri = asset_uri(cluster)
    try:
        told = Ledger.from_json(get(uri, key))
    except Exception as error:
        log.warning("What was told can't be read, so it may be told again: %r", error)
        told = Ledger()
    ledger, events = compare(told, seen, kinds, datetime.now(UTC), cluster)
    if not events:
        return
    for _, alike in groupby(sorted(events, key=_message), key=_message):
        _tell(tuple(alike), cluster, notify)
    try:
        put(uri, key, ledger.to_json())
    except Exception as error:
        log.warning("What was told can't be written, so the next run tells it again: %r", error)


def _message(event: Event) -> tuple[str, bool]:
    return event.kind.value, event.ended


def _tell(events: tuple[Event, ...], cluster: str, declared: NotifyPolicy) -> None:
    try:
        notify = configured(declared)
    except InvalidInput as error:
        log.error("%s", error)
        return
    if notify.notifier is None:
        return
    failures = ["it has not returned"]

    def told() -> None:
        try:
            notify_now(notify, context_of(events))
            failures.clear()
        except Exception as error:
            failures[:] = [without_secrets(f"{type(error).__name__}: {error}")]

    thread = threading.Thread(target=told, name="kstream-notifier", daemon=True)
    thread.start()
    thread.join(DEADLINE)
    if failures:
        log.error("A notification is dropped (%s: %s): %s", notify.notifier, failures[0], words(events))
    metrics.cluster_count("notifications_dropped" if failures else "notifications", 1, cluster)
