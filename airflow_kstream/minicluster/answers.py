"""Answers of daemons: the errors of those that do not serve, and patience with those that serve soon."""

from __future__ import annotations

from collections.abc import Callable

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airflow_kstream.clients.lazy import gssapi, krb5
from airflow_kstream.model.errors import MiniclusterError

_ACTIVE_WITHIN_SECONDS = 60.0


class NotReady(Exception):
    """The daemon answers that it does not serve yet."""


def not_serving() -> tuple[type[Exception], ...]:
    """Return the errors of a request to a daemon that does not serve yet, also while the KDC is unreachable."""
    # OSError includes every exception of requests.
    return NotReady, OSError, LookupError, ValueError, krb5.Krb5Error, gssapi.raw.misc.GSSError


def patiently(ask: Callable[[], str]) -> str:
    """Look for the active server of a pair for up to a minute: a busy one answers late, and in a failover none is."""
    return Retrying(
        retry=retry_if_exception_type(MiniclusterError),
        stop=stop_after_delay(_ACTIVE_WITHIN_SECONDS),
        wait=wait_fixed(0.2),
        reraise=True,
    )(ask)
