"""The state of a stream as it was last seen: what pages show, and what is kept of it outside of any process."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.names import shown_app_name
from airflow_kstream.model.plain import (
    as_duration,
    as_mapping,
    as_moment,
    as_number,
    as_text,
    as_whole,
    list_of,
    plain,
)
from airflow_kstream.model.streams.generation import Desired, DesiredState

# The states whose words tell how long something takes, so that they differ with each look.
_RESTLESS = {"unknown", "frozen"}
# More than any triggerer serves.
_MOST_STREAMS = 10_000


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
        """Read what `to_json` wrote; None if that can't be read. A later version may have written more.

        Any task that names the asset may have written it: a field that can't be read is left out.
        """
        if not isinstance(data, Mapping):
            return None
        state, generation, seen = data.get("state"), as_whole(data.get("generation") or 0), as_moment(data.get("seen"))
        if not isinstance(state, str) or generation is None or seen is None:
            return None
        index = as_whole(data.get("map_index"))
        return cls(
            state=state,
            verdict=as_text(data.get("verdict")),
            generation=generation,
            application=as_text(data.get("application")) or None,
            seen=seen,
            progress=StoredProgress(
                pulse=as_text(data.get("pulse")),
                committed=as_moment(data.get("committed")),
                batches=tuple(list_of(as_number)(data.get("batches"))),
            ),
            horizon=as_moment(data.get("horizon")),
            plan=as_moment(data.get("plan")),
            events=tuple(list_of(as_text)(data.get("events"))),
            desired=_desired(as_mapping(data.get("desired"))),
            by=TaskIds(
                as_text(data.get("dag")),
                as_text(data.get("run")),
                as_text(data.get("task")),
                -1 if index is None else index,
                _rounds(as_mapping(data.get("rounds"))),
            ),
            app_name=shown_app_name(as_text(data.get("app_name"))),
        )


def _desired(data: Mapping[str, Any]) -> Desired | None:
    if data.get("state") not in [*DesiredState]:
        return None
    by, reason, author = (as_text(data.get(name)) for name in ("by", "reason", "author"))
    up_to, number = (as_whole(data.get(name)) or 0 for name in ("restart_up_to", "number"))
    return Desired(DesiredState(data["state"]), up_to, by, as_moment(data.get("at")), reason, author, number)


def _rounds(data: Mapping[str, Any]) -> Rounds | None:
    every, streams = as_duration(data.get("every")), as_whole(data.get("streams") or 0)
    if every is None or streams is None:
        return None
    # The patience with all streams grows with it.
    return Rounds(every.total_seconds(), data.get("begun") is True, min(streams, _MOST_STREAMS))
