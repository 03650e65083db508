"""Errors during a wait: either it goes on, or the error ends it, on the worker as in the triggerer."""

from __future__ import annotations

from typing import Any, NoReturn

from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import TriggerEvent

from airflow_kstream.model.errors import CredentialError, KstreamError, NotFound


def is_transient(error: KstreamError) -> bool:
    """Return whether waiting can help: a server can come back, and a file can appear."""
    return error.retryable or isinstance(error, NotFound)


def error_event(error: KstreamError) -> TriggerEvent:
    """Return the error as an event, which `raise_event` raises on the worker."""
    fields = {name: getattr(error, name) for name in ("message", "tried", "server", "principal")}
    final = not isinstance(error, CredentialError)
    return TriggerEvent({"error": fields, "final": final})  # type: ignore[no-untyped-call]


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
