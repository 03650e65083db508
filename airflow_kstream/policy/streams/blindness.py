"""Blindness: a watched stream without a conclusion, and the task that is woken to look at it instead.

The woken task acts with the stream's own rights on another host, so it may see what the watcher can't. A cause that is
the cluster's wakes one task, because three hundred would learn the same. All times are seconds by one clock of the
watcher's own, so no server's clock can shorten or prolong a wait. What a task or an earlier watcher handed on was read
from another host's clock: it can shorten a pause, but never to less than the patience.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

# Between two wakings of a blind stream, or of a blind cluster's streams: doubled each time, up to this.
_LONGEST_PAUSE = 900.0
# Before a stream whose restart is due is woken again.
_RETRY = 60.0
# Between any two wakings that a cluster's trouble, or a defect that hits all of its streams, causes.
STAGGER = 20.0
# A stream that stays blind for this much longer than another one has a trouble of its own.
_ALONE = 60.0
# Repeated wakings give way to a first one that waited so recently; longer than between two late looks at a stream.
_GIVE_WAY = 240.0


def backoff(first: float, tries: int) -> float:
    """Return the pause before the next try, in seconds: `first`, doubled after each try, up to 15 minutes if it is less
    than that."""
    return float(max(first, min(_LONGEST_PAUSE, first * 2 ** min(tries, 16))))


@dataclass(frozen=True)
class Sight:
    """One watcher's sight of one stream.

    The stream's task itself looked last at `looked`. Nobody has concluded anything since `blind_since`, and this
    watcher has not since its look at `failing_since`, which is later if another one watched before it; both are None
    while it sees. Within `patience` nobody is woken. `plan` is the last known start of the restart window. `wakings`
    counts those since the last conclusion. `shared` tells whether the last trouble may be the cluster's.
    """

    looked: float
    patience: float
    plan: float | None = None
    blind_since: float | None = None
    failing_since: float | None = None
    wakings: int = 0
    shared: bool = False

    def saw(self, plan: float | None) -> Sight:
        return replace(self, plan=plan, blind_since=None, failing_since=None, wakings=0)

    def failed(self, now: float, *, shared: bool) -> Sight:
        if self.failing_since is not None and shared == self.shared:
            return self
        blind_since = now if self.blind_since is None else self.blind_since
        failing_since = now if self.failing_since is None else self.failing_since
        return replace(self, blind_since=blind_since, failing_since=failing_since, shared=shared)

    def recalls(self, seen: float | None) -> Sight:
        """Return what is known beside an earlier watcher's last conclusion at `seen`, None if there is none.

        If that was after the task's last look, the blindness that the task handed on was over by then.
        """
        if seen is None or seen <= self.looked:
            return self
        return replace(self, blind_since=self.failing_since, wakings=0)

    def blind_for(self, now: float) -> float:
        return 0.0 if self.blind_since is None else now - self.blind_since

    def failing_for(self, now: float) -> float:
        return 0.0 if self.failing_since is None else now - self.failing_since

    def blind_alone(self, cluster: ClusterSight, now: float) -> bool:
        """Return whether this watcher has not seen the stream for long, for a cause that is not the cluster's.

        One minute longer than its patience: the cluster's event begins by then if the cause is the cluster's. One that
        continues another watcher's blindness has failed at least twice itself.
        """
        if self.shared and cluster.unreachable_since is not None:
            return False
        long = self.patience + _ALONE
        return self.blind_for(now) >= long and self.failing_for(now) >= (long if self.shared else _ALONE)


@dataclass(frozen=True)
class ClusterSight:
    """The sight of a cluster: the time of the last conclusion about any stream, and of the first failure after it.

    `unreachable_since` is set for as long as the event lasts; `woken` is the time of the last waking, and `held_back`
    that at which a stream's first one last had to wait for its turn. `answers_since` is the time of the first
    conclusion after servers were silent for a minute, None if they were not.
    """

    seen: float = -math.inf
    failing_since: float | None = None
    unreachable_since: float | None = None
    wakings: int = 0
    woken: float | None = None
    held_back: float = -math.inf
    answers_since: float | None = None

    def saw(self, now: float) -> ClusterSight:
        # One stream that fails now and then is no silence of the servers.
        silent = self.failing_since is not None and now - self.failing_since > _ALONE
        answers = now if silent else self.answers_since
        return replace(self, seen=now, failing_since=None, unreachable_since=None, wakings=0, answers_since=answers)

    def failed(self, now: float, sight: Sight) -> ClusterSight:
        """Return the sight after a stream's failed look: the event begins when failures have lasted for its patience.

        A trouble of one stream alone is no failure of the cluster, but its task too may have to wait for its turn.
        """
        after = self._failed(now, sight.patience) if sight.shared else self
        held_back = not sight.wakings and _staggered(after, now) and _reason(sight, after, now)
        return replace(after, held_back=now) if held_back else after

    def _failed(self, now: float, patience: float) -> ClusterSight:
        since = now if self.failing_since is None else self.failing_since
        begun = since if self.unreachable_since is None and now - since >= patience else self.unreachable_since
        if (since, begun) == (self.failing_since, self.unreachable_since):
            return self
        return replace(self, failing_since=since, unreachable_since=begun)

    def woke(self, now: float) -> ClusterSight:
        return replace(self, woken=now, wakings=self.wakings + 1)


def reason_to_wake(sight: Sight, cluster: ClusterSight, now: float) -> str:
    """Return why the blind stream's task is woken now; empty if it is not.

    A trouble of the stream's own wakes it after its patience. While nobody on the cluster sees, that wakes one task,
    and each other one only when its own restart is due. A trouble that persists wakes again, ever less often: the pause
    counts from the task's last look, whichever watcher came since. But no watcher wakes it before it has been blind for
    the patience itself, and all streams are woken once before one of them is woken again.
    """
    if _staggered(cluster, now) or (sight.wakings and now - cluster.held_back < _GIVE_WAY):
        return ""
    return _reason(sight, cluster, now)


def _reason(sight: Sight, cluster: ClusterSight, now: float) -> str:
    """Return why a stream's task would be woken now if it did not have to wait for its turn."""
    if sight.failing_since is None:
        return ""
    waited = min(sight.blind_for(now), now - sight.looked)
    if sight.plan is not None and now >= sight.plan:
        due = not sight.wakings or waited >= backoff(_RETRY, sight.wakings - 1)
        return "its restart is due, and nothing can be concluded" if due else ""
    if waited < backoff(sight.patience, sight.wakings) or sight.failing_for(now) < sight.patience:
        return ""
    if _is_the_clusters(sight, cluster) and not _one_of_all(sight, cluster, now):
        return ""
    return f"nothing could be concluded for {sight.blind_for(now):.0f} s"


def _staggered(cluster: ClusterSight, now: float) -> bool:
    return cluster.woken is not None and now - cluster.woken < STAGGER


def _is_the_clusters(sight: Sight, cluster: ClusterSight) -> bool:
    """Return whether no other stream was seen either since this one was last seen."""
    return sight.shared and (sight.blind_since is None or cluster.seen <= sight.blind_since + _ALONE)


def _one_of_all(sight: Sight, cluster: ClusterSight, now: float) -> bool:
    if cluster.unreachable_since is None:
        return False
    since = max(cluster.unreachable_since, cluster.woken or cluster.unreachable_since)
    return now - since >= backoff(sight.patience, cluster.wakings)
