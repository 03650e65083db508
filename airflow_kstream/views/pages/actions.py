"""The orders that a person may give a stream on its page, and what comes of each, as the last look shows it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream_state import StreamState

_DEAD = {Phase.ENDED, Phase.STOPPED, Phase.KILLED, Phase.BACKING_OFF}
_TIME = "%Y-%m-%d %H:%M:%S"


def offered(state: StreamState, facts: Mapping[str, Any], now: datetime) -> dict[str, str]:
    """Return what each order that changes something would do. `facts` are the stored ones of the newest generation.

    A restart is only offered where it would not be refused. Where it is not known what is wanted, all words are.
    """
    wanted = state.desired.state if state.desired else None
    words = {
        "hold": (wanted is not DesiredState.HELD, _hold(state, facts, now)),
        "start": (True, _start(state, facts, now)),
        "restart": (state.generation > 0 and wanted in {DesiredState.RUNNING, None}, _restart(state, facts)),
        "stop": (wanted is not DesiredState.STOPPED, _stop(state)),
    }
    return {word: says for word, (holds, says) in words.items() if holds}


def _lives(state: StreamState) -> bool:
    return state.application is not None and state.state not in _DEAD


def _hold(state: StreamState, facts: Mapping[str, Any], now: datetime) -> str:
    said = "Nobody starts, stops or restarts it, or pushes tokens to it, until somebody says start. What runs, runs on"
    reason = (facts.get("horizon") or {}).get("reason")
    if state.horizon is None or reason == HorizonReason.POLICY_MAX_AGE.value:
        return f"{said}."
    if state.horizon <= now:
        return f"{said}, although its credentials have ended: it fails when it opens its next connection."
    ends = f"{said} until its credentials end at {state.horizon:{_TIME}} UTC"
    return f"{ends}. It fails then, unless somebody says start before."


def _start(state: StreamState, facts: Mapping[str, Any], now: datetime) -> str:
    wanted = "Its desired state becomes running"
    if not _lives(state):
        submits = f"The task that watches it claims and submits generation {state.generation + 1}."
        return f"{wanted}, and no wait between two starts holds any longer. {submits}"
    if why := _replaced_because(state, facts, now):
        return f"{wanted}. Its task then replaces generation {state.generation}, because {why}."
    return f"{wanted}. Generation {state.generation} is left as it is, and is watched."


def _replaced_because(state: StreamState, facts: Mapping[str, Any], now: datetime) -> str:
    if state.desired and state.desired.restarts(state.generation):
        return "a restart of it was requested before"
    plan = (facts.get("horizon") or {}).get("plan")
    due = datetime.fromisoformat(plan) if plan else None
    return f"its restart has been due since {due:{_TIME}} UTC" if due and due <= now else ""


def _restart(state: StreamState, facts: Mapping[str, Any]) -> str:
    number, waits = state.generation, facts.get("stop_waits")
    longest = f", for {format_duration(timedelta(seconds=waits))} at most," if waits else ""
    return (
        f"The task that watches it checks that a successor could start, waits{longest} for the end of the batch of "
        f"generation {number}, ends the generation, also in the middle of a batch that hangs, and waits until it is "
        f"proven dead. Generation {number + 1} then runs a batch again that was not committed."
    )


def _stop(state: StreamState) -> str:
    if not _lives(state):
        return "Its desired state becomes stopped: nothing follows its last generation."
    return f"It ends generation {state.generation} after its batch, kills it if it does not end, and leaves it stopped."
