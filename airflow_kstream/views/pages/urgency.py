"""How urgent a stream is to the person who looks at the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from airflow_kstream.model.streams.heartbeat import Pulse
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream_state import StreamState

# A horizon that is nearer is somebody's business today.
SOON = timedelta(days=1)


class Urgency(StrEnum):
    """The groups of a fleet, the most urgent first."""

    HAND = "needs a hand"
    UNSEEN = "not seen"
    UNDER_WAY = "under way"
    SOON = "ends within a day"
    WELL = "well"
    AT_REST = "at rest"


_ORDER = {urgency: number for number, urgency in enumerate(Urgency)}
_ILL = {Pulse.STALLED, Pulse.START_STALLED, Pulse.CHANGED, Pulse.NO_CHECKPOINT}
_SLOW = {Pulse.SLOW, Pulse.STARTING}
_RESTS = {Phase.STOPPED, Phase.HELD, Phase.FROZEN}
# `refuse` is the name of the step that waits for a person.
_HAND = {Phase.KILLED, "refuse"}


def urgency(state: StreamState, now: datetime, *, troubled: bool, stale: bool, succeeded: bool) -> Urgency:
    """Return the group of a stream.

    `troubled` is whether something is wrong with it, `stale` whether the last look is late, `succeeded` whether a job
    that ended did so well.
    """
    if troubled or state.state in _HAND or state.pulse in _ILL or _ended(state.horizon, now):
        return Urgency.HAND
    if state.state == Phase.ENDED:
        return Urgency.AT_REST if succeeded else Urgency.HAND
    if stale or state.state == "unknown":
        return Urgency.UNSEEN
    soon = _ended(state.horizon, now + SOON)
    if state.state in _RESTS:
        return Urgency.SOON if soon else Urgency.AT_REST
    if state.state != Phase.RUNNING or state.pulse in _SLOW:
        return Urgency.UNDER_WAY
    return Urgency.SOON if soon else Urgency.WELL


def _ended(horizon: datetime | None, now: datetime) -> bool:
    return horizon is not None and horizon <= now


def order(row: Mapping[str, Any]) -> tuple[int, str, str, str]:
    """Return the place of a row: by urgency, then by its restart or the end of its credentials, then by name."""
    horizon = row["horizon"]
    return _ORDER[Urgency(row["urgency"])], horizon["plan"] or horizon["hard"] or "9", row["cluster"], row["stream"]
