"""Whether a stream is kept from its start or restart, by what, and when a blocked restart is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Blocked, Obstacle, Phase, Refuse, Settled, Step, Stop
from airflow_kstream.policy.streams.ends.after_end import recorded_end
from airflow_kstream.policy.streams.pulse.blindness import backoff

_FIRST_PAUSE = 60.0


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


@dataclass(frozen=True)
class BlockedRestart:
    """A restart whose preflight has failed `tries` times since `since`. The next try is at `retry_at`.

    `word` is the time of the last order on the stream that the last try knew; None if it knew of none.
    """

    since: datetime
    tries: int
    retry_at: datetime
    word: datetime | None = None


def blocked_again(before: BlockedRestart | None, now: datetime, word: datetime | None) -> BlockedRestart:
    """Return the event after another failed try: 60 s until the next one, doubled each time, up to 15 minutes."""
    tries = before.tries if before else 0
    return BlockedRestart(
        since=before.since if before else now,
        tries=tries + 1,
        retry_at=now + timedelta(seconds=backoff(_FIRST_PAUSE, tries)),
        word=word,
    )


def held_back(blocked: BlockedRestart | None, step: Step | None, word: datetime | None, now: datetime) -> bool:
    """Return whether this step waits for the next try.

    A restart that is forced skips preflight and does not wait, nor does anything else than a restart. A new order of
    a person is tried at once: they may have repaired the cause.
    """
    if blocked is None or not isinstance(step, Stop) or not step.preflight:
        return False
    return now < blocked.retry_at and word == blocked.word
