"""Wait, in the triggerer, until one poll finds what is awaited, or until an error ends the wait."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, NoReturn

from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_kstream.model.errors import CredentialError, KstreamError, NotFound
from airflow_kstream.model.printable import storable


def is_transient(error: KstreamError) -> bool:
    """Return whether waiting can help: a server can come back, and a file can appear."""
    return error.retryable or isinstance(error, NotFound)


def fired(payload: Mapping[str, Any]) -> TriggerEvent:
    """Return the event with this payload, whatever others wrote in it: a triggerer ends by one that can't be stored."""
    return TriggerEvent(storable(payload))  # type: ignore[no-untyped-call]


def error_event(error: KstreamError) -> TriggerEvent:
    """Return the error as an event, which `raise_event` raises on the worker."""
    fields = {name: getattr(error, name) for name in ("message", "tried", "server", "principal")}
    final = not isinstance(error, CredentialError)
    return fired({"error": fields, "final": final})


def raise_event(event: dict[str, Any]) -> NoReturn:
    """Raise the error that ended the trigger's wait, as `raise_error` does."""
    error = KstreamError if event["final"] else CredentialError
    raise_error(error(**event["error"]))


def raise_error(error: KstreamError) -> NoReturn:
    """Fail the task without retries, except for a CredentialError: a renewed ticket lets a later try succeed."""
    if not isinstance(error, CredentialError):
        raise AirflowFailException(str(error)) from error
    message = (
        f"{error.message.rstrip('.')}; renew the principal's ticket (kstream tickets renew), or get its new keytab"
    )
    raise CredentialError(message, tried=error.tried, server=error.server, principal=error.principal) from error


# A trigger that fires before the scheduler saw its task's worker end costs the task a try: the scheduler takes the late
# end for that of the resumed task (apache/airflow#71580, #72716). Two of the worker's heartbeats at Airflow's default.
SETTLING_SECONDS = 10.0

Poll = Callable[[], Awaitable[dict[str, Any] | None]]


class PollingTrigger(BaseTrigger):
    """A trigger that fires once: with `report` when the awaited thing has come, with `error` when waiting can't help.

    It keeps waiting while a server is unreachable or a file does not exist yet. `awaited` comes from the sensor.
    """

    def __init__(self, awaited: Mapping[str, Any], every_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.awaited = awaited
        self.every_seconds = every_seconds

    @abstractmethod
    def open_poll(self) -> AbstractAsyncContextManager[Poll]:
        """Yield the poll: it returns the report of what has come, or None, and raises KstreamError."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "awaited": dict(self.awaited),
            "every_seconds": self.every_seconds,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(SETTLING_SECONDS)
        logged = ""
        async with self.open_poll() as poll:
            while True:
                try:
                    report = await poll()
                except KstreamError as error:
                    if str(error) != logged:
                        self.log.warning("%s", error)
                    logged = str(error)
                    if not is_transient(error):
                        yield error_event(error)
                        return
                else:
                    logged = ""
                    if report is not None:
                        yield fired({"report": report})
                        return
                await asyncio.sleep(self.every_seconds)


class ClusterPollingTrigger(PollingTrigger):
    """A polling trigger that polls the cluster of a connection."""

    def __init__(self, cluster_conn_id: str, awaited: Mapping[str, Any], every_seconds: float) -> None:
        super().__init__(awaited, every_seconds)
        self.cluster_conn_id = cluster_conn_id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        name, fields = super().serialize()
        return name, {"cluster_conn_id": self.cluster_conn_id, **fields}
