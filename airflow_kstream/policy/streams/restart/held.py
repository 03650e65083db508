"""What a held stream is left as. A hold undoes no stop that was begun before it."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.contract import stop_marker
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.observation import Observation


def left_as(observation: Observation) -> str:
    """Say in words what nobody touches while the stream is held."""
    number, app = observation.generation, observation.current
    begun = stop_marker(number) in observation.files
    if number == 0:
        return "it was never submitted"
    if app and app.alive:
        undone = "; its stop was begun before, may still end it, and it then stays dead" if begun else ""
        return f"generation {number} ({app.id}) is {app.state}{undone}"
    if app is None and observation.claim and observation.claim.fence in observation.files:
        return f"generation {number} was claimed and its application may still arrive"
    return f"generation {number} is dead{', stopped before,' if begun else ''} and stays dead"


def restarts_from(plan: datetime, word: datetime | None) -> datetime:
    """Return when a restart for `plan` may come: not before a person's last order at `word`, which may end a hold."""
    return max(plan, word) if word else plan


def is_well(observation: Observation) -> bool:
    """Tell whether a held stream is as it should be: running, ended successfully, or never submitted."""
    app = observation.current
    return observation.generation == 0 or bool(app and (app.alive or app.succeeded))


def not_restarted(left: timedelta) -> str:
    """Say in words what a hold means for a generation whose credentials end after `left`, or ended so long ago.

    Busy connections outlive a token, because nobody checks it again: so a job may look well long after its end.
    """
    if left > timedelta():
        return "held: nobody restarts it before"
    return "held: nobody restarts it; it may look healthy until it opens its next connection"


def ends_held(stream: str, reason: HorizonReason, left: timedelta) -> str:
    """Say when a held generation dies, after the words that it is held; nothing where its horizon is only a wish."""
    if reason is HorizonReason.POLICY_MAX_AGE:
        return ""
    when = f"is in {format_duration(left)}" if left > timedelta() else f"was {format_duration(-left)} ago"
    return f"; its horizon {when} ({reason}), and nobody restarts it before `kstream streams start {stream}`"
