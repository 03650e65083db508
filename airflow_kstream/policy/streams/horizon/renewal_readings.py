"""The readings of a driver's log for its rounds of new tokens: when they are due, and what they show.

A round comes at a share of that interval after the one before. The log names the time of the next one; until it was
read, rounds are counted from the start of the application. Who begins to watch a fleet reads its logs over six minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.renewal import LastRound, TokenRound
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.horizon.jitter import spread

# A round takes seconds; with a renew interval of minutes, a share of that.
_SETTLES, _SETTLES_SHARE = timedelta(minutes=6), 0.05
# How many times `_SETTLES` after a round its log is read, as long as it does not show it.
_TIMES = (1, 2, 4)


@dataclass(frozen=True)
class Reading:
    """The next reading of the log of one `driver`, named by its claim and container: at `at`, after `tries` others that
    did not show the round that was due at `round_at`.

    `step` is the time between two rounds, `settles` the unit of waits.
    """

    driver: str
    at: datetime
    round_at: datetime
    step: timedelta
    settles: timedelta
    tries: int = 0


def due(observation: Observation, before: Reading | None, *, at_once: bool) -> Reading | None:
    """Return the next reading of the stream's log; None if the stream makes no tokens, or its rounds can't be timed."""
    claim, app, now = observation.claim, observation.current, observation.now
    if claim is None or claim.credentials.lifetimes is None or not isinstance(claim.spec, StreamSpec):
        return None
    if app is None or app.state is not ApplicationState.RUNNING or app.started is None:
        return None
    if claim.generation != observation.generation or not claim.spec.credentials.renews_itself:
        return None
    driver = f"{claim.nonce} {app.logs_url}"
    if before is not None and before.driver == driver:
        return before
    interval = claim.credentials.lifetimes.renew_interval
    settles = min(_SETTLES, interval * _SETTLES_SHARE)
    later = settles * (0.0 if at_once else spread(claim.nonce))
    first = app.started + settles
    at = now if at_once else max(now + later, first)
    return Reading(driver, at, app.started, interval * observation.credentials.renewal_ratio, settles)


def after_reading(reading: Reading, rounds: tuple[TokenRound, ...], now: datetime) -> Reading:
    """Return the reading that follows one that showed these rounds."""
    newest = rounds[-1] if rounds else None
    if newest is not None and not newest.is_last and newest.at + newest.delay > now:
        return _of_round(reading, newest.at + newest.delay)
    return after_failure(reading, now)


def after_failure(reading: Reading, now: datetime) -> Reading:
    """Return the reading that follows one that showed nothing new: again for the same round, or for the next one."""
    again = reading.tries + 1
    if again < len(_TIMES):
        return replace(reading, at=now + reading.settles * (_TIMES[again] - _TIMES[again - 1]), tries=again)
    passed = max(0, (now - reading.round_at) // reading.step)
    return _of_round(reading, reading.round_at + (passed + 1) * reading.step)


def last_round(rounds: tuple[TokenRound, ...]) -> LastRound | None:
    """Return the round after which none will come, None if another one is scheduled, or no round is known."""
    if not rounds or not rounds[-1].is_last:
        return None
    before = rounds[-2] if len(rounds) > 1 else None
    return LastRound(rounds[-1].at, before.tokens_end if before else None)


def _of_round(reading: Reading, round_at: datetime) -> Reading:
    return replace(reading, at=round_at + reading.settles * _TIMES[0], round_at=round_at, tries=0)
