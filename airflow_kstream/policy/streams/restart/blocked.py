"""Whether a stream that should run, or be restarted, is kept from it, and by what."""

from __future__ import annotations

from airflow_kstream.model.streams.blocked import Blocked, Obstacle
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Phase, Refuse, Settled, Step, Stop
from airflow_kstream.policy.streams.ends.after_end import recorded_end


def blocked(step: Step, observation: Observation, noted: Blocked | None) -> Blocked | None:
    """Return what keeps the stream from its start or restart; None if nothing does.

    `noted` is the last refusal of a restart that its task tried; there is one only while that restart is due.
    """
    match step:
        case Stop(obstacle=obstacle) if obstacle or noted:
            return Blocked(Obstacle.REFUSED, noted.since if noted else None, obstacle) if obstacle else noted
        case Settled(phase=Phase.RUNNING):
            # Its batch hangs, and its successor could not start.
            return noted
        case Refuse(why):
            return Blocked(Obstacle.REFUSED, None, why)
        case Settled(phase=Phase.FROZEN, why=why):
            return Blocked(Obstacle.FREEZE, None, f"{why}; the cluster is {observation.freeze}")
        case Settled(phase=Phase.KILLED | Phase.BACKING_OFF, why=why):
            return _after_an_end(step, observation, why)
    return None


def _after_an_end(step: Settled, observation: Observation, why: str) -> Blocked | None:
    """Return what holds back a stream that ended; the pause of the first ends is none."""
    end = recorded_end(observation)
    kinds = (
        (step.phase is Phase.KILLED, Obstacle.KILLED),
        (step.breaker, Obstacle.BREAKER),
        (end is not None and end.shared, Obstacle.ENVIRONMENT),
    )
    kind = next((kind for holds, kind in kinds if holds), None)
    return Blocked(kind, end.at if end else None, why) if kind else None
