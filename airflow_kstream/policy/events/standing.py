"""How a trouble that somebody was told of stands now, for who looks.

An event keeps the words of its begin, and one of a stall outlives its generation: only a commit of the next one shows
that it is over. So a look may know more than the event, and its way out may be taken already.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from airflow_kstream.model.streams.event import WORDS, EventKind, LastingEvent
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.model.streams.stream_state import StreamState
from airflow_kstream.policy.events.attention import way_out

_STALLED = {Pulse.STALLED, Pulse.START_STALLED}
_OF_A_STALL = {EventKind.STALLED, EventKind.STARVING}
# Names of the steps that replace a generation.
_REPLACED = {"stop", "kill", "submit"}
# Airflow's name of a task that is on a worker, as one that restarts its stream.
_AT_WORK = "running"
_LIVES = {Phase.RUNNING, Phase.STARTING}


@dataclass(frozen=True)
class StandingTrouble:
    """A trouble in words, `since` when, and what to do. `waits` is whether there is nothing to do but wait."""

    words: str
    since: datetime | None
    why: str
    way_out: str
    waits: bool = False


@dataclass(frozen=True)
class StandingFacts:
    """Facts beside the last look: when the newest generation was claimed, the reason of its pulse, and the state of
    the task that watches the stream. Each is None or empty if it is not known."""

    claimed: datetime | None = None
    pulse_why: str = ""
    task: str = ""


def standing(
    event: LastingEvent, state: StreamState, stream: str, known: StandingFacts = StandingFacts()
) -> StandingTrouble:
    """Return how an event stands after the last look."""
    about = f" ({event.about})" if event.about else ""
    told = StandingTrouble(f"{WORDS[event.kind][0]}{about}", event.since, event.why, way_out(event.kind, stream))
    if event.kind is EventKind.OVERDUE and known.task == _AT_WORK:
        return replace(told, way_out="its task runs now: its log tells how far the restart is")
    return _of_a_stall(told, state, stream, known) if event.kind in _OF_A_STALL else told


def _of_a_stall(told: StandingTrouble, state: StreamState, stream: str, known: StandingFacts) -> StandingTrouble:
    hangs, claimed = state.progress.pulse in _STALLED, known.claimed
    if hangs:
        told = replace(told, why=known.pulse_why or told.why)
    if state.state in _REPLACED:
        return replace(told, way_out="wait: its task is about to replace the generation")
    newer = claimed is not None and told.since is not None and claimed > told.since
    if state.state in _LIVES and not hangs and (newer or state.progress.pulse == Pulse.STARTING):
        return _outlived(state, stream, claimed)
    return told


def _outlived(state: StreamState, stream: str, claimed: datetime | None) -> StandingTrouble:
    since = f"was claimed at {claimed:%H:%M:%S} UTC and " if claimed else ""
    return StandingTrouble(
        f"it stalled, and generation {state.generation} has yet to commit",
        claimed,
        f"generation {state.generation} {since}follows the one that made no progress",
        f"wait for its first commit; if none comes, `kstream streams evidence {stream}` says what hangs",
        waits=True,
    )
