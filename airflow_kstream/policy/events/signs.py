"""The troubles that a look at a stream shows, and the kinds that it can't judge.

An event is what a person may have to act on. So what the next round, the next try or the next generation may
settle by itself ends no event before it has settled it: a circuit breaker is open until its stream commits, although
a probe runs; a stalled stream that was restarted is stalled until its successor makes progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from airflow_kstream.model.streams.event import EventKind, Trouble
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.plan import Blocked, Obstacle
from airflow_kstream.model.streams.stall import Pulse

# The kinds that looks at a stream decide.
OF_A_STREAM = frozenset(
    {
        EventKind.OVERDUE,
        EventKind.BLOCKED,
        EventKind.BREAKER,
        EventKind.STALLED,
        EventKind.STARVING,
        EventKind.NOT_REPLACEABLE,
        EventKind.KEEPER,
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
_UNPROVEN = frozenset(
    {EventKind.BREAKER, EventKind.STALLED, EventKind.STARVING, EventKind.CHANGED, EventKind.NO_CHECKPOINT}
)
_OF_REPLACEMENT = frozenset({EventKind.NOT_REPLACEABLE, EventKind.KEEPER})
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
class CredentialSigns:
    """The signs of a stream's credentials."""

    plan_in: timedelta | None = None
    """The time until the restart window begins, negative within it."""
    left: timedelta | None = None
    """The time to the horizon."""
    horizon: HorizonReason | None = None
    not_refreshed: str = ""
    """Why fresh tokens don't reach it, empty if they do or none are pushed."""
    not_replaceable: str = ""
    """Why a worker that it loses can't be replaced, empty if it can."""
    replacement_known: bool = True
    keeper: str = ""
    """Why nobody confirms that it can, empty if somebody does or nobody has to."""


@dataclass(frozen=True)
class FreezeSigns:
    """The signs of the cluster's freeze."""

    frozen: bool = False
    held_back: bool = False
    """Whether a step waits for the end of the freeze."""
    falls_into_freeze: str = ""
    """What of a running stream falls into it."""


@dataclass(frozen=True)
class ProgressSigns:
    """The signs of a stream's progress."""

    works: bool = True
    pulse: Pulse | None = None
    """None for a stream without a declared checkpoint."""
    pulse_why: str = ""
    starving: bool = False
    """Whether no process of it works; `shared` is what of the cluster is the cause, empty if nothing is."""
    shared: str = ""
    queued: timedelta | None = None
    """How long YARN has not started its application; None if it waits for nothing."""
    queued_too_long: bool = False


@dataclass(frozen=True)
class StartSigns:
    """The signs of what stands before a stream's next start, and of what was started."""

    breaker_open: bool = False
    blocked: Blocked | None = None
    refusal: str = ""
    """Why its task could not replace it, or could not start a successor."""
    waits_for_a_person: bool = False
    former_spec: bool = False
    """Whether it runs in place of its declared spec, which failed."""


@dataclass(frozen=True)
class Signs:
    """The signs of one look at a stream, as far as events go. Without a conclusion only `blind` counts."""

    concluded: bool = True
    why: str = ""
    blind: bool = False
    lives: bool = True
    rests: bool = False
    """Whether a person wants it as it is: stopped, held or frozen streams have no progress to make."""
    settled: bool = True
    """Whether nothing is under way."""
    credentials: CredentialSigns = CredentialSigns()
    freeze: FreezeSigns = FreezeSigns()
    progress: ProgressSigns = ProgressSigns()
    start: StartSigns = StartSigns()


def known(signs: Signs) -> frozenset[EventKind]:
    """Return the kinds that this look can judge. Without a conclusion nothing ends, not even the blindness."""
    if not signs.concluded:
        return frozenset({EventKind.BLIND}) if signs.blind else frozenset()
    unknown = _HELD_BACK if signs.freeze.held_back else frozenset()
    if signs.freeze.frozen and not signs.lives and not signs.rests:
        # It died in the freeze that somebody was told of.
        unknown |= {EventKind.FROZEN}
    if not signs.credentials.replacement_known:
        unknown |= _OF_REPLACEMENT
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
    pulse = signs.progress.pulse
    return signs.settled and signs.lives and signs.progress.works and (pulse is None or pulse in _PROGRESS)


def _troubles(signs: Signs, overdue: Overdue = Overdue()) -> Iterator[Trouble]:
    credentials, progress, start = signs.credentials, signs.progress, signs.start
    if credentials.plan_in is not None and overdue.holds(-credentials.plan_in, credentials.left):
        yield Trouble(EventKind.OVERDUE, signs.why)
    if start.refusal or (start.blocked and start.blocked.by in _BLOCKING):
        yield Trouble(EventKind.BLOCKED, start.refusal or (start.blocked.why if start.blocked else ""))
    if start.breaker_open:
        yield Trouble(EventKind.BREAKER, signs.why)
    if signs.freeze.falls_into_freeze:
        yield Trouble(EventKind.FROZEN, signs.freeze.falls_into_freeze)
    if start.former_spec and not signs.rests:
        yield Trouble(EventKind.FORMER_SPEC, signs.why)
    if progress.pulse is Pulse.NO_CHECKPOINT and signs.lives and not signs.rests:
        yield Trouble(EventKind.NO_CHECKPOINT, progress.pulse_why)
    if progress.pulse is Pulse.CHANGED and signs.lives and not signs.rests:
        yield Trouble(EventKind.CHANGED, progress.pulse_why)
    if progress.pulse in _STALLED and signs.lives and not signs.rests and not progress.shared:
        yield Trouble(EventKind.STARVING if progress.starving else EventKind.STALLED, progress.pulse_why)
    if progress.queued_too_long:
        yield Trouble(EventKind.QUEUED, signs.why)
    if start.waits_for_a_person:
        yield Trouble(EventKind.KILLED, signs.why)
    if credentials.horizon is HorizonReason.KEYTAB_ROTATED and signs.lives:
        yield Trouble(EventKind.KEYTAB_ROTATED, HorizonReason.KEYTAB_ROTATED.value)
    if credentials.not_replaceable and signs.lives:
        yield Trouble(EventKind.NOT_REPLACEABLE, credentials.not_replaceable)
    if credentials.keeper and signs.lives:
        yield Trouble(EventKind.KEEPER, credentials.keeper)
    if credentials.not_refreshed and signs.lives and not signs.rests:
        yield Trouble(EventKind.NOT_REFRESHED, credentials.not_refreshed)
