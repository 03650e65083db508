"""How a trouble that somebody was told of stands now, for who looks.

An event keeps the words of its begin, and one of a stall outlives its generation: only a commit of the next one shows
that it is over. So a look may know more than the event, and its way out may be taken already.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from airflow_kstream.model.event import WORDS, EventKind, Lasting
from airflow_kstream.model.heartbeat import Pulse
from airflow_kstream.model.plan import Phase
from airflow_kstream.model.stream_state import StreamState
from airflow_kstream.policy.events.hands import way_out

_STALLED = {Pulse.STALLED, Pulse.START_STALLED}
# Names of the steps that replace a generation.
_REPLACED = {"stop", "kill", "submit"}
_LIVES = {Phase.RUNNING, Phase.STARTING}


@dataclass(frozen=True)
class Standing:
    """A trouble in words, `since` when, and what to do. `waits` is whether there is nothing to do but wait."""

    words: str
    since: datetime | None
    why: str
    way_out: str
    waits: bool = False


def standing(
    event: Lasting, state: StreamState, stream: str, claimed: datetime | None = None, pulse_why: str = ""
) -> Standing:
    """Return how an event stands after the last look.

    `claimed` is when the newest generation was claimed and `pulse_why` the reason of its pulse, as far as they are
    known.
    """
    about = f" ({event.about})" if event.about else ""
    told = Standing(f"{WORDS[event.kind][0]}{about}", event.since, event.why, way_out(event.kind, stream))
    if event.kind is not EventKind.STALLED:
        return told
    if state.state in _REPLACED:
        why = pulse_why if state.pulse in _STALLED and pulse_why else event.why
        return Standing(told.words, told.since, why, "wait: its task is about to replace the generation")
    if state.pulse in _STALLED:
        return Standing(told.words, told.since, pulse_why or event.why, told.way_out)
    if state.state in _LIVES and (state.pulse == Pulse.STARTING or (claimed is not None and claimed > event.since)):
        return _outlived(state, stream, claimed)
    return told


def _outlived(state: StreamState, stream: str, claimed: datetime | None) -> Standing:
    since = f"was claimed at {claimed:%H:%M:%S} UTC and " if claimed else ""
    return Standing(
        f"it stalled, and generation {state.generation} has yet to commit",
        claimed,
        f"generation {state.generation} {since}follows the one that made no progress",
        f"wait for its first commit; if none comes, `kstream streams evidence {stream}` says what hangs",
        waits=True,
    )
