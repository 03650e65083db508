"""The freeze of a cluster: what a supervisor may do while a person has frozen it.

Nothing that changes the world, without exceptions: no submission, no stop, no kill, and no fence is taken, not even to
finish a stop that was begun before. Its marker stands, so a driver that obeys it may still end by itself; then the
stream is down until the freeze ends, and no second writer can exist meanwhile. Whatever was begun goes on afterwards
from where it stands, because each step depends on a look alone. An end that nobody planned is recorded and told, as
without a freeze: the record starts nothing.
"""

from __future__ import annotations

from datetime import timedelta

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.contract import stop_marker
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.horizon import Horizon
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import GiveUp, Kill, Phase, Push, Revoke, Settled, Step, Stop, Submit

_CHANGES = (GiveUp, Kill, Push, Revoke, Stop, Submit)


def held_by_freeze(step: Step, observation: Observation) -> Step:
    """Return the step, or what is left of it while the cluster is frozen: to watch, and to say what waits."""
    if not isinstance(step, _CHANGES) or not observation.frozen:
        return step
    return Settled(
        Phase.FROZEN, f"{_stands(observation)}; {_NAMES[type(step)]} waits for the end of the freeze: {step.why}"
    )


def freeze_of(observation: Observation, ends: Horizon | None) -> tuple[str, str]:
    """Return the cluster's freeze in words, and what falls into it for a stream that runs; each empty if there is none.

    The first stays the same for as long as the freeze holds.
    """
    if not observation.frozen:
        return "", ""
    app, wanted = observation.current, observation.desired.state is DesiredState.RUNNING
    return str(observation.freeze), _warning(observation, ends) if ends and wanted and app and app.alive else ""


def _warning(observation: Observation, ends: Horizon) -> str:
    now, freeze = observation.now, observation.freeze
    if (left := ends.remaining(now)) is not None and freeze.falls_into(left, now):
        when = f"end in {format_duration(left)}" if left > timedelta() else f"ended {format_duration(-left)} ago"
        return f"its credentials {when}, while the cluster is frozen: lift the freeze before, or it dies"
    if ends.plan and freeze.falls_into(wait := ends.plan - now, now):
        due = f"in {format_duration(wait)}" if wait > timedelta() else f"since {format_duration(-wait)}"
        return f"its restart is due {due}, and waits for the end of the freeze"
    return ""


_NAMES: dict[type[Step], str] = {
    GiveUp: "giving up its claim",
    Kill: "a kill",
    Push: "a push of fresh tokens",
    Revoke: "the end of pushed tokens",
    Stop: "its stop",
    Submit: "its next generation",
}


def _stands(observation: Observation) -> str:
    app, number = observation.current, observation.generation
    begun = ", and its stop was begun before" if stop_marker(number) in observation.files else ""
    if app is None:
        return f"no application of generation {number} runs{begun}" if number else "it was never submitted"
    return f"{app.id} is {app.state}{begun}"
