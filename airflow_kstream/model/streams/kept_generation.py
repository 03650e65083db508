"""What a supervisor left of a generation that it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class KeptGeneration:
    """`stopped` is how it ended, in words; empty if nobody asked it to stop.

    `logs` are the ends of its logs, by their paths on HDFS; `unread` names what of all this could not be read, and why.
    """

    stopped: str = ""
    logs: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


NOTHING_KEPT = KeptGeneration()
