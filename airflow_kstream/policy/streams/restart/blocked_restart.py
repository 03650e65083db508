"""A restart that is due and can't be done yet: the pauses between its tries, and what does not wait for the next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_kstream.model.streams.plan import Step, Stop
from airflow_kstream.policy.streams.pulse.blindness import backoff

_FIRST_PAUSE = 60.0


@dataclass(frozen=True)
class BlockedRestart:
    """A restart whose preflight has failed `tries` times since `since`. The next try is at `retry_at`.

    `word` is the time of the person's last word on the stream that the last try knew; None if it knew of none.
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

    A restart that is forced skips preflight and does not wait, nor does anything else than a restart. A new word from
    a person is tried at once: they may have repaired the cause.
    """
    if blocked is None or not isinstance(step, Stop) or not step.preflight:
        return False
    return now < blocked.retry_at and word == blocked.word
