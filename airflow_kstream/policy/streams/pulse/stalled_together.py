"""Stalls that are the cluster's: streams that do not get on at the same time, or servers that were silent just now.

Their common cause is elsewhere: a restart would heal none of them, and cost each its state and its place in the queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airflow_kstream.policy.streams.pulse.blindness import ClusterSight

# Of the cluster's streams, so many that do not get on are the cluster's matter; a single one never is.
_SHARE, _AT_LEAST = 1 / 3, 2
# Seconds after which a stream that was not looked at no longer counts: it is not watched here.
_GONE = 600.0


@dataclass(frozen=True)
class _Look:
    at: float
    gets_on: bool


@dataclass(frozen=True)
class Together:
    """The last look at each stream of one cluster. All times are seconds by one clock of the watcher's own."""

    looks: Mapping[str, _Look] = field(default_factory=dict)

    def saw(self, stream: str, now: float, *, gets_on: bool) -> Together:
        """Return what is known after a look that found the stream getting on, or late, or that concluded nothing."""
        return replace(self, looks={**self.looks, stream: _Look(now, gets_on)})

    def why_held_back(self, now: float, sight: ClusterSight, quiet: float) -> str:
        """Return why no stall is a reason for a restart now; empty if one may be.

        Servers that were silent have to have answered for `quiet` seconds: streams get on again by themselves.
        """
        if sight.failing_since is not None:
            return "the cluster's servers do not answer every look"
        if sight.answers_since is not None and now - sight.answers_since < quiet:
            return f"the cluster's servers answer again for {now - sight.answers_since:.0f} s only"
        recent = [look for look in self.looks.values() if now - look.at < _GONE]
        late = sum(not look.gets_on for look in recent)
        if late >= max(_AT_LEAST, len(recent) * _SHARE):
            return f"{late} of {len(recent)} streams do not get on, so the cause may be the cluster's"
        return ""
