"""The state of a stream as it was last seen: what pages show, and what is kept of it outside of any process."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.names import shown_app_name
from airflow_kstream.model.plain import plain
from airflow_kstream.model.streams.generation import Desired, DesiredState

# The states whose words tell how long something takes, so that they differ with each look.
_RESTLESS = {"unknown", "frozen"}


@dataclass(frozen=True)
class Rounds:
    """The looks that are to be stored next, one each `every` seconds. Before they have `begun`, its task has looked.

    `streams` is of how many its triggerer stores looks, 0 where that is not known.
    """

    every: float
    begun: bool
    streams: int = 0


@dataclass(frozen=True)
class TaskIds:
    """The task that watches a stream, as Airflow names it."""

    dag: str = ""
    run: str = ""
    task: str = ""
    map_index: int = -1
    rounds: Rounds | None = field(default=None, compare=False)
    """None where that is not known: an earlier version kept it."""


@dataclass(frozen=True)
class StoredProgress:
    """The progress of a stream as it was last seen."""

    pulse: str = ""
    """Empty where none is judged."""
    committed: datetime | None = None
    """The time of the last commit, by the NameNode's clock."""
    batches: tuple[float, ...] = ()
    """The seconds that the newest batches took, oldest first."""


@dataclass(frozen=True)
class Unlooked:
    """A deferred task whose looks don't come: what is known of it, and how long that must last to be believed."""

    why: str
    patience: timedelta = timedelta()


@dataclass(frozen=True)
class StreamState:
    """A look's result in a few words. Holds no secrets: everybody who may view an asset reads it."""

    state: str
    """A phase, the name of the step that is due, or `unknown`."""
    verdict: str
    """The reason."""
    generation: int
    application: str | None
    seen: datetime
    """When somebody looked, by that host's clock."""
    horizon: datetime | None = None
    """When its credentials end."""
    plan: datetime | None = None
    """When its restart window begins."""
    events: tuple[str, ...] = ()
    """The kinds of the events that last."""
    progress: StoredProgress = StoredProgress()
    desired: Desired | None = None
    """What a person wants of it; None if that is not known."""
    by: TaskIds = TaskIds()
    app_name: str = ""
    """What people call the stream, if that is not its name."""

    @property
    def mark(self) -> Hashable:
        """Return what differs if the state changed. Times move with each look."""
        words = "" if self.state in _RESTLESS else self.verdict
        seen = self.state, words, self.generation, self.application, self.progress.pulse, self.events
        return *seen, self.desired, self.by, self.app_name

    def to_json(self) -> dict[str, Any]:
        """Return plain data: times in ISO 8601."""
        return {
            "version": 1,
            "state": self.state,
            "verdict": self.verdict,
            "generation": self.generation,
            "application": self.application,
            "app_name": self.app_name,
            "seen": self.seen.isoformat(),
            "pulse": self.progress.pulse,
            "horizon": self.horizon.isoformat() if self.horizon else None,
            "plan": self.plan.isoformat() if self.plan else None,
            "events": list(self.events),
            "committed": self.progress.committed.isoformat() if self.progress.committed else None,
            "batches": list(self.progress.batches),
            "desired": plain(self.desired),
            "dag": self.by.dag,
            "run": self.by.run,
            "task": self.by.task,
            "map_index": self.by.map_index,
            "rounds": plain(self.by.rounds),
        }

    @classmethod
    def from_json(cls, data: object) -> StreamState | None:
        """Read what `to_json` wrote; None if that can't be read. A later version may have written more."""
        if not isinstance(data, Mapping):
            return None
        try:
            return cls(
                state=str(data["state"]),
                verdict=str(data.get("verdict") or ""),
                generation=int(data.get("generation") or 0),
                application=data.get("application"),
                seen=datetime.fromisoformat(data["seen"]),
                progress=StoredProgress(
                    pulse=str(data.get("pulse") or ""),
                    committed=_moment(data.get("committed")),
                    batches=tuple(float(seconds) for seconds in data.get("batches") or ()),
                ),
                horizon=_moment(data.get("horizon")),
                plan=_moment(data.get("plan")),
                events=tuple(str(kind) for kind in data.get("events") or ()),
                desired=_desired(data.get("desired")),
                by=TaskIds(
                    str(data.get("dag") or ""),
                    str(data.get("run") or ""),
                    str(data.get("task") or ""),
                    int(data.get("map_index", -1)),
                    _rounds(data.get("rounds")),
                ),
                app_name=shown_app_name(str(data.get("app_name") or "")),
            )
        except (KeyError, ValueError, TypeError):
            return None


def _desired(data: object) -> Desired | None:
    if not isinstance(data, Mapping):
        return None
    state, at = DesiredState(data["state"]), _moment(data.get("at"))
    by, reason, author = (str(data.get(name) or "") for name in ("by", "reason", "author"))
    return Desired(
        state, int(data.get("restart_up_to") or 0), by, at, reason, author, number=int(data.get("number") or 0)
    )


def _rounds(data: object) -> Rounds | None:
    if not isinstance(data, Mapping):
        return None
    return Rounds(float(data["every"]), bool(data["begun"]), int(data.get("streams") or 0))


def _moment(text: object) -> datetime | None:
    return None if text is None else datetime.fromisoformat(str(text))
