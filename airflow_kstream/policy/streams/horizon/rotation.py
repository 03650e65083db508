"""The effect of a rotated key on a stream that started with the old one, and its timing.

The driver logs in again for each round of new tokens, with the copy of the keytab that it was submitted with. Rounds
come at a ratio of the tokens' renew interval that the engine knows. The first round after the rotation fails (Spark:
"Failed to update tokens"); the tokens of the last good round serve for one renew interval from their issue. Established
connections are not checked again: the job dies with the first connection that it opens after that. A driver that never
had a round of its own lives on its launch tokens, which the ResourceManager renews up to their max-lifetime.

`identity_of` is the identity that a stream acts as.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import USUAL_RENEWAL_RATIO
from airflow_kstream.model.streams.stream import KeytabCredentials, ProxyUserCredentials, StreamSpec, TicketCredentials


@dataclass(frozen=True)
class RenewalRounds:
    """Rounds at first + k * ratio * interval, each up to `slack` later: the exact start is not visible from outside.

    `launch_tokens_end` is the moment until which the launch tokens can be renewed, None if unknown.
    """

    first: datetime
    interval: timedelta
    ratio: float = USUAL_RENEWAL_RATIO
    slack: timedelta = timedelta()
    launch_tokens_end: datetime | None = None

    def latest(self, until: datetime) -> datetime:
        """Return the last round at or before `until`; if there is none, the first, which every stream had."""
        step = self.interval * self.ratio
        return self.first + max(0, (until - self.first) // step) * step


@dataclass(frozen=True)
class KeyLoss:
    """The bounds of the moment when the first renewal fails, and of the moment when the last good tokens end."""

    fails_from: datetime
    fails_by: datetime
    dies_from: datetime
    dies_by: datetime


def key_loss(rounds: RenewalRounds, after: datetime, by: datetime) -> KeyLoss:
    """Derive the loss from a rotation somewhere between `after` and `by`. The earlier bounds are never too late."""
    step = rounds.interval * rounds.ratio
    # Regardless of the driver's start, the last round before a moment is less than one step before it, never after it.
    surely_good = max(rounds.latest(after - rounds.slack), after - step)
    possibly_good = min(rounds.latest(by) + rounds.slack, max(by, rounds.first + rounds.slack))
    dies_by = possibly_good + rounds.interval
    if rounds.launch_tokens_end and by <= rounds.first + rounds.slack:
        # The rotation may have come before the driver's first round.
        dies_by = max(dies_by, rounds.launch_tokens_end)
    return KeyLoss(surely_good + step, possibly_good + step, surely_good + rounds.interval, dies_by)


def identity_of(spec: StreamSpec, cluster: Cluster) -> Identity:
    """Return the identity that submits the stream, stops it and reads its files.

    Raises InvalidInput: when it is to use the connection's keytab or cache, and the connection has none of it.
    """
    match spec.credentials:
        case KeytabCredentials(principal):
            keytab = keytab_of(spec, cluster)
            if not keytab:
                raise InvalidInput(f"credentials: {principal} needs a keytab; the connection has none of it")
            return Identity(principal, keytab=keytab)
        case ProxyUserCredentials(user):
            watcher = cluster.watcher
            return Identity(watcher.principal, watcher.keytab, watcher.ticket_cache, do_as=user)
        case TicketCredentials(principal, keytab, cache):
            if principal is None or principal == cluster.watcher.principal:
                return Identity(
                    principal or cluster.watcher.principal,
                    keytab or (None if cache else cluster.watcher.keytab),
                    cache or (None if keytab else cluster.watcher.ticket_cache),
                )
            if keytab is None and cache is None:
                raise InvalidInput(f"credentials: {principal} needs a keytab or a cache; the connection has another's")
            return Identity(principal, keytab, cache)


def keytab_of(spec: StreamSpec, cluster: Cluster) -> str | None:
    """Return the path of the keytab that the job gets, declared or else the connection's; None if it gets none."""
    match spec.credentials:
        case KeytabCredentials(principal, keytab):
            return keytab or (cluster.watcher.keytab if principal == cluster.watcher.principal else None)
        case _:
            return None
