"""The lifetimes of this cluster's delegation tokens: measured, not assumed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import DelegationToken, TokenLifetimes
from airflow_kstream.supervise.clusters.session import ClusterSession

# Seconds: each measurement is a token that a NameNode makes, renews and cancels.
_FRESH, _AGAIN = 3600.0, 300.0


def _monotonic() -> float:
    return time.monotonic()


def learn_lifetimes(hdfs: Hdfs, identity: Identity) -> TokenLifetimes:
    """Get a token that this identity may renew itself, read and renew it, and cancel it again.

    Spark measures its renewal interval in the same way. No other source shows the real values to a user without
    administrator rights.
    """
    token = hdfs.new_token(renewer=identity.do_as or identity.principal)
    try:
        read = DelegationToken.from_url_string(token)
        renewed_until = hdfs.renew_token(token)
    finally:
        hdfs.cancel_token(token)
    return TokenLifetimes(renew_interval=renewed_until - read.issued, max_lifetime=read.max_date - read.issued)


@dataclass
class RecentLifetimes:
    """The lifetimes of this cluster's tokens, by a measurement that is at most an hour old. Not thread-safe.

    A cluster that can't be asked has the lifetimes that it had, and is asked again after five minutes.
    """

    session: ClusterSession
    clock: Callable[[], float] = _monotonic
    _known: TokenLifetimes | None = None
    _next: float = -math.inf

    def renew_interval(self) -> timedelta | None:
        """Return how long a token lives without a renewal; None if that was never known."""
        now = self.clock()
        if now >= self._next:
            try:
                self._known, wait = learn_lifetimes(self.session.hdfs, self.session.identity), _FRESH
            except KstreamError:
                wait = _AGAIN
            self._next = now + wait
        return self._known.renew_interval if self._known else None
