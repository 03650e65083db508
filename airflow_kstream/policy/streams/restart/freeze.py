"""The freeze of a cluster: what a supervisor may do while a person has frozen it.

Nothing that changes the world, without exceptions: no submission, no stop, no kill, and no fence is taken, not even to
finish a stop that was begun before. Its marker stands, so a driver that obeys it may still end by itself; then the
stream is down until the freeze ends, and no second writer can exist meanwhile. Whatever was begun goes on afterwards
from where it stands, because each step depends on a look alone. An end that nobody planned is recorded and told, as
without a freeze: the record starts nothing.

A hold, too, undoes no stop that was begun before it: `left_as` tells what the stream is left as.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.contract import stop_marker
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason
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
