"""Signs of streams that are well or in trouble, and the hands that looks at them ask for."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.policy.events.attention import Hand, Look, hands, pending, pending_from_json
from airflow_kstream.policy.events.signs import Signs
from tests.simulated.values import changed

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
HEALTHY = changed(Signs(), pulse=Pulse.HEALTHY, plan_in=5 * DAY, left=7 * DAY, horizon=HorizonReason.TOKEN_MAX_LIFETIME)
BLIND = Signs(concluded=False, blind=True, why="connection refused")
DEAD = changed(HEALTHY, lives=False, works=False, plan_in=None, left=None, horizon=None, pulse=Pulse.UNKNOWN)
STARTING = changed(HEALTHY, works=False, pulse=Pulse.STARTING)
STOPPED = replace(DEAD, rests=True)
BREAKER = changed(DEAD, breaker_open=True, why="the same error, three times")
STALLED = changed(HEALTHY, pulse=Pulse.STALLED, pulse_why="no commit for an hour")
KILLED = changed(DEAD, waits_for_a_person=True)
FROZEN = changed(HEALTHY, frozen=True, falls_into_freeze="its credentials end in 2h, while the cluster is frozen")
NOWHERE = changed(HEALTHY, works=False, pulse=Pulse.NO_CHECKPOINT, pulse_why="no query has written to /data")
ABORTED = changed(HEALTHY, plan_in=-MINUTE, left=42 * HOUR, refusal="queue streams is gone")


def overdue(by: timedelta, left: timedelta | None) -> Signs:
    return changed(HEALTHY, plan_in=-by, left=left)


DAMAGED = Signs(concluded=False, why="gen-000003 can't be understood")


def needed(*looks: Look, later: timedelta = HOUR) -> tuple[Hand, ...]:
    """Return the hands after two looks that saw the same, so far apart."""
    named = {f"stream-{number}": look for number, look in enumerate(looks)}
    before = pending(named, {}, NOW)
    assert pending_from_json(json.loads(json.dumps({name: one.to_json() for name, one in before.items()}))) == before
    return hands(named, pending(named, before, NOW + later), NOW + later)
