"""Limits of a recovery run. What nobody sets is a constant of the module that uses it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import InvalidInput

# Up to this version every request restarts a running recovery (HDFS-11576); later ones refuse a second one for 90 s.
_LAST_THAT_RESTARTS = (2, 9, 0)
# The pause before a repeated request to those NameNodes, multiplied by the attempt.
_RETRY_AFTER_OLD = timedelta(seconds=64)
_SHORTEST = timedelta(seconds=1)
PER_DATANODE, IN_ALL = 512, 1000


@dataclass(frozen=True)
class Pauses:
    """The pauses of a run; only a test that can't wait that long sets them.

    `health`: between two health checks. `retry_after`: until the next request for the same file, slightly more than 30
    heartbeats of a DataNode.
    """

    health: timedelta = timedelta(seconds=10)
    retry_after: timedelta = timedelta(seconds=95)

    def before_retry(self, version: str, attempt: int) -> timedelta:
        """Return the pause after the request number `attempt`; for an unknown version, the longer of the two."""
        old = _RETRY_AFTER_OLD * attempt
        match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
        if match is None:
            return max(self.retry_after, old)
        return old if tuple(map(int, match.groups())) <= _LAST_THAT_RESTARTS else self.retry_after


@dataclass(frozen=True)
class RecoveryLimits:
    """The most recoveries at once, on one DataNode and in all (None means no limit), and the time for each file.

    A run starts with fewer and goes up to these limits while files are closed in time. `deadline`: from the first
    request for a file until it is given up.

    Raises InvalidInput: when a limit is below 1, when one DataNode's exceeds that of all, or when `deadline` is below
    1 s.
    """

    per_datanode: int | None = PER_DATANODE
    in_all: int | None = IN_ALL
    deadline: timedelta = timedelta(minutes=15)
    pauses: Pauses = Pauses()

    def __post_init__(self) -> None:
        for name in ("per_datanode", "in_all"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise InvalidInput(f"{name} is {limit}; allowed is 1 or more")
        if self.per_datanode is not None and self.in_all is not None and self.per_datanode > self.in_all:
            raise InvalidInput(f"per_datanode is {self.per_datanode}; allowed is at most in_all, {self.in_all}")
        if self.deadline < _SHORTEST:
            raise InvalidInput(f"deadline is {format_duration(self.deadline)}; allowed is 1s or longer")

    @classmethod
    def unlimited(cls, deadline: timedelta = deadline) -> RecoveryLimits:
        """Return limits without concurrency limits, except for erasure-coded files; all that stops a run still does."""
        return cls(per_datanode=None, in_all=None, deadline=deadline)
