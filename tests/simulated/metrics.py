"""A backend of Airflow's metrics, such as a StatsD client."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Metrics:
    """What Airflow's backend of metrics was sent, and the sums of its counters."""

    sent: list[tuple[str, float, dict[str, str]]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def gauge(self, stat: str, value: float, *_: Any, tags: dict[str, str] | None = None) -> None:
        self.sent.append((stat, value, tags or {}))

    def incr(self, stat: str, count: int = 1, *_: Any, tags: dict[str, str] | None = None) -> None:
        self.sent.append((stat, count, tags or {}))
        self.counts[stat] += count
