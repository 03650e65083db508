"""Limits of a recovery run: its concurrency, its timeouts, and what stops it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta

from airflow_kstream.model.errors import InvalidInput

# Up to this version every request restarts a running recovery (HDFS-11576); later ones refuse a second one for 90 s.
_LAST_THAT_RESTARTS = (2, 9, 0)


@dataclass(frozen=True)
class ConcurrencySettings:
    """The number of recoveries that may run at once; None is no limit.

    Each DataNode's limit begins at `start`, doubles after that many files were closed in time, up to `per_datanode`,
    and halves after a failure: a file that is not closed within `slow_close`. The limit of all together does the same,
    up to `in_all`; there, refused requests and answers slower than `slow_answer` are failures. `erasure_coded` limits
    those files even in an unlimited run, because of bugs in NameNode and DataNodes (HDFS-17150, HDFS-17358).
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
    """The times after which a run retries, checks again or gives up.

    `deadline`: from the first request for a file until it is given up. `retry_after`: until the next request, slightly
    more than 30 heartbeats of a DataNode; `retry_after_old`: the same for NameNodes up to 2.9.0, multiplied by the
    attempt. `poll`: the longest pause between two polls of a file that does not close. `health`: between two health
    checks; `without_health`: how long the cluster's health may stay unknown.
    """

    deadline: timedelta = timedelta(minutes=15)
    retry_after: timedelta = timedelta(seconds=95)
    retry_after_old: timedelta = timedelta(seconds=64)
    poll: timedelta = timedelta(seconds=15)
    health: timedelta = timedelta(seconds=10)
    without_health: timedelta = timedelta(minutes=2)

    def before_retry(self, version: str, attempt: int) -> timedelta:
        """Return the pause after the request number `attempt`; for an unknown version, the longer of the two."""
        old = self.retry_after_old * attempt
        match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
        if match is None:
            return max(self.retry_after, old)
        return old if tuple(map(int, match.groups())) <= _LAST_THAT_RESTARTS else self.retry_after


@dataclass(frozen=True)
class SafetyLimits:
    """The limits that stop a run; None is no limit.

    More than `dead` or `stale` DataNodes stop it, or more than `newly_lost` of both together beyond those at the start:
    recovering while DataNodes leave can take the standby NameNode down (HDFS-17861). `failures`: the share of given-up
    files, counted once `of_at_least` files were closed or given up. `in_a_row`: after this many given-up files of one
    DataNode without a closed one, the run leaves the rest of that DataNode's files alone.
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
        """Return limits without concurrency limits, except for erasure-coded files; the safety limits still apply."""
        limits = cls()
        return replace(limits, concurrency=replace(limits.concurrency, start=None, per_datanode=None, in_all=None))
