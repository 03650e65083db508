"""What a JobManager says of its job: TaskManagers, vertices, checkpoints, and whether they survive the job."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_kstream.model.streams.generation import Claim, StreamId

# By which YARN knows an application of Flink's.
APPLICATION_TYPE = "Apache Flink"


def flink_job_id(stream: StreamId, generation: int, nonce: str) -> str:
    """Return the id of a generation's job, which is known before it runs."""
    return hashlib.sha256(f"{stream}-{generation}-{nonce}".encode()).hexdigest()[:32]


def job_of(stream: StreamId, claim: Claim) -> str | None:
    """Return the id of the job that a claim is about; None for one that was adopted and never told it."""
    return flink_job_id(stream, claim.generation, claim.nonce) if claim.submitted_by_us else claim.adoption.job


@dataclass(frozen=True)
class FlinkOverview:
    """TaskManagers and jobs of a JobManager. `running` also counts jobs that restart, or wait for TaskManagers."""

    taskmanagers: int
    running: int

    @property
    def starves(self) -> bool:
        """Return True if a job counts as running that no process runs."""
        return self.running > 0 and self.taskmanagers == 0


@dataclass(frozen=True)
class FlinkVertex:
    """A part of the job's graph. `read` and `written` count records that passed between vertices since its last start.

    They are None while the JobManager has not heard from each task. A job whose operators are chained into one vertex
    reads and writes 0, whatever passes through it.

    `spent` is how long its tasks have run, in milliseconds: it changes once the JobManager has heard of a task again.
    """

    id: str
    name: str
    status: str
    parallelism: int
    read: int | None
    written: int | None
    spent: int = 0

    @property
    def label(self) -> str:
        """Return its name, and enough of its id to tell it from another one of this name."""
        return f"{self.name} [{self.id[:8]}]"

    @property
    def works(self) -> bool:
        """Return whether it gets on, or has read all that it ever will."""
        return self.status in {"RUNNING", "FINISHED"}


@dataclass(frozen=True)
class FlinkJob:
    id: str
    name: str
    state: str
    vertices: tuple[FlinkVertex, ...]


@dataclass(frozen=True)
class FlinkReading:
    """The numbers that a JobManager has heard of its job's tasks; they are seconds old, or older.

    `runs` is whether all tasks run. `counts` are records by names of the job's own: those that vertices read from each
    other, and those that the operators of a source's vertex pass on. They are None while one is not known. `spent` is
    the time that tasks have run, in milliseconds.
    """

    runs: bool
    spent: int
    counts: Mapping[str, int] | None = None


@dataclass(frozen=True)
class FlinkCheckpoint:
    """A completed checkpoint or savepoint. `at` is when it was triggered, or restored, by the JobManager's clock.

    `path` is None where it lies nowhere outside of the JobManager. Of one that was found on HDFS, `at` is when it was
    complete, by the NameNode's clock.
    """

    number: int
    at: datetime
    path: str | None
    is_savepoint: bool


@dataclass(frozen=True)
class FlinkCheckpoints:
    """Checkpoints since the JobManager's start; `restored` grows with each restart of the job inside Flink.

    `failed` also counts those that were triggered while tasks were still being deployed: healthy jobs have some.
    `failed_since` are those after the newest completed one, as far as the JobManager remembers them, `last_failure` is
    why the last one failed, and `begun` is since when one is in progress. `completed_since_restart` are those after the
    one from which the job went on last, as far as the JobManager remembers them.
    """

    completed: int
    failed: int
    in_progress: int
    restored: int
    newest: FlinkCheckpoint | None
    savepoint: FlinkCheckpoint | None
    resumed_from: FlinkCheckpoint | None
    last_failure: str | None
    failed_since: int = 0
    begun: datetime | None = None
    completed_since_restart: int = 0


@dataclass(frozen=True)
class FlinkCheckpointing:
    """Settings of a job's checkpoints. `survives` is whether they outlive a job that is cancelled.

    `interval` is None for a job that makes none by itself.
    """

    interval: timedelta | None
    timeout: timedelta
    pause: timedelta
    tolerable: int
    survives: bool
