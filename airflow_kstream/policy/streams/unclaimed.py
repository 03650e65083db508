"""An application of the stream that nobody claimed in its folder: `state_dir` was lost, or restored from an older copy.

Then nobody knows what was wanted of the stream since: held, stopped, another spec. So what runs is left alone, and
nothing follows what has ended, until a person says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_kstream.model.application import Application, ApplicationState
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.looks import Looks, SignKind
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.plan import Phase, Refuse, Settled, Step, Wait
from airflow_kstream.model.stream import StreamSpec


def lost_claim(observation: Observation) -> str:
    """Return what a person has to do for a running generation of a stream without any claim; empty if it has one."""
    app = observation.current
    if observation.claim or app is None or not app.alive:
        return ""
    return (
        f"nobody claimed generation {observation.generation} of {observation.stream} in this folder: its folder was "
        f"deleted, or state_dir is another one. {_adopt(app)} and until then nothing follows it at its horizon"
    )


def unclaimed(spec: StreamSpec, observation: Observation, looks: Looks) -> Step | None:
    """Return the step for an application whose claim is missing; None if there is none, or a person has decided.

    It may have been claimed and submitted between the two halves of this look: the next one then shows the claim.
    """
    claimed, number = observation.claim.generation if observation.claim else 0, observation.generation
    if claimed >= number:
        return None
    alive = [app for _, app in observation.applications if app.alive]
    if not claimed and observation.desired.state is DesiredState.STOPPED:
        # In an empty folder a person's word is newer than its loss, and is obeyed.
        return None
    if not claimed and len(alive) == 1:
        app = alive[0]
        phase = Phase.RUNNING if app.state is ApplicationState.RUNNING else Phase.STARTING
        return Settled(phase, f"{app.id} is {app.state}; {lost_claim(observation)}")
    waited = looks.age_of(SignKind.UNCLAIMED)
    if waited < spec.submit.ttl:
        until = observation.now + spec.submit.ttl - waited
        return Wait(until, f"generation {number} appeared while we looked, and its claim may still be seen")
    return _living(observation, alive) if alive else _dead(observation)


def _living(observation: Observation, alive: Sequence[Application]) -> Step:
    """Leave it alone. An older claim tells nothing of it, and an older word does not mean it."""
    listed = ", ".join(app.id for app in alive)
    return Refuse(
        f"{listed} carries the tag of generation {observation.generation}, which nobody claimed in this folder: it is "
        "left alone. If it is a stranger's, kill it; if the folder was restored from an older copy, restore the newer "
        f"one. {_adopt(alive[0])} or stop it: the next generation then follows once `kstream streams accept` says so"
    )


def _dead(observation: Observation) -> Step | None:
    number = observation.generation
    if observation.accepted is not None or observation.desired.state is DesiredState.STOPPED:
        return None
    return Refuse(
        f"generation {number} has ended, and nobody claimed it in this folder: state_dir was lost or restored from an "
        "older copy, and what persons wanted of the stream since is not known. Restore the newer copy, or let "
        f"generation {number + 1} follow with `kstream streams accept`"
    )


def _adopt(app: Application) -> str:
    return f"`kstream streams adopt SPEC.yaml --application-id {app.id}` takes it up again,"
