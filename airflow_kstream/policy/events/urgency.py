"""How urgent a stream is to the person who looks at a fleet, from what was stored of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.model.streams.stream_state import StreamState
from airflow_kstream.policy.events.attention import ENDED, most_urgent
from airflow_kstream.policy.events.signs import ProgressSigns, Signs, StartSigns, troubles

# A horizon closer than this needs attention today.
SOON = timedelta(days=1)


class Urgency(StrEnum):
    """The groups of a fleet, the most urgent first."""

    HAND = "needs a hand"
    UNSEEN = "not seen"
    UNDER_WAY = "under way"
    SOON = "ends within a day"
    WELL = "well"
    AT_REST = "at rest"


_SLOW = {Pulse.SLOW, Pulse.STARTING}
_RESTS = {Phase.STOPPED, Phase.HELD, Phase.FROZEN}
_PULSES = {pulse.value: pulse for pulse in Pulse}
# The name of the step that waits for a person.
_REFUSE = "refuse"


def urgency(state: StreamState, now: datetime, kinds: Iterable[str], *, stale: bool, succeeded: bool) -> Urgency:
    """Return the group of a stream.

    `kinds` are those of its troubles that nothing but a person may end, `stale` is whether the last look is late, and
    `succeeded` whether the job ended with SUCCEEDED.
    """
    ended = [ENDED] if state.state == Phase.ENDED and not succeeded else []
    if most_urgent([*kinds, *ended, *(trouble.kind for trouble in troubles(_signs(state)))]):
        return Urgency.HAND
    if state.state == Phase.ENDED:
        return Urgency.AT_REST
    if stale or state.state == "unknown":
        return Urgency.UNSEEN
    soon = state.horizon is not None and state.horizon <= now + SOON
    if state.state in _RESTS:
        return Urgency.SOON if soon else Urgency.AT_REST
    if state.state != Phase.RUNNING or state.progress.pulse in _SLOW:
        return Urgency.UNDER_WAY
    return Urgency.SOON if soon else Urgency.WELL


def _signs(state: StreamState) -> Signs:
    """Return what a row shows by itself: an event may have been told of it or not."""
    return Signs(
        why=state.verdict,
        progress=ProgressSigns(pulse=_PULSES.get(state.progress.pulse)),
        start=StartSigns(
            refusal=state.verdict if state.state == _REFUSE else "", waits_for_a_person=state.state == Phase.KILLED
        ),
    )
