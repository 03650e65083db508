"""Random lives of a Flink stream: its jobs, its supervisors and persons, and what happens at any of their requests.

The real supervisor, folder and FlinkEngine run on servers in memory that lose requests and replies. A job makes a
checkpoint every half minute of virtual time, keeps a few, and obeys its stop marker, or doesn't. Processes of a dead
job may live on, and go on as long as they can write.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.streams.contract import fence_name, started_marker, stop_marker
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.submission import Submission, SubmissionOrder, SubmitOutcome
from airflow_kstream.policy.streams.flink.flink_submission import checkpoints_folder, savepoints_folder
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.orders.desired import request_restart, set_desired, start_from
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.flink import FlinkLife, SimFlink, metadata
from tests.simulated.life import Life
from tests.simulated.servers import SimHdfs, session_of
from tests.simulation.virtual import Killed

_CLOSED = "555"
_EVERY, _MAKING = timedelta(seconds=30), timedelta(seconds=12)
# What a request takes.
_REQUEST = timedelta(milliseconds=50)
# The requests of a restart, roughly.
_REQUESTS = 90
FAULTS = ("request lost", "reply lost", "crash before", "crash after", "another supervisor", "a person", "job dies")
FATES = ("client dies", "crash after the client", "queue full", "arrives late")


class Broken(AssertionError):
    """A promise that is broken."""


@dataclass
class Hdfs(SimHdfs):
    """An HDFS whose changes are told again once they are done: that can raise, as a lost reply does."""

    answered: Callable[[], object] = lambda: None

    def write(self, path: str, content: str | bytes, *, overwrite: bool = False, permission: str = "640") -> None:
        super().write(path, content, overwrite=overwrite, permission=permission)
        self.answered()

    def make_folder(self, path: str, permission: str = "750") -> None:
        super().make_folder(path, permission)
        self.answered()

    def change_mode(self, path: str, permission: str) -> None:
        super().change_mode(path, permission)
        self.answered()

    def rename_over(self, source: str, target: str) -> None:
        super().rename_over(source, target)
        self.answered()

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        done = super().delete(path, recursive=recursive)
        self.answered()
        return done


@dataclass
class Job:
    """A job. Once YARN has given it up, its host `sleeps`, and then its processes live on for as long as it `lingers`.

    It `obeys` its stop marker after this time, if at all, and `keeps` so many checkpoints.
    """

    app: str
    generation: int
    folder: str
    savepoints: str
    begins: datetime
    number: int
    sleeps: timedelta
    lingers: timedelta
    obeys: timedelta | None
    keeps: int
    made: list[int] = field(default_factory=list)
    asked: datetime | None = None
    closed: bool = False
    asleep: bool = False

    def fall_asleep(self) -> None:
        """Do what is under way, and all that would follow, so much later."""
        if not self.asleep:
            self.asleep = True
            self.begins += self.sleeps
            self.asked = self.asked and self.asked + self.sleeps


class Engine(SimFlink):
    """Flink's engine, whose clients have the fates of their world."""

    world: FlinkWorld

    def submission(self, order: SubmissionOrder) -> Submission:
        self.order = order
        return super().submission(order)

    def submit(
        self, submission: Submission, cluster: Cluster, ticket_cache: Path, folder: Path, timeout: timedelta
    ) -> SubmitOutcome:
        return self.world.submitted(submission, self.order)


class FlinkWorld:
    """The servers, jobs and programs of one life, all drawn from its number."""

    def __init__(self, life: Life, number: int) -> None:
        self.rng = random.Random(f"flink/{number}")
        self.clock, self.yarn = life.clock, life.yarn
        self.hdfs = life.hdfs = Hdfs(life.clock)
        life.engine.hdfs = self.hdfs
        self.engine = Engine(self.hdfs, self.yarn)
        self.engine.world = self
        self.spec = FlinkLife(life).spec
        self.hdfs.at_request = self.yarn.at_request = self._asked
        self.hdfs.answered = self._answered
        self.folder = self.run().id.folder
        self.jobs: list[Job] = []
        self.newest: tuple[int, str] | None = None
        self.story: list[str] = []
        self.late: list[tuple[datetime, Submission, SubmissionOrder]] = []
        self._faults: dict[int, str] = {}
        self._fates: list[str] = []
        self._requests, self._inside, self._dead, self._lose = 0, 0, False, ""

    def tell(self, line: str) -> None:
        self.story.append(f"{self.clock.ahead.total_seconds():9.1f} s  {line}")

    def run(self) -> StreamRun:
        """Return what a new process of a supervisor or a person works with."""
        return StreamRun(session_of(self.hdfs, self.yarn), self.spec, self.engine)

    def live(self) -> None:
        """Live through disturbed days, and then bring the stream to run."""
        self._says_fresh()
        if self.rng.random() < 0.8:
            self.supervise(Mode.ENSURE)
        for _ in range(self.rng.randint(4, 8)):
            self._disturb()
            self.clock.ahead += timedelta(seconds=self.rng.choice((60, 400, 4000, 9000)))
            self.move()
            for _ in range(self.rng.randint(1, 2)):
                self.supervise(self.rng.choice(list(Mode)))
        self._faults, self._fates = {}, []
        self._conclude()

    def _disturb(self) -> None:
        self._requests = 0
        kinds = self.rng.choices(FAULTS, k=self.rng.randint(0, 3))
        self._faults = {self.rng.randint(1, _REQUESTS): kind for kind in kinds}
        self._fates = self.rng.choices(FATES, k=1) if self.rng.random() < 0.4 else []
        if self.rng.random() < 0.7:
            self._person() if self.rng.random() < 0.6 else self._job_dies()

    def _conclude(self) -> None:
        """Let a person say that it is to run: once nothing disturbs it, it does, and completes checkpoints."""
        for _ in range(8):
            if self.jobs:
                self._speaks(lambda run: set_desired(run, DesiredState.RUNNING, "at last"))
            else:
                # Each later order took the word back.
                self._says_fresh()
            self.supervise(Mode.ENSURE)
            self.clock.ahead += timedelta(minutes=15)
            self.move()
            if self.alive:
                return
        raise Broken("with working servers it is not brought to run")

    @property
    def alive(self) -> list[str]:
        return [app.id for app in self.yarn.apps.values() if app.alive]

    def supervise(self, mode: Mode) -> None:
        """Let a supervisor work until it has nothing to do, or ends."""
        self._dead = False
        try:
            Reconciler(self.run(), tell=self.tell).run(mode)
        except Killed:
            self.tell("the supervisor is dead")
        except KstreamError as error:
            self.tell(f"the supervisor ends: {error.message}")
        finally:
            self._dead = False

    def _speaks(self, act: Callable[[StreamRun], object]) -> None:
        """Let a person give an order, undisturbed."""
        with _Inside(self):
            try:
                act(self.run())
            except KstreamError as error:
                self.tell(f"a person hears no: {error.message}")

    def _says_fresh(self) -> None:
        self._speaks(lambda run: start_from(run, "a new stream", fresh=True))

    def _person(self) -> None:
        word = self.rng.choice(("stop", "start", "restart", "restart"))
        self.tell(f"a person says {word}")
        states = {"stop": DesiredState.STOPPED, "start": DesiredState.RUNNING}
        if word in states:
            self._speaks(lambda run: set_desired(run, states[word], "a person"))
        else:
            self._speaks(lambda run: request_restart(run, "a person"))

    def _job_dies(self) -> None:
        for app in self.alive:
            self.tell(f"{app} dies")
            with _Inside(self):
                self.yarn.end(app, ApplicationState.FAILED)

    def _another(self) -> None:
        self.tell("another supervisor works meanwhile")
        with _Inside(self):
            self.supervise(Mode.ENSURE)

    def _asked(self, request: str, path: str) -> None:
        """Count a request, and let happen what is due at it."""
        self.clock.ahead += _REQUEST
        self.move()
        if self._inside:
            return
        if self._dead:
            raise Killed
        self._requests += 1
        fault = self._faults.pop(self._requests, "")
        if fault:
            self.tell(f"request {self._requests} ({request} {path}): {fault}")
        if fault in {"reply lost", "crash after"} and request in {"write", "make", "mode", "rename", "delete"}:
            self._lose = fault
        elif fault in {"request lost", "reply lost"}:
            raise Unavailable(fault, tried=f"{request} {path}", server="http://nn:9870")
        elif fault.startswith("crash"):
            self._die()
        acts = {"another supervisor": self._another, "a person": self._person, "job dies": self._job_dies}
        acts.get(fault, lambda: None)()

    def _answered(self) -> None:
        if self._inside or not self._lose:
            return
        lost, self._lose = self._lose, ""
        if lost == "crash after":
            self._die()
        raise Unavailable(lost, tried="hear the answer", server="http://nn:9870")

    def _die(self) -> None:
        self._dead = True
        raise Killed

    def submitted(self, submission: Submission, order: SubmissionOrder) -> SubmitOutcome:
        """Submit as a client does that has this fate."""
        fate = self._fates.pop() if self._fates else ""
        self.tell(f"a client submits generation {order.generation}: {fate or 'well'}")
        if fate == "client dies":
            return SubmitOutcome(1, "no more memory")
        if fate == "arrives late":
            self.late.append((self.clock.now() + timedelta(seconds=self.rng.choice((5, 60, 900))), submission, order))
            return SubmitOutcome(1, "timed out")
        app = self._arrive(submission, order)
        if fate == "queue full":
            self.jobs.pop()
            self.yarn.end(app, ApplicationState.KILLED)
            return SubmitOutcome(None, "", withdrawn=True)
        if fate == "crash after the client" and not self._inside:
            self._die()
        return SubmitOutcome(0, "")

    def _arrive(self, submission: Submission, order: SubmissionOrder) -> str:
        """Start a generation whose fence stands: with the newest state of the stream, and beside no other one."""
        settings = {key: str(setting.value) for key, setting in submission.settings.items()}
        begins_with = plain_path(settings.get("execution.state-recovery.path", ""))
        app = self.yarn.start(frozenset(settings["yarn.tags"].split(",")))
        self.tell(f"{app.id} is generation {order.generation} and begins with {begins_with or 'nothing'}")
        if others := [other for other in self.alive if other != app.id]:
            raise Broken(f"{app.id} starts beside {others}")
        newest = self.newest[1] if self.newest else ""
        if begins_with != newest:
            raise Broken(f"{app.id} begins with {begins_with or 'nothing'}, and the newest is {newest or 'nothing'}")
        if begins_with and f"{begins_with}/_metadata" not in self.hdfs.files:
            raise Broken(f"{begins_with} is gone")
        job = settings["$internal.pipeline.job-id"]
        self.jobs.append(
            Job(
                app.id,
                order.generation,
                checkpoints_folder(self.spec, job),
                savepoints_folder(self.spec, job),
                self.clock.now() + timedelta(seconds=self.rng.choice((5, 40))),
                self.newest[0] if self.newest else 0,
                timedelta(seconds=self.rng.choice((0, 3000, 8000))),
                timedelta(seconds=self.rng.choice((0, 60, 4000))),
                self.rng.choice((None, *(timedelta(seconds=number) for number in (3, 15, 35)))),
                self.rng.choice((1, 1, 3)),
            )
        )
        return app.id

    def move(self) -> None:
        """Let jobs do all that they have done by now."""
        now = self.clock.now()
        for due in [due for due in self.late if due[0] <= now]:
            self.late.remove(due)
            _, submission, order = due
            if f"{order.stream.folder}/{fence_name(order.generation, order.nonce)}" in self.hdfs.files:
                self._arrive(submission, order)
        for job in self.jobs:
            self._work(job, now)

    def _work(self, job: Job, now: datetime) -> None:
        app, until = self.yarn.apps[job.app], now
        if not app.alive:
            # Without a task, which a ResourceManager that has given it up grants to no job, none completes anything.
            job.closed = job.closed or job.folder not in self.hdfs.modes
            job.fall_asleep()
            wakes = (app.finished or now) + job.sleeps
            until = min(now, wakes + job.lingers)
            if now < wakes:
                return
        elif now >= job.begins:
            # Flink makes it before the job's first task runs.
            self.hdfs.modes.setdefault(job.folder, "755")
            self.hdfs.files.setdefault(f"{self.folder}/{started_marker(job.generation)}", ("", now))
        while not job.closed and not job.asked and job.begins + _EVERY <= until:
            self._begin_checkpoint(job)
            if job.begins + _EVERY + _MAKING > until:
                break
            self._end_checkpoint(job)
        if job.obeys is not None and not job.closed and until == now >= job.begins:
            self._stop(job, job.obeys, now)

    def _begin_checkpoint(self, job: Job) -> None:
        path = f"{job.folder}/chk-{job.number + 1}"
        job.closed = path not in self.hdfs.modes and self.hdfs.modes.get(job.folder) == _CLOSED
        if not job.closed:
            self.hdfs.modes.setdefault(path, "755")

    def _end_checkpoint(self, job: Job) -> None:
        path = f"{job.folder}/chk-{job.number + 1}"
        job.closed = job.closed or self.hdfs.modes[path] == _CLOSED
        if job.closed:
            return
        job.begins += _EVERY
        job.number += 1
        self._complete(job, path, job.begins + _MAKING)
        job.made.append(job.number)
        for old in job.made[: -job.keeps]:
            self._remove(f"{job.folder}/chk-{old}")
        del job.made[: -job.keeps]

    def _stop(self, job: Job, within: timedelta, now: datetime) -> None:
        """Obey the stop marker, if there is one: with a savepoint, which takes the checkpoints away."""
        path = f"{job.savepoints}/savepoint-{job.number + 1}"
        if not job.asked and f"{self.folder}/{stop_marker(job.generation)}" in self.hdfs.files:
            job.asked = now
            job.closed = self.hdfs.modes.get(job.savepoints) == _CLOSED
            self.hdfs.modes.setdefault(job.savepoints, "755")
            self.hdfs.modes.setdefault(path, "755")
        if job.closed or not job.asked or job.asked + within > now:
            return
        job.closed = True
        if self.hdfs.modes[path] != _CLOSED:
            job.number += 1
            self._complete(job, path, now)
            for old in job.made:
                self._remove(f"{job.folder}/chk-{old}")
        if job.app in self.alive:
            with _Inside(self):
                self.yarn.end(job.app)

    def _complete(self, job: Job, path: str, at: datetime) -> None:
        if job is not self.jobs[-1]:
            raise Broken(f"{job.app} completes {path} beside its successor")
        self.hdfs.files[f"{path}/_metadata"] = metadata(job.number).decode(errors="surrogateescape"), at
        self.newest = job.number, path

    def _remove(self, path: str) -> None:
        self.hdfs.files.pop(f"{path}/_metadata", None)
        self.hdfs.modes.pop(path, None)


class _Inside:
    """What happens inside another one's request: it is neither counted nor disturbed."""

    def __init__(self, world: FlinkWorld) -> None:
        self._world = world

    def __enter__(self) -> None:
        self._world._inside += 1
        self._dead, self._world._dead = self._world._dead, False

    def __exit__(self, *of: object) -> None:
        self._world._inside -= 1
        self._world._dead = self._dead
