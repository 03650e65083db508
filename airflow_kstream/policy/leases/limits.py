"""How fast leases are recovered, for how long, and what stops it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta

from airflow_kstream.model.errors import InvalidInput

# Up to here every request restarts a running recovery (HDFS-11576); later ones refuse a second one for 90 s.
_LAST_THAT_RESTARTS = (2, 9, 0)


@dataclass(frozen=True)
class ConcurrencySettings:
    """How many recoveries may run at once; None is no limit.

    Each DataNode begins with `start`, doubles whenever so many have closed well, up to `per_datanode`, and halves on
    trouble: a file that is not closed after `slow_close`. All together the same, up to `in_all`, with refused
    requests and answers slower than `slow_answer` for trouble. `erasure_coded`: of these the NameNode and the
    DataNodes have bugs (HDFS-17150, HDFS-17358), so the bold keep that limit.
    """

    start: int | None = 32
    per_datanode: int | None = 256
    in_all: int | None = 1000
    erasure_coded: int = 2
    slow_close: timedelta = timedelta(seconds=15)
    slow_answer: timedelta = timedelta(seconds=1)

    def __post_init__(self) -> None:
        for name in ("start", "per_datanode", "in_all", "erasure_coded"):
            given = getattr(self, name)
            if given is not None and given < 1:
                raise InvalidInput(f"{name} is {given}; allowed is 1 or more")


@dataclass(frozen=True)
class Timeouts:
    """How long things may take.

    `deadline`: from the first request for a file until it is given up. `retry_after`: when the NameNode is asked again,
    30 heartbeats of a DataNode and some; `retry_after_old` the same, times the attempt, for NameNodes up to 2.9.0.
    `poll`: between two looks at a file that does not close, at most. `health`: between two looks at the cluster;
    `without_health`: for how long the NameNode may say nothing of it.
    """

    deadline: timedelta = timedelta(minutes=15)
    retry_after: timedelta = timedelta(seconds=95)
    retry_after_old: timedelta = timedelta(seconds=64)
    poll: timedelta = timedelta(seconds=15)
    health: timedelta = timedelta(seconds=10)
    without_health: timedelta = timedelta(minutes=2)

    def before_retry(self, version: str, attempt: int) -> timedelta:
        """How long to leave a recovery alone that was asked for `attempt` times. Unknown versions get the longer."""
        old = self.retry_after_old * attempt
        match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
        if match is None:
            return max(self.retry_after, old)
        return old if tuple(map(int, match.groups())) <= _LAST_THAT_RESTARTS else self.retry_after


@dataclass(frozen=True)
class SafetyLimits:
    """What stops a run; None is nothing.

    More than `dead` or `stale` DataNodes, or more than `newly_lost` of both together beyond what the start saw: a
    recovery while DataNodes go can take the standby NameNode down (HDFS-17861). `failures`: the share of given-up
    files, of at least `of_at_least` that were tried to the end. `in_a_row`: after so many given-up files of one
    DataNode without a closed one, the rest of that DataNode's is left alone.
    """

    dead: int | None = 10
    stale: int | None = 10
    newly_lost: int | None = 1
    failures: float | None = 0.05
    of_at_least: int = 20
    in_a_row: int = 3


@dataclass(frozen=True)
class RecoveryLimits:
    concurrency: ConcurrencySettings = ConcurrencySettings()
    timeouts: Timeouts = Timeouts()
    safety: SafetyLimits = SafetyLimits()

    @classmethod
    def unlimited(cls) -> RecoveryLimits:
        """As many at once as there are, but for erasure-coded files; what stops a run still stops it."""
        limits = cls()
        return replace(limits, concurrency=replace(limits.concurrency, start=None, per_datanode=None, in_all=None))
