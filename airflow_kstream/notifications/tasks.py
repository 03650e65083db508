"""Events of a cluster that a task finds: told from its worker, at its end, within a bounded time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from airflow_kstream import metrics, settings
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.streams.event import Event, EventKind, ToldSubject, Trouble
from airflow_kstream.notifications.bounds import look_at, within
from airflow_kstream.notifications.notifier import configured, notify_now
from airflow_kstream.notifications.outbox import DEADLINE, context_of, in_time
from airflow_kstream.notifications.task_notes import task_notes
from airflow_kstream.policy.events.bundles import compare, words

log = logging.getLogger(__name__)

# Below Airflow's home.
_FOLDER = "kstream-told"


def get(uri: str, key: str) -> Any:
    """Read a value of an asset; None if there is none. Raises whatever Airflow raises."""
    from airflow.sdk.execution_time.context import AssetStateStoreAccessor

    return AssetStateStoreAccessor(uri=uri).get(key)


def put(uri: str, key: str, value: Any) -> None:
    """Write a value of an asset. Raises whatever Airflow raises."""
    from airflow.sdk.execution_time.context import AssetStateStoreAccessor

    AssetStateStoreAccessor(uri=uri).set(key, value)


def tell_from_task(
    cluster: str,
    notify: NotifyPolicy,
    seen: Sequence[Trouble],
    kinds: Collection[EventKind],
    key: str,
    undecided: Callable[[str], bool] = lambda about: False,
) -> None:
    """Tell what begins and ends by what this task saw, one message for each kind; it fails no task.

    `notify` is the task's own notifier; without one that the connection allows, the configured one tells.
    `key` names what was told: runs and tries share it. What was told before and is `undecided` now, by what it is
    about, lasts. Where HDFS can't be asked, each worker tells once what lasts.
    """
    subject = ToldSubject(settings.text("installation"), cluster, key=key)
    with task_notes(subject, _home() / _FOLDER) as notes:
        told = notes.read()
        lasts = (Trouble(each.kind, each.why, each.about) for each in told.lasting.values() if undecided(each.about))
        ledger, events = compare(told, [*lasts, *seen], kinds, datetime.now(UTC), cluster)
        for _, alike in groupby(sorted(events, key=_message), key=_message):
            _tell(tuple(alike), cluster, notify)
        notes.note(ledger, changed=bool(events))


def _home() -> Path:
    # Importing it takes as long as a worker's start.
    from airflow.configuration import get_airflow_home

    return Path(get_airflow_home())


def _message(event: Event) -> tuple[str, bool]:
    return event.kind.value, event.ended


def _tell(events: tuple[Event, ...], cluster: str, declared: NotifyPolicy) -> None:
    if declared.notifier:
        look_at(cluster)
    try:
        notify = configured(within(cluster, declared))
    except InvalidInput as error:
        log.error("%s", error)
        return
    if notify.notifier is None:
        return
    failure = ""
    try:
        in_time(DEADLINE, lambda: notify_now(notify, context_of(events)))
    except TimeoutError as error:
        failure = str(error)
    except Exception as error:
        failure = without_secrets(f"{type(error).__name__}: {error}")
    if failure:
        log.error("A notification is dropped (%s: %s): %s", notify.notifier, failure, words(events))
    metrics.cluster_count("notifications_dropped" if failure else "notifications", 1, cluster)
