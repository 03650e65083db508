"""Blindness: a watched stream without a conclusion, and the task that is woken to look at it instead.

The woken task acts with the stream's own rights on another host, so it may see what the watcher can't. A cause that is
the cluster's wakes one task, because three hundred would learn the same. All times are seconds by one clock of the
watcher's own, so no server's clock can shorten or prolong a wait.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

# Between two wakings of a blind stream, or of a blind cluster's streams: doubled each time, up to this.
_LONGEST_PAUSE = 900.0
# Before a stream whose restart is due is woken again.
_RETRY = 60.0
# Between any two wakings that a cluster's trouble, or a defect that hits all of its streams, causes.
STAGGER = 20.0
# A stream that stays blind for this much longer than another one has a trouble of its own.
_ALONE = 60.0
# One that waits for its turn says so with each look; this is longer than between two looks that are late.
_GIVE_WAY = 240.0


def backoff(first: float, tries: int) -> float:
    """Return the pause before the next try, in seconds: `first`, doubled after each try, up to 15 minutes if it is less
    than that."""
    return float(max(first, min(_LONGEST_PAUSE, first * 2 ** min(tries, 16))))


@dataclass(frozen=True)
class Sight:
    """One watcher's sight of one stream.

    The stream's task itself looked last at `looked`. No watcher has concluded anything since `blind_since`, and this
    one has not since its first failed look, at `failing_since`; both are None while it sees. `patience` is how long a
    trouble of the stream's own wakes nobody. `plan` is the last known start of the restart window. `wakings` counts
    those since a watcher's last conclusion. `shared` tells whether the last trouble may be the cluster's.

    `plan`, `blind_since` and `wakings` come from the task at first. A watcher that continues another one's work long
    after that, because the triggerer was restarted, does not know whether they still hold until it has concluded
    anything itself: it is not `confirmed`.
    """

    looked: float
    patience: float
    plan: float | None = None
    blind_since: float | None = None
    failing_since: float | None = None
    wakings: int = 0
    shared: bool = False
    confirmed: bool = True

    def saw(self, plan: float | None) -> Sight:
        return replace(self, plan=plan, blind_since=None, failing_since=None, wakings=0, confirmed=True)

    def failed(self, now: float, *, shared: bool) -> Sight:
        if self.failing_since is not None and shared == self.shared:
            return self
        blind_since = now if self.blind_since is None else self.blind_since
        failing_since = now if self.failing_since is None else self.failing_since
        return replace(self, blind_since=blind_since, failing_since=failing_since, shared=shared)

    def handed_on(self, now: float) -> Sight:
        """Return the sight of a watcher that begins now with what the task knew.

        Had the stream stayed blind, its task would have been woken again after its pause and a turn: once that is
        over, it has been seen since. Nor does a plan hold that passed so long ago: the stream is held, or fresh tokens
        came. Else an outage would wake the tasks of a whole fleet, one after the other.
        """
        turn = backoff(self.patience, self.wakings) + _LONGEST_PAUSE
        plan = self.plan if self.plan is None or now - max(self.plan, self.looked) <= turn else None
        if now - self.looked <= turn:
            return replace(self, plan=plan, confirmed=True)
        return replace(self, plan=plan, blind_since=None, wakings=0, confirmed=False)

    @property
    def unseen_since(self) -> float | None:
        """Return since when the stream is known to be blind; None if it is not."""
        return self.blind_since if self.confirmed else self.failing_since

    def blind_for(self, now: float) -> float:
        return _between(self.unseen_since, now)

    def failing_for(self, now: float) -> float:
        return _between(self.failing_since, now)

    def is_due(self, now: float) -> bool:
        return self.plan is not None and now >= self.plan

    def rank(self, now: float) -> int:
        """Return the place among those that wait for their turn: lower ones are woken first.

        First those whose restart has become due since their task looked, then those that were woken least.
        """
        return -1 if self.plan is not None and self.looked < self.plan <= now else self.wakings

    def blind_alone(self, cluster: ClusterSight, now: float) -> bool:
        """Return whether this watcher has not seen the stream for long, for a cause that is not the cluster's.

        One minute longer than its patience: the cluster's event begins by then if the cause is the cluster's. One that
        continues another watcher's blindness has failed for a minute itself.
        """
        if self.shared and cluster.unreachable_since is not None:
            return False
        long = self.patience + _ALONE
        return self.blind_for(now) >= long and self.failing_for(now) >= (long if self.shared else _ALONE)


def _between(since: float | None, now: float) -> float:
    return 0.0 if since is None else now - since


@dataclass(frozen=True)
class ClusterSight:
    """The sight of a cluster: the time of the last conclusion about any stream, and of the first failure after it.

    `unreachable_since` is set for as long as the event lasts; `woken` is the time of the last waking. `held_back` has,
    for each rank, the last time at which a stream of it had to wait for its turn. `answers_since` is the time of the
    first conclusion after servers were silent for a minute, None if they were not.
    """

    seen: float = -math.inf
    failing_since: float | None = None
    unreachable_since: float | None = None
    wakings: int = 0
    woken: float | None = None
    held_back: Mapping[int, float] = field(default_factory=dict)
    answers_since: float | None = None

    def saw(self, now: float) -> ClusterSight:
        # One stream that fails now and then is not silence of the servers.
        silent = self.failing_since is not None and now - self.failing_since > _ALONE
        answers = now if silent else self.answers_since
        return replace(self, seen=now, failing_since=None, unreachable_since=None, wakings=0, answers_since=answers)

    def failed(self, now: float, sight: Sight) -> ClusterSight:
        """Return the sight after a stream's failed look: the event begins when failures have lasted for its patience.

        A trouble of one stream alone is not a failure of the cluster, but its task too may have to wait for its turn.
        """
        after = self._failed(now, sight.patience) if sight.shared else self
        if not (_staggered(after, now) and _reason(sight, after, now)):
            return after
        recent = {rank: at for rank, at in self.held_back.items() if now - at < _GIVE_WAY}
        return replace(after, held_back=recent | {sight.rank(now): now})

    def _failed(self, now: float, patience: float) -> ClusterSight:
        since = now if self.failing_since is None else self.failing_since
        begun = since if self.unreachable_since is None and now - since >= patience else self.unreachable_since
        if (since, begun) == (self.failing_since, self.unreachable_since):
            return self
        return replace(self, failing_since=since, unreachable_since=begun)

    def woke(self, now: float, sight: Sight) -> ClusterSight:
        # Others of its rank say at their next look that they wait.
        held_back = {rank: at for rank, at in self.held_back.items() if rank != sight.rank(now)}
        return replace(self, woken=now, wakings=self.wakings + 1, held_back=held_back)


def reason_to_wake(sight: Sight, cluster: ClusterSight, now: float) -> str:
    """Return why the blind stream's task is woken now; empty if it is not.

    A trouble of the stream's own wakes it after its patience. While nobody on the cluster sees, that wakes one task,
    and each other one only when its own restart is due. A trouble that persists wakes again, ever less often: the pause
    counts from the task's last look, whichever watcher came since. Where many wait for a turn, those come first whose
    restart has become due, and then those that had the fewest turns.
    """
    if _staggered(cluster, now) or _gives_way(sight, cluster, now):
        return ""
    return _reason(sight, cluster, now)


def _reason(sight: Sight, cluster: ClusterSight, now: float) -> str:
    """Return why a stream's task would be woken now if it did not have to wait for its turn.

    What another watcher left is not a reason before this one has failed for a minute itself.
    """
    if sight.failing_since is None or (not sight.confirmed and sight.failing_for(now) < _ALONE):
        return ""
    waited = min(sight.blind_for(now), now - sight.looked)
    if sight.is_due(now):
        at_once = not sight.wakings or sight.rank(now) < 0
        due = at_once or waited >= backoff(_RETRY, sight.wakings - 1)
        return "its restart is due, and nothing can be concluded" if due else ""
    if waited < backoff(sight.patience, sight.wakings) or sight.failing_for(now) < min(sight.patience, _ALONE):
        return ""
    if _is_the_clusters(sight, cluster) and not _one_of_all(sight, cluster, now):
        return ""
    return f"nothing could be concluded for {sight.blind_for(now):.0f} s"


def _staggered(cluster: ClusterSight, now: float) -> bool:
    return cluster.woken is not None and now - cluster.woken < STAGGER


def _gives_way(sight: Sight, cluster: ClusterSight, now: float) -> bool:
    return any(rank < sight.rank(now) and now - at < _GIVE_WAY for rank, at in cluster.held_back.items())


def _is_the_clusters(sight: Sight, cluster: ClusterSight) -> bool:
    """Return whether no other stream was seen either since this one was last seen."""
    return sight.shared and (sight.blind_since is None or cluster.seen <= sight.blind_since + _ALONE)


def _one_of_all(sight: Sight, cluster: ClusterSight, now: float) -> bool:
    if cluster.unreachable_since is None:
        return False
    since = max(cluster.unreachable_since, cluster.woken or cluster.unreachable_since)
    return now - since >= backoff(sight.patience, cluster.wakings)
