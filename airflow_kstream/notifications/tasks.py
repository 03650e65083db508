"""Events of a cluster that a task finds: told from its worker, at its end, within a bounded time.

What was told is noted on HDFS or, as long as that can't be asked, on the disk of the worker. A task tells of a ticket
that can't be renewed exactly when HDFS can't be asked. The next run on this worker that can ask it takes along what was
left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import Any

from airflow_kstream import metrics, settings
from airflow_kstream.clients.local.private import forget_text, keep_text, kept_text
from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.hooks.connection import cluster_at
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.streams.event import (
    LONGEST,
    Event,
    EventKind,
    Ledger,
    ToldSubject,
    Trouble,
    read_told,
    written_told,
)
from airflow_kstream.notifications.notifier import configured, look_at, notify_now, within
from airflow_kstream.notifications.outbox import DEADLINE, NotReturned, context_of, in_time
from airflow_kstream.policy.events.bundles import after, compare, joined, words
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.clusters.told import ToldNotes

log = logging.getLogger(__name__)

# Below Airflow's home.
_FOLDER = "kstream-told"
# Seconds for HDFS, before the messages and after them.
_PATIENCE = 60.0


class TaskNotes:
    """The notes of one subject, for one run. What fails is a warning, and fails no task.

    `told` are those on HDFS, None where there is no way to them. `folder` is the worker's own.
    """

    def __init__(self, subject: ToldSubject, told: ToldNotes | None, folder: Path) -> None:
        self._subject = subject
        self._told = told
        self._folder = folder
        self._left: Ledger | None = None

    def read(self) -> Ledger:
        """Return what was told, as far as that can be read within a minute."""
        self._left = self._read_here()
        stored = self._read_there()
        if stored is None:
            return self._left or Ledger()
        return joined(stored, self._left) if self._left else stored

    def note(self, ledger: Ledger, *, changed: bool) -> None:
        """Note what was told by now; without a change only what this worker has left to be noted on HDFS."""
        if not changed and (self._left is None or self._told is None):
            return
        if self._note_there(ledger):
            self._forget_here()
        elif changed:
            self._leave_here(ledger)

    def _read_there(self) -> Ledger | None:
        """Read the notes on HDFS, None if they can't be read: then nothing is noted there in this run either."""
        if self._told is None:
            return None
        told, subject = self._told, self._subject
        try:
            return in_time(_PATIENCE, lambda: told.read([subject])[subject])
        except Exception as error:
            log.warning("What was told can't be read on HDFS, so each worker may tell it once: %s", error)
            self._told = None
        return None

    def _note_there(self, ledger: Ledger) -> bool:
        if self._told is None:
            return False
        told = self._told
        try:
            in_time(_PATIENCE, lambda: told.note(self._subject, ledger))
        except Exception as error:
            log.warning("What was told can't be noted on HDFS: %s", error)
            return False
        return True

    def _read_here(self) -> Ledger | None:
        try:
            text = kept_text(self._folder, self._subject.file_name, LONGEST)
        except (OSError, InvalidInput) as error:
            log.warning("What this worker told can't be read: %s", error)
            return None
        return read_told(text, self._subject) if text else None

    def _leave_here(self, ledger: Ledger) -> None:
        text = written_told(self._subject, replace(ledger, alone=True), user_at_host())
        try:
            keep_text(self._folder, self._subject.file_name, text)
        except OSError as error:
            log.warning("What was told can't be noted on this worker either, so the next run tells it again: %s", error)

    def _forget_here(self) -> None:
        if self._left is not None:
            try:
                forget_text(self._folder, self._subject.file_name)
            except OSError as error:
                log.warning("What is noted on HDFS by now can't be deleted on this worker: %s", error)


@contextmanager
def task_notes(subject: ToldSubject, folder: Path) -> Iterator[TaskNotes]:
    """Yield the notes of a subject, as the principal of its connection."""
    with ExitStack() as opened:
        told: ToldNotes | None = None
        try:
            cluster = opened.enter_context(cluster_at(subject.connection))
            told = opened.enter_context(open_session(cluster, cluster.watcher)).told
        except Exception as error:
            log.warning("What was told can't be read on HDFS, so each worker may tell it once: %s", error)
        yield TaskNotes(subject, told, folder)


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
    about, lasts. Where HDFS can't be asked, each worker tells once what lasts. Of what a notifier raised for, the
    next run tells.
    """
    subject = ToldSubject(settings.text("installation"), cluster, key=key)
    with task_notes(subject, _home() / _FOLDER) as notes:
        left = told = notes.read()
        lasts = (Trouble(each.kind, each.why, each.about) for each in told.lasting.values() if undecided(each.about))
        _, events = compare(told, [*lasts, *seen], kinds, datetime.now(UTC), cluster)
        for alike in [tuple(alike) for _, alike in groupby(sorted(events, key=_message), key=_message)]:
            if _tell(alike, cluster, notify):
                left = reduce(after, alike, left)
        notes.note(left, changed=left is not told)


def _home() -> Path:
    # Importing it takes as long as a worker's start.
    from airflow.configuration import get_airflow_home

    return Path(get_airflow_home())


def _message(event: Event) -> tuple[str, bool]:
    return event.kind.value, event.ended


def _tell(events: tuple[Event, ...], cluster: str, declared: NotifyPolicy) -> bool:
    """Return whether they count as told; what a notifier raised for is left to the next run."""
    if declared.notifier:
        look_at(cluster)
    try:
        notify = configured(within(cluster, declared))
    except InvalidInput as error:
        log.error("%s", error)
        return False
    if notify.notifier is None:
        return True
    failure, again = "", False
    try:
        in_time(DEADLINE, lambda: notify_now(notify, context_of(events)))
    except NotReturned as error:
        failure = str(error)
    except Exception as error:
        failure, again = without_secrets(f"{type(error).__name__}: {error}"), True
    if failure:
        becomes = "failed, and the next run tells it" if again else "is dropped"
        log.error("A notification %s (%s: %s): %s", becomes, notify.notifier, failure, words(events))
    metrics.cluster_count("notifications_dropped" if failure else "notifications", 1, cluster)
    return not again
