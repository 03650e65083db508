"""Why no process works for a job that runs: its own token, or what several streams share."""

from __future__ import annotations

from datetime import timedelta

from airflow_kstream.model.streams.checkpoint import Clockwork
from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.model.streams.looks import Looks, SignKind
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Phase, Settled, Step, Wait
from airflow_kstream.policy.streams.ends.ends import end_of
from airflow_kstream.policy.streams.pulse.by_clock import STARVES
from airflow_kstream.policy.streams.pulse.heartbeat import verified

_SHARED = {EndKind.NODE_LOST: "YARN", EndKind.PREEMPTED: "the queue"}
_QUEUE = "the queue"


def dead_launch_token(observation: Observation, looks: Looks) -> str:
    """Return YARN's words if no process has worked for long and they name a dead token; empty otherwise.

    A successor starts with another token. One that never completed a checkpoint would start another one for ever.
    """
    return "" if looks.age_of(SignKind.STARVING) < STARVES else _dead_token(observation)


def still_starving(step: Step, observation: Observation, looks: Looks) -> Step:
    """Return the step of a supervisor who may act: a wait, instead of being settled, until it has itself seen for
    `STARVES` that no process works and that a dead token is why.

    A watcher wakes a task for that after as much time. The task counts from its own first look, and one that is settled
    there is woken again, for ever.
    """
    runs = isinstance(step, Settled) and step.phase is Phase.RUNNING and not observation.frozen
    words, left = _dead_token(observation) if runs else "", STARVES - looks.age_of(SignKind.STARVING)
    if not words or left <= timedelta():
        return step
    return Wait(observation.now + left, f"nothing of it works, and its new workers have a dead token: {words}")


def _dead_token(observation: Observation) -> str:
    if not verified(observation):
        return ""
    refusals = (point.clock.refusal for point in observation.checkpoints if point.clock and point.clock.workers == 0)
    return next((words for words in refusals if end_of(words).kind is EndKind.CREDENTIALS), "")


def starving_environment(observation: Observation) -> str:
    """Name what of the cluster keeps processes of the job from working; empty if nothing does, or they work."""
    causes = (_cause(point.clock) for point in observation.checkpoints if point.clock and point.clock.workers == 0)
    return next(filter(None, causes), "")


def _cause(clock: Clockwork) -> str:
    if clock.waits:
        return _QUEUE
    end = end_of(clock.refusal)
    return end.silent or _SHARED.get(end.kind, "")
