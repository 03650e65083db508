"""How a trouble that somebody was told of stands now, and how urgent its stream is, for who looks at a fleet.

An event keeps the words of its begin, and one of a stall outlives its generation: only a commit of the next one shows
that it is over. So a look may know more than the event, and its way out may be taken already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.streams.event import WORDS, EventKind, LastingEvent
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.model.streams.stream_state import StreamState
from airflow_kstream.policy.events.attention import ENDED, PAUSED, UNSEEN, most_urgent, way_out
from airflow_kstream.policy.events.signs import ProgressSigns, Signs, StartSigns, troubles

# A horizon closer than this needs attention today.
SOON = timedelta(days=1)

_STALLED = {Pulse.STALLED, Pulse.START_STALLED}
_OF_A_STALL = {EventKind.STALLED, EventKind.STARVING}
# Names of the steps that replace a generation.
_REPLACED = {"stop", "kill", "submit"}
# Airflow's name of a task that is on a worker, as one that restarts its stream.
_AT_WORK = "running"
# The pulse of these is that of a generation that ran.
DEAD = {Phase.STOPPED, Phase.ENDED, Phase.KILLED, Phase.BACKING_OFF}
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


class Urgency(StrEnum):
    """The groups of a fleet, the most urgent first."""

    HAND = "needs a hand"
    UNSEEN = "not seen"
    UNDER_WAY = "under way"
    SOON = "ends within a day"
    WELL = "well"
    AT_REST = "at rest"


@dataclass(frozen=True)
class FirstLook:
    """The standing of a declared stream before its first look: its group, and its trouble with the kind of that."""

    urgency: Urgency
    kind: str
    trouble: StandingTrouble


def before_first_look(dag: str, task: str, *, paused: bool, own: bool) -> FirstLook:
    """Return the standing. `dag` is to look at the stream, `task` is the state of its task, empty if it has none.

    `own` is whether the DAG was made for the stream. Any other may do more: it is only named.
    """
    first = "its first look is not stored yet"
    if task:
        out = "wait; if none comes within minutes, the log of its task tells why"
        told = StandingTrouble(first, None, f"its task is {task}", out, waits=True)
        return FirstLook(Urgency.UNDER_WAY, UNSEEN, told)
    if paused:
        why = "nobody starts it or watches it; whether it runs is not known here"
        why, out = (why, f"unpause its DAG, `{dag}`") if own else (f"`{dag}` declares it; {why}", "")
        told = StandingTrouble("its DAG is paused", None, why, out)
        return FirstLook(Urgency.UNSEEN, PAUSED, told)
    out = f"wait for the next run of `{dag}`; if it fails, its log tells why"
    told = StandingTrouble(first, None, "no task of its DAG is deferred or running", out, waits=True)
    return FirstLook(Urgency.UNSEEN, UNSEEN, told)


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
        lives=state.state not in DEAD,
        progress=ProgressSigns(pulse=_PULSES.get(state.progress.pulse)),
        start=StartSigns(
            refusal=state.verdict if state.state == _REFUSE else "", waits_for_a_person=state.state == Phase.KILLED
        ),
    )
