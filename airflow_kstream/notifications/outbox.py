"""The way of an event to a notifier. Nothing waits for it: neither a watch nor the loop of the triggerer.

A notifier runs in a thread of its own and has `DEADLINE` seconds. A thread can't be ended, so one that hangs is
left behind, and a notifier that has left `AT_ONCE` behind gets no further event until one of them returns. One that
raises, or is too busy to get an event, is tried again, a minute and a quarter of an hour later. What can't be told is
dropped, with a line in the log and a metric.

An event counts as told when its notifier returned, or when it was dropped. A triggerer that ends before tells the
event again when it is back, so a notifier may tell one event twice and never leaves one out silently.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from typing import Any, TypeVar

from airflow_kstream import metrics, settings
from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.streams.event import Event, in_all_forms, link
from airflow_kstream.notifications.notifier import judged, notify_now
from airflow_kstream.policy.events.bundles import Bundles, Key, words

T = TypeVar("T")

log = logging.getLogger(__name__)

# Seconds.
DEADLINE = 30.0
PAUSES = (60.0, 900.0)
AT_ONCE = 2
# Events of a bundle that a notifier gets one by one.
_LISTED = 100

Settled = Callable[[Event], None]


class NotReturned(Exception):
    """The lack of any answer by a deadline. What is called may raise a TimeoutError of its own, which is an answer."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it has not returned within {seconds:.0f} s")


class Outbox:
    """The events of one process that leave it, in bundles. To be used from one event loop.

    `settled` is called once for each event that was told or dropped, or that was over before its message left.
    """

    def __init__(self, settled: Settled) -> None:
        self._settled = settled
        self._bundles = Bundles()
        self._notifiers: dict[str, NotifyPolicy] = {}
        self._free: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(AT_ONCE))
        self._changed = asyncio.Event()
        self._rounds: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    def put(self, notify: NotifyPolicy, event: Event) -> None:
        """Take an event; it leaves with others of its kind, a moment later. Never blocks."""
        if self._bundles.full:
            self._drop(notify, (event,), "too many events wait")
            return
        self._notifiers[notify.key] = notify
        waited = self._bundles.count
        self._bundles = self._bundles.add(notify.key, event, asyncio.get_running_loop().time())
        if self._bundles.count < waited:
            # It took back its begin, which nobody was told of.
            self._settle((replace(event, until=None), event))
        self._changed.set()
        if self._rounds is None or self._rounds.done():
            # A context of its own: its lines must not land in the log of the task that happened to be first.
            self._rounds = asyncio.create_task(self._send_what_is_due(), context=Context())

    async def _send_what_is_due(self) -> None:
        """Send bundles as they fall due, and end when none waits."""
        loop = asyncio.get_running_loop()
        while (due := self._bundles.next_due) is not None:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(due - loop.time(), 0.0)):
                    await self._changed.wait()
            self._bundles, leaving = self._bundles.take(loop.time())
            for key, events in leaving.items():
                task = asyncio.create_task(self._tell(key, events))
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)

    async def _tell(self, key: Key, events: tuple[Event, ...]) -> None:
        notify = self._notifiers[str(key.notifier)]
        if notify.notifier is None:
            self._settle(events)
            return
        why = ""
        for pause in (0.0, *PAUSES):
            await asyncio.sleep(pause)
            try:
                await self._try(notify, key.cluster, events)
            except NotReturned as error:
                # It may have told the event: another try could tell it twice.
                self._drop(notify, events, str(error))
                return
            except Exception as error:
                why = without_secrets(f"{type(error).__name__}: {error}")
                log.warning("%s failed, and is tried again: %s", notify.notifier, why)
            else:
                metrics.cluster_count("notifications", 1, key.cluster)
                self._settle(events)
                return
        self._drop(notify, events, why)

    async def _try(self, notify: NotifyPolicy, cluster: str, events: tuple[Event, ...]) -> None:
        """Raises NotReturned: when the notifier hangs. Raises Unavailable: when it got none, busy with others."""
        free = self._free[notify.key]
        try:
            async with asyncio.timeout(DEADLINE):
                await free.acquire()
        except TimeoutError:
            raise Unavailable(f"earlier events have occupied it for {DEADLINE:.0f} s") from None
        try:
            told = in_thread(lambda: notify_now(judged(cluster, notify), context_of(events)))
        except RuntimeError:
            # This host starts no thread at the moment.
            free.release()
            raise
        told.add_done_callback(lambda _: free.release())
        # After it the thread goes on, and so does its future.
        done, _ = await asyncio.wait({told}, timeout=DEADLINE)
        if not done:
            raise NotReturned(DEADLINE)
        told.result()

    def _drop(self, notify: NotifyPolicy, events: tuple[Event, ...], why: str) -> None:
        log.error("A notification is dropped (%s: %s): %s", notify.notifier, why, words(events))
        metrics.cluster_count("notifications_dropped", 1, events[0].cluster)
        self._settle(events)

    def _settle(self, events: tuple[Event, ...]) -> None:
        for event in events:
            self._settled(event)


def context_of(events: tuple[Event, ...]) -> Mapping[str, Any]:
    """Return the context of a notifier: `event` is the first of the bundle, its words, in all forms, tell all of it.

    Where `[kstream] docs_url` names a site, the words of a begin end with a link to the runbook's entry.
    """
    runbook = link(settings.text("docs_url"), events[0].kind)
    message = words(events) + (f" Runbook: {runbook}" if runbook and not events[0].ended else "")
    return {
        "event": {**events[0].to_json(), **in_all_forms(message), "count": len(events), "runbook": runbook},
        "events": [event.to_json() for event in events[:_LISTED]],
    }


def in_thread(work: Callable[[], None]) -> asyncio.Future[None]:
    """Start the work in a daemon thread of its own, which keeps no process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
            # Nobody waits for it after the deadline.
            done.exception()

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except Exception as failed:
            error = failed
        except BaseException as failed:
            error = RuntimeError(f"it ended with {failed!r}")
        # The loop may be closed by then.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name="kstream-notifier", daemon=True).start()
    return done


def in_time(seconds: float, work: Callable[[], T]) -> T:
    """Do the work in a thread of its own and return what it returns.

    Raises what it raises, and NotReturned: when it has not returned by then. A thread can't be ended: it is left
    behind, and keeps no process from ending.
    """
    returned: list[T] = []
    raised: list[Exception] = []

    def run() -> None:
        try:
            returned.append(work())
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="kstream-in-time", daemon=True)
    thread.start()
    thread.join(seconds)
    for error in raised:
        raise error
    for value in returned:
        return value
    raise NotReturned(seconds)
