"""What a deferral hands on: from the worker to the trigger, and from one trigger to the next through the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_kstream.policy.streams.blocked_restart import BlockedRestart


@dataclass(frozen=True)
class Memory:
    """The last known facts about a stream. A trigger of an earlier version carries none, one of a later version more.

    `plan` is the start of the restart window, `blind_since` the begin of a blindness that has woken the task `wakings`
    times, `word` the time of the person's last word, `stopped` whether the stream was seen stopped.
    """

    plan: datetime | None = None
    blind_since: datetime | None = None
    wakings: int = 0
    word: datetime | None = None
    stopped: bool = False
    blocked: BlockedRestart | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data: times in ISO 8601."""
        blocked = self.blocked
        return {
            "plan": _written(self.plan),
            "blind_since": _written(self.blind_since),
            "wakings": self.wakings,
            "word": _written(self.word),
            "stopped": self.stopped,
            "blocked": blocked
            and {
                "since": _written(blocked.since),
                "tries": blocked.tries,
                "retry_at": _written(blocked.retry_at),
                "word": _written(blocked.word),
            },
        }

    @classmethod
    def from_json(cls, data: object) -> Memory:
        """Read what `to_json` wrote; what can't be read is forgotten, because a watch without it goes on."""
        if not isinstance(data, Mapping):
            return cls()
        try:
            return cls(
                plan=_read(data.get("plan")),
                blind_since=_read(data.get("blind_since")),
                wakings=int(data.get("wakings") or 0),
                word=_read(data.get("word")),
                stopped=bool(data.get("stopped")),
                blocked=_blocked(data.get("blocked")),
            )
        except (ValueError, TypeError):
            return cls()


def _blocked(data: object) -> BlockedRestart | None:
    if not isinstance(data, Mapping):
        return None
    since, retry_at = _read(data.get("since")), _read(data.get("retry_at"))
    if since is None or retry_at is None:
        return None
    return BlockedRestart(since, int(data.get("tries") or 0), retry_at, _read(data.get("word")))


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _read(text: object) -> datetime | None:
    return None if text is None else datetime.fromisoformat(str(text))
