"""An application of the stream that nobody claimed in its folder: `state_dir` was lost, or restored from an older copy.

Then nobody knows what was wanted of the stream since: held, stopped, another spec. So what runs is left alone, and
nothing follows what has ended, until a person says so. Each refusal names the commands of every way out.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.looks import Looks, SignKind
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Phase, Refuse, Settled, Step, Wait
from airflow_kstream.model.streams.stream import StreamSpec


def lost_claim(observation: Observation) -> str:
    """Return what a person has to do for a running generation without a claim; empty if it has one, or is not alone."""
    app = observation.current
    if not _is_unclaimed(observation) or app is None or _living(observation) != [(observation.generation, app)]:
        return ""
    lost = "an older copy of it was restored" if observation.claim else "its folder was deleted"
    return (
        f"nobody claimed generation {observation.generation} of {observation.stream} in this folder: {lost}, or "
        f"state_dir is another one. {_adopt(app)}, and until then nothing follows it at its horizon"
    )


def lost_folder(state_dir: str, living: Sequence[tuple[int, Application]]) -> str:
    """Return what a person has to decide on a stream that runs, as these applications with their generations, and has
    no folder in `state_dir`."""
    *others, (_, newest) = sorted(living, key=lambda pair: (pair[0], pair[1].order))
    runs = ", ".join(f"{app.id} of user {app.user} is {app.state}" for _, app in living)
    first = f"to keep {newest.id}: {_kill([app for _, app in others])}; then " if others else ""
    return (
        f"{runs}, and {state_dir} has no folder of this stream: it was deleted, or an older copy of state_dir was "
        f"restored. Nothing follows it at its horizon until somebody has decided: {first}{_adopt(newest)}; to keep "
        f"none: {_kill([app for _, app in living])}"
    )


def unclaimed(spec: StreamSpec, observation: Observation, looks: Looks) -> Step | None:
    """Return the step for an application whose claim is missing; None if there is none, or a person has decided.

    It may have been claimed and submitted between the two halves of this look: the next one then shows the claim.
    """
    if not _is_unclaimed(observation):
        return None
    stopped, number = observation.desired.state is DesiredState.STOPPED, observation.generation
    if observation.claim is None and stopped:
        # In an empty folder a person's order is newer than its loss, and is obeyed.
        return None
    if observation.claim is None and (alone := _left_alone(observation)):
        return alone
    waited = looks.age_of(SignKind.UNCLAIMED)
    if waited < spec.submit.ttl:
        until = observation.now + spec.submit.ttl - waited
        return Wait(until, f"generation {number} appeared while we looked, and its claim may still be seen")
    if not _living(observation):
        return None if stopped else _dead(observation)
    return (None if stopped else _left_alone(observation)) or _undecided(spec, observation)


def _is_unclaimed(observation: Observation) -> bool:
    return (observation.claim.generation if observation.claim else 0) < observation.generation


def _living(observation: Observation) -> list[tuple[int, Application]]:
    return [(number, app) for number, app in observation.applications if app.alive]


def _left_alone(observation: Observation) -> Settled | None:
    """Watch the only application that lives: it harms nobody, and an older claim or word does not mean it."""
    app, lost = observation.current, lost_claim(observation)
    if app is None or not lost:
        return None
    phase = Phase.RUNNING if app.state is ApplicationState.RUNNING else Phase.STARTING
    return Settled(phase, f"{app.id} is {app.state}; {lost}")


def _undecided(spec: StreamSpec, observation: Observation) -> Refuse:
    """Leave all that lives alone, and say how a person decides: the newest may be kept, or nothing."""
    living, newest = _living(observation), (observation.generation, observation.current)
    listed = ", ".join(f"{app.id} (generation {number})" for number, app in living)
    ways = []
    if newest in living and newest[1]:
        others = [app for _, app in living if app != newest[1]]
        first = f"{_kill(others)}; then " if others else ""
        started = f"`kstream streams start {spec.name}` and then " if _is_stopped(observation) else ""
        ways.append(f"to keep {newest[1].id}: {first}{started}{_adopt(newest[1])}")
    ways.append(f"to keep none: {_kill([app for _, app in living])}{_then_follow(spec, observation)}")
    return Refuse(
        f"{listed} {'runs' if len(living) == 1 else 'run'}, and nobody claimed generation {observation.generation} in "
        "this folder: it was deleted or restored from an older copy, or they are a stranger's. So nothing is done to "
        f"them, and nothing is submitted. If there is a newer copy, restore it; or, {'; or '.join(ways)}"
    )


def _is_stopped(observation: Observation) -> bool:
    return observation.desired.state is DesiredState.STOPPED


def _kill(applications: list[Application]) -> str:
    return ", ".join(f"`yarn application -kill {app.id}`" for app in applications)


def _then_follow(spec: StreamSpec, observation: Observation) -> str:
    """Return the word after which the next generation follows: without any claim the checkpoints lack one, too."""
    if _is_stopped(observation):
        return ", and it stays stopped"
    word = "take-over" if observation.claim is None and spec.checkpoints else "accept"
    return f"; then `kstream streams {word} SPEC.yaml` lets generation {observation.next_generation} follow"


def _dead(observation: Observation) -> Step | None:
    number = observation.generation
    if observation.folder.accepted is not None:
        return None
    return Refuse(
        f"generation {number} has ended, and this folder has no claim of it: that was removed, or state_dir was lost "
        "or restored from an older copy, and what persons wanted of the stream since is not known. Restore it, or let "
        f"generation {number + 1} follow with `kstream streams accept SPEC.yaml`"
    )


def _adopt(app: Application) -> str:
    return f"`kstream streams adopt SPEC.yaml --application-id {app.id}` takes it up again"
