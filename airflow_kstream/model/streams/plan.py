"""Verdict → plan → action → report: values that can be printed, tested and shown. Among them is what keeps a stream
from being started or restarted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.plain import Group, fields_of
from airflow_kstream.model.printable import storable
from airflow_kstream.model.streams.generation import FailedSpec
from airflow_kstream.model.streams.generation_end import PastEnd
from airflow_kstream.model.streams.horizon import Horizon
from airflow_kstream.model.streams.stall import Heartbeat, Stall


class Phase(StrEnum):
    """The state of a stream when there is nothing to do for the moment; FROZEN: nothing may be done."""

    RUNNING = "running"
    STARTING = "starting"
    STOPPED = "stopped"
    HELD = "held"
    ENDED = "ended"
    BACKING_OFF = "backing off"
    KILLED = "killed"
    FROZEN = "frozen"


@dataclass(frozen=True)
class Settled:
    """A stream with nothing left to do but to watch it (also if HELD or STOPPED) or to tell its end (ENDED).

    BACKING_OFF and KILLED ended without a plan: the one is followed at `until`, the other when a person starts it.
    `breaker` is whether the stream's circuit breaker is open.
    """

    phase: Phase
    why: str
    until: datetime | None = None
    breaker: bool = False


@dataclass(frozen=True)
class Wait:
    """A wait before the next check; `until` is the latest moment at which the answer will differ."""

    until: datetime
    why: str


@dataclass(frozen=True)
class Kill:
    """The end of an application that must not live: an older generation, or a second one of the same."""

    application: str
    why: str


@dataclass(frozen=True)
class Stop:
    """A graceful end of a generation. `preflight`: check that its successor could start before stopping anything.

    `obstacle` is what is known already to keep its successor from starting, empty if nothing is. `hung` is the batch
    for which it is ended, None if it is ended for anything else.
    """

    generation: int
    application: str
    why: str
    preflight: bool
    obstacle: str = ""
    hung: Stall | None = None


@dataclass(frozen=True)
class Examine:
    """A look into the processes of a generation whose batch may hang, and the evidence of what they do."""

    stall: Stall
    application: Application
    why: str


@dataclass(frozen=True)
class Push:
    """A push of fresh tokens to a generation that runs; without `tokens` it asks whether the driver would take any."""

    generation: int
    application: str
    why: str
    tokens: bool = True


@dataclass(frozen=True)
class Revoke:
    """The end of the tokens that were pushed to a generation which is over: nobody needs them any longer."""

    generation: int
    why: str


@dataclass(frozen=True)
class GiveUp:
    """The removal of the fence of a claim that brought no application, so that none can start late."""

    generation: int
    fence: str
    why: str


@dataclass(frozen=True)
class Note:
    """The record of an end that nobody planned: before it, nothing follows. `why` tells how the generation ended."""

    end: PastEnd
    why: str


@dataclass(frozen=True)
class FormerSpec:
    """The spec of an earlier `generation`, which is submitted again because the declared one failed."""

    generation: int
    instead_of: FailedSpec


@dataclass(frozen=True)
class Submit:
    """A submission: claim the next generation and, once the claim is ours, submit it once.

    `former` names the spec if it is not the declared one.
    """

    generation: int
    why: str
    former: FormerSpec | None = None


@dataclass(frozen=True)
class Refuse:
    """A refusal to act: somebody else may be writing the checkpoint, and a person has to look."""

    why: str


Step = Settled | Wait | Kill | Stop | Push | Revoke | Examine | GiveUp | Note | Submit | Refuse


@dataclass(frozen=True)
class DoneAction:
    """An action that was carried out; `at` by the NameNode's clock. `submitted` is the generation that it brought."""

    at: datetime
    what: str
    why: str
    submitted: int | None = None


@dataclass(frozen=True)
class JobReport(Group):
    """The application of a stream's newest generation."""

    application: str | None
    application_url: str
    logs_url: str
    succeeded: bool
    diagnostics: str


@dataclass(frozen=True)
class DeclarationReport(Group):
    """The declaration of a stream beside what runs."""

    spec_differences: tuple[str, ...] = ()
    spec_doubt: str = ""
    """Why it is unknown whether the declared spec would submit another job than the running one; empty if it is not."""
    owner_doubt: str = ""
    """Why nothing will follow the running generation until somebody has decided: the stream does not own the
    checkpoints that it writes, or lacks the claim of what runs."""
    failed_spec: str = ""
    """Why the declared spec is not what runs: it failed; empty if it did not."""


@dataclass(frozen=True)
class Report:
    """The state in which a reconcile found and left a stream. Holds no secrets: it goes to XCom, the log and the UI."""

    stream: str
    phase: Phase
    why: str
    generation: int
    job: JobReport
    horizon: Horizon | None
    heartbeat: Heartbeat | None
    declaration: DeclarationReport = DeclarationReport()
    freeze: str = ""
    """The cluster's freeze in words, with what falls into it; empty if it is not frozen."""
    foretold: tuple[str, ...] = ()
    """What the doctor expects for the running generation, each with its date, if it was asked."""
    done: tuple[DoneAction, ...] = field(default=())
    app_name: str = ""
    """What people call it, as it is declared; empty if that is its name."""

    @property
    def ended(self) -> bool:
        """Return True if it ended by itself. A held or stopped stream is still watched: a person may want it again."""
        return self.phase is Phase.ENDED

    def to_json(self) -> dict[str, Any]:
        """Return plain data that Airflow can store: times in ISO 8601 UTC, durations in seconds."""
        return dict(storable(fields_of(self)))


class Obstacle(StrEnum):
    """The kind of what stands in the way. REFUSED: what the supervisor sees forbids it, such as lost positions."""

    FREEZE = "freeze"
    PREFLIGHT = "preflight"
    REFUSED = "refused"
    KILLED = "killed by a person"
    BREAKER = "circuit breaker"
    ENVIRONMENT = "environment"


@dataclass(frozen=True)
class Blocked:
    """An obstacle. `since` is None if it is not known; `why` are the words of the task's log, with the way out."""

    by: Obstacle
    since: datetime | None
    why: str

    def __str__(self) -> str:
        since = f" since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        return f"BLOCKED{since} ({self.by})"
