"""What a rotated key does to a stream that started with the old one, and when.

The driver logs in afresh for each round of new tokens, with the copy of the keytab that it was submitted with. Rounds
come at a ratio of the tokens' renew interval that the engine knows. The first round after the rotation fails (Spark:
"Failed to update tokens"), and what the last good one brought serves for a renew interval from its issue. Connections
that stand are not asked again: death comes with the first one that is opened after that. A driver that never got a
round of its own lives by the tokens of its launch, and those the ResourceManager renews to their max-lifetime.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_kstream.model.tokens import USUAL_RENEWAL_RATIO


@dataclass(frozen=True)
class RenewalRounds:
    """Rounds at first + k * ratio * interval, each by up to `slack` later: nobody sees from outside when it started.

    `launch_tokens_end` is until when the tokens of the launch can be renewed, where that is known.
    """

    first: datetime
    interval: timedelta
    ratio: float = USUAL_RENEWAL_RATIO
    slack: timedelta = timedelta()
    launch_tokens_end: datetime | None = None

    def latest(self, until: datetime) -> datetime:
        """The last round at or before `until`; the first one, without which there would be no stream, if none is."""
        step = self.interval * self.ratio
        return self.first + max(0, (until - self.first) // step) * step


@dataclass(frozen=True)
class KeyLoss:
    """Between which moments the first renewal fails, and between which the last good tokens end."""

    fails_from: datetime
    fails_by: datetime
    dies_from: datetime
    dies_by: datetime


def key_loss(rounds: RenewalRounds, after: datetime, by: datetime) -> KeyLoss:
    """What follows from a rotation somewhere between `after` and `by`. The earlier bounds are never too late."""
    step = rounds.interval * rounds.ratio
    # However late the driver started: the last round before a moment is less than a step before it, and not after it.
    surely_good = max(rounds.latest(after - rounds.slack), after - step)
    possibly_good = min(rounds.latest(by) + rounds.slack, max(by, rounds.first + rounds.slack))
    dies_by = possibly_good + rounds.interval
    if rounds.launch_tokens_end and by <= rounds.first + rounds.slack:
        # It may have come before the driver's first round.
        dies_by = max(dies_by, rounds.launch_tokens_end)
    return KeyLoss(surely_good + step, possibly_good + step, surely_good + rounds.interval, dies_by)
