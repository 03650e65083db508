"""The troubles that a look at a stream shows, and the kinds that it can't judge.

An event is what a person may have to act on. So what the next round, the next try or the next generation may
settle by itself ends no event before it has settled it: a circuit breaker is open until its stream commits, although
a probe runs; a stalled stream that was restarted is stalled until its successor makes progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.model.streams.blocked import Blocked, Obstacle
from airflow_kstream.model.streams.event import EventKind, Trouble
from airflow_kstream.model.streams.heartbeat import Pulse
from airflow_kstream.model.streams.horizon import HorizonReason

# The kinds that looks at a stream decide.
OF_A_STREAM = frozenset(
    {
        EventKind.OVERDUE,
        EventKind.BLOCKED,
        EventKind.BREAKER,
        EventKind.STALLED,
        EventKind.CHANGED,
        EventKind.QUEUED,
        EventKind.KILLED,
        EventKind.FROZEN,
        EventKind.FORMER_SPEC,
        EventKind.NO_CHECKPOINT,
        EventKind.BLIND,
        EventKind.KEYTAB_ROTATED,
        EventKind.NOT_REFRESHED,
    }
)
# While a person's freeze holds a step back, nothing is tried, so nothing shows whether these are over.
_HELD_BACK = frozenset({EventKind.OVERDUE, EventKind.BLOCKED, EventKind.BREAKER, EventKind.KILLED})
# A generation that has just started has shown nothing yet.
_UNPROVEN = frozenset({EventKind.BREAKER, EventKind.STALLED, EventKind.CHANGED, EventKind.NO_CHECKPOINT})
_STALLED = {Pulse.STALLED, Pulse.START_STALLED}
_PROGRESS = {Pulse.HEALTHY, Pulse.IDLE}
_BLOCKING = {Obstacle.PREFLIGHT, Obstacle.REFUSED}


@dataclass(frozen=True)
class Overdue:
    """The time after which a planned restart that has not come is an event: `share` of what was left when it was due.

    Never before `least`: at the planned time a restart takes a round, a worker and its preflight. Where the credentials
    have no known end, it is one after `unknown`.
    """

    share: float = 0.1
    least: timedelta = timedelta(minutes=1)
    unknown: timedelta = timedelta(hours=1)

    def holds(self, overdue: timedelta, left: timedelta | None) -> bool:
        """Return whether it is an event; `left` is the time to the horizon now, None if that is not known."""
        tenth = (overdue + left) * self.share if left is not None else self.unknown
        return overdue >= max(tenth, self.least)


@dataclass(frozen=True)
class Signs:
    """The signs of one look at a stream, as far as events go. Without a conclusion only `blind` counts.

    `plan_in` is the time until the restart window begins, negative within it. `left` is the time to the horizon.
    `settled` is whether nothing is under way, `rests` whether a person wants it as it is: stopped, held or frozen
    streams have no progress to make. `held_back` is whether a step waits for the end of the cluster's freeze,
    `falls_into_freeze` what of a running stream falls into it. A stream without a declared checkpoint has no `pulse`.
    """

    concluded: bool = True
    why: str = ""
    blind: bool = False
    plan_in: timedelta | None = None
    left: timedelta | None = None
    horizon: HorizonReason | None = None
    lives: bool = True
    works: bool = True
    rests: bool = False
    settled: bool = True
    held_back: bool = False
    frozen: bool = False
    falls_into_freeze: str = ""
    former_spec: bool = False
    pulse: Pulse | None = None
    pulse_why: str = ""
    breaker_open: bool = False
    blocked: Blocked | None = None
    refusal: str = ""
    waits_for_a_person: bool = False
    queued: timedelta | None = None
    queued_too_long: bool = False
    not_refreshed: str = ""


def known(signs: Signs) -> frozenset[EventKind]:
    """Return the kinds that this look can judge. Without a conclusion nothing ends, not even the blindness."""
    if not signs.concluded:
        return frozenset({EventKind.BLIND}) if signs.blind else frozenset()
    unknown = _HELD_BACK if signs.held_back else frozenset()
    if signs.frozen and not signs.lives and not signs.rests:
        # It died in the freeze that somebody was told of.
        unknown |= {EventKind.FROZEN}
    if not signs.rests and not _proven(signs):
        unknown |= _UNPROVEN - {trouble.kind for trouble in _troubles(signs)}
    return OF_A_STREAM - unknown


def troubles(signs: Signs, overdue: Overdue = Overdue()) -> tuple[Trouble, ...]:
    """Return what the look shows; a blind stream shows nothing else."""
    if not signs.concluded:
        return (Trouble(EventKind.BLIND, signs.why),) if signs.blind else ()
    return tuple(_troubles(signs, overdue))


def _proven(signs: Signs) -> bool:
    """Return whether the stream shows by itself that it works."""
    return signs.settled and signs.lives and signs.works and (signs.pulse is None or signs.pulse in _PROGRESS)


def _troubles(signs: Signs, overdue: Overdue = Overdue()) -> Iterator[Trouble]:
    if signs.plan_in is not None and overdue.holds(-signs.plan_in, signs.left):
        yield Trouble(EventKind.OVERDUE, signs.why)
    if signs.refusal or (signs.blocked and signs.blocked.by in _BLOCKING):
        yield Trouble(EventKind.BLOCKED, signs.refusal or (signs.blocked.why if signs.blocked else ""))
    if signs.breaker_open:
        yield Trouble(EventKind.BREAKER, signs.why)
    if signs.falls_into_freeze:
        yield Trouble(EventKind.FROZEN, signs.falls_into_freeze)
    if signs.former_spec and not signs.rests:
        yield Trouble(EventKind.FORMER_SPEC, signs.why)
    if signs.pulse is Pulse.NO_CHECKPOINT and signs.lives and not signs.rests:
        yield Trouble(EventKind.NO_CHECKPOINT, signs.pulse_why)
    if signs.pulse is Pulse.CHANGED and signs.lives and not signs.rests:
        yield Trouble(EventKind.CHANGED, signs.pulse_why)
    if signs.pulse in _STALLED and signs.lives and not signs.rests:
        yield Trouble(EventKind.STALLED, signs.pulse_why)
    if signs.queued_too_long:
        yield Trouble(EventKind.QUEUED, signs.why)
    if signs.waits_for_a_person:
        yield Trouble(EventKind.KILLED, signs.why)
    if signs.horizon is HorizonReason.KEYTAB_ROTATED and signs.lives:
        yield Trouble(EventKind.KEYTAB_ROTATED, HorizonReason.KEYTAB_ROTATED.value)
    if signs.not_refreshed and signs.lives and not signs.rests:
        yield Trouble(EventKind.NOT_REFRESHED, signs.not_refreshed)
