"""What a supervisor left of a generation that it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class KeptGeneration:
    """`stopped` is how it ended, in words; empty if nobody asked it to stop.

    `logs` are the ends of its logs, by their paths on HDFS.
    """

    stopped: str = ""
    logs: Mapping[str, str] = field(default_factory=dict)


NOTHING_KEPT = KeptGeneration()
