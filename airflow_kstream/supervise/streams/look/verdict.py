"""The verdict of a look at a stream: what is shown of it, and what its task is woken by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.airflow_options import NotifyPolicy
from airflow_kstream.model.plain import plain
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.declarations import PolicyEdit
from airflow_kstream.model.streams.generation import Claim, GenerationFacts
from airflow_kstream.model.streams.generation_end import PastEnd
from airflow_kstream.model.streams.horizon import HorizonReason, Replacement
from airflow_kstream.model.streams.looks import NOWHERE, ReachedPositions
from airflow_kstream.model.streams.plan import Blocked, Phase, Settled, Step
from airflow_kstream.model.streams.stall import Heartbeat, Pulse, Stall
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.token_push import RefreshStatus

_WATCHED = {*Phase} - {Phase.ENDED}
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class CredentialVerdict:
    """The time that a stream's credentials leave it."""

    remaining: timedelta | None = None
    """The time to the horizon; None if there is none or it is not known: `horizon` tells which."""
    horizon: HorizonReason | None = None
    token: str = ""
    """The other service's token that is the horizon, empty if it is none."""
    uncounted: tuple[str, ...] = ()
    """The services whose tokens may end before the horizon."""
    plan_in: timedelta | None = None
    """The time until the restart window begins."""
    refreshed: RefreshStatus | None = None
    """How its tokens stand if fresh ones are pushed to it, else None."""
    logs_left: timedelta | None = None
    """The time until its end would leave no aggregated logs; None if that is not known or never comes."""
    may_retry: bool = False
    """Whether YARN may start its ApplicationMaster again, as that of an adopted job; not once the tokens of its launch
    ended, which its logs need, too."""
    replacement: Replacement | None = None
    """Whether it can replace a worker that it loses; None where that needs no token of its own."""
    foretold: tuple[str, ...] = ()
    """What the doctor expects for it, each with its date; a watcher doesn't ask, and knows none."""


@dataclass(frozen=True)
class ProgressVerdict:
    """The progress of a stream's newest generation."""

    heartbeat: Heartbeat | None = None
    """None for a stream that declares no checkpoint or was never claimed."""
    verified: bool = False
    """Whether the generation has committed a batch of its own."""
    works: bool = False
    """Whether it is verified, or ran for long: then it is one whose source brings nothing."""
    commit_age: timedelta | None = None
    """The time since the last commit, or since the claim if there never was one."""
    reached: ReachedPositions = NOWHERE
    """The furthest positions that this watcher saw the generation reach: only it sees them for days."""
    stall: Stall | None = None
    """The batch that hangs, if its task is to examine it: only one who looks again knows of any."""
    queued: timedelta | None = None
    """How long YARN has not started its application, by the ResourceManager's clock."""
    queued_too_long: bool = False
    """Whether that is an event."""

    @property
    def pulse(self) -> Pulse | None:
        return self.heartbeat.pulse if self.heartbeat else None

    @property
    def pulse_why(self) -> str:
        return self.heartbeat.why if self.heartbeat else ""

    @property
    def starving(self) -> bool:
        """Return whether it makes no progress because no process of it works."""
        return self.heartbeat is not None and self.heartbeat.starving


@dataclass(frozen=True)
class PastVerdict:
    """The ends of a stream's generations, and what stands before its next start."""

    ends: tuple[PastEnd, ...] = ()
    """Those of the last day that nobody planned, oldest first."""
    failure: str = ""
    """The error that the generation's driver reported."""
    former_spec: bool = False
    """Whether it runs in place of its declared spec, which failed."""
    environment: str = ""
    """What ended it, or keeps its processes from working, without its own fault: a server's name or an error, until it
    works again."""
    waits_for_a_person: timedelta | None = None
    """For how long it has been dead because a person killed it; None if it is not."""
    start_may_wait: timedelta | None = None
    """How long a start that is due, now or after the freeze, may wait; None if none is due."""
    blocked: Blocked | None = None
    """What keeps it from its start or restart."""


@dataclass(frozen=True)
class PeopleVerdict:
    """The words of people on a stream, and files of others beside it."""

    word: datetime | None = None
    """The time of a person's last order on it."""
    freeze: str = ""
    """The cluster's freeze in words, empty if there is none."""
    freeze_warning: str = ""
    """What falls into the freeze, empty if nothing does."""
    notify: NotifyPolicy | None = None
    """The notifier of its events."""
    edit: PolicyEdit | None = None
    """The last edit of the declaration's policies, whether it holds or not; None if none is kept. Without a conclusion
    it may not have been read."""
    strangers_files: Mapping[str, str] = field(default_factory=dict)
    """What others wrote into its folder, with their names: it counts for nothing."""
    app_name: str | None = None
    """What they and YARN call it, by what runs; empty if that is its name, None if it is not known."""
    unproven: str = ""
    """The owner of its folder where nobody could prove yet that the stream runs as that user, else empty."""


@dataclass(frozen=True)
class Seen:
    """The facts that a look went by: the spec that is watched, the newest claim, and the checkpoints as they were.

    `speakers` are who runs the stream, by HDFS's short names, as far as that is proven; else who passes for it.
    """

    spec: StreamSpec
    claim: Claim | None
    now: datetime
    checkpoints: tuple[Checkpoint, ...]
    speakers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Verdict:
    """The verdict of a round on one stream."""

    step: Step | None
    """None when no conclusion was possible; `why` then tells why."""
    why: str
    generation: int = 0
    application: str | None = None
    lives: bool = False
    """Whether its application is accepted or running."""
    shared: bool = False
    """Whether, without a conclusion, the cause may be the cluster's."""
    facts: GenerationFacts | None = None
    """What pages draw of it, None without a conclusion."""
    credentials: CredentialVerdict = CredentialVerdict()
    progress: ProgressVerdict = ProgressVerdict()
    past: PastVerdict = PastVerdict()
    people: PeopleVerdict = field(default_factory=PeopleVerdict)
    seen: Seen | None = None
    """What it was concluded from, None without a conclusion."""

    @property
    def unread(self) -> bool:
        """Return whether nothing could be read of the stream: its generation 0 is none."""
        return self.step is None and not self.generation

    def to_json(self) -> dict[str, Any]:
        """Return plain data, durations in seconds."""
        return {
            "step": type(self.step).__name__.lower() if self.step else "unknown",
            "why": self.why,
            "generation": None if self.unread else self.generation,
            "application": self.application,
            "app_name": self.people.app_name,
            "pulse": self.progress.heartbeat.pulse.value if self.progress.heartbeat else None,
            "commit_age_seconds": _seconds(self.progress.heartbeat.commit_age if self.progress.heartbeat else None),
            "horizon_seconds": _seconds(self.credentials.remaining),
            "horizon": self.credentials.horizon.name.lower() if self.credentials.horizon else None,
            "horizon_token": self.credentials.token,
            "uncounted": list(self.credentials.uncounted),
            "replaceable_until": plain(self.credentials.replacement.until) if self.credentials.replacement else None,
            "logs_seconds": _seconds(self.credentials.logs_left),
            "may_retry": self.credentials.may_retry,
            "refreshed": self.credentials.refreshed.to_json() if self.credentials.refreshed else None,
            "verified": self.progress.verified,
            "failure": self.past.failure,
            "followed_at": plain(self.step.until) if isinstance(self.step, Settled) else None,
            "breaker_open": self.breaker_open,
            "blocked": plain(self.past.blocked),
            "ends": plain(self.past.ends),
            "former_spec": self.past.former_spec,
            "environment": self.past.environment,
            "waits_for_a_person_seconds": _seconds(self.past.waits_for_a_person),
            "freeze": self.people.freeze,
            "freeze_warning": self.people.freeze_warning,
            "foretold": list(self.credentials.foretold),
            "strangers_files": dict(self.people.strangers_files),
            "unproven": self.people.unproven,
        }

    @property
    def breaker_open(self) -> bool:
        return isinstance(self.step, Settled) and self.step.breaker

    @property
    def reminders(self) -> int:
        """Return how often somebody has to have been told by now that the stream waits for a person: at once, daily."""
        return 0 if self.past.waits_for_a_person is None else 1 + self.past.waits_for_a_person // _DAY

    @property
    def horizon_known(self) -> bool:
        return self.credentials.horizon is not None and self.credentials.horizon is not HorizonReason.UNKNOWN

    @property
    def calls_for_action(self) -> bool:
        """Return whether the stream's task has to act; without a conclusion, time decides and not the verdict."""
        if self.step is None:
            return False
        return not (isinstance(self.step, Settled) and self.step.phase in _WATCHED)


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
