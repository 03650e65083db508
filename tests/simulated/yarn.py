"""A simulated cluster that follows YARN's and HDFS's rules, with simulated time, to test policies against."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.clusters.application import (
    Application,
    ApplicationState,
    Containers,
    NodeReport,
    NodeVerdict,
)
from airflow_kstream.model.kerberos.tokens import TokenLifetimes
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.contract import fence_name, started_marker, stop_marker, stopped_marker
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.freeze import NOT_FROZEN, Freeze
from airflow_kstream.model.streams.generation import Claim, ClaimCredentials, Desired, Position, StreamId
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.looks import Looks
from airflow_kstream.model.streams.observation import DriverLook, FolderLook, Observation
from airflow_kstream.model.streams.plan import GiveUp, Kill, Note, Step, Stop, Submit
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.policy.streams.restart.looks import further, signs
from tests.simulated.values import changed

START = datetime(2026, 1, 1, tzinfo=UTC)
STREAM = StreamId("orders", "/kstream")
CHECKPOINT = "/data/orders/checkpoint"
WEEK = TokenLifetimes(timedelta(days=1), timedelta(days=7))
TICKET_SPEC = StreamSpec(
    name="orders",
    credentials=TicketCredentials(),
    application="/jobs/orders.py",
    checkpoints=(CHECKPOINT,),
)
NODE = "node1:8042"


def claim_of(spec: StreamSpec, generation: int, at: datetime, positions: dict[str, Position] | None = None) -> Claim:
    return Claim(
        generation=generation,
        nonce=f"nonce{generation}",
        claimed_at=at,
        claimed_by="somebody",
        spec_fingerprint=fingerprint(spec),
        spec=spec,
        credentials=ClaimCredentials(lifetimes=WEEK),
        positions=positions or {},
    )


def application(
    generation: int,
    state: ApplicationState,
    *,
    number: int = 1,
    finished: datetime | None = None,
    diagnostics: str = "",
) -> Application:
    return Application(
        id=f"application_1_{number:04d}",
        state=state,
        final_status={"FINISHED": "SUCCEEDED", "FAILED": "FAILED", "KILLED": "KILLED"}.get(state, "UNDEFINED"),
        user="streamer",
        tags=frozenset(STREAM.tags(generation)),
        started=START,
        finished=finished,
        diagnostics=diagnostics,
        logs_url="",
    )


def containers(verdict: NodeVerdict) -> Containers:
    """Return the report of the one node on which all containers ran."""
    return Containers(NodeReport(NODE, verdict), ())


def past_end(generation: int, at: datetime = START, kind: EndKind = EndKind.UNKNOWN, **more: object) -> PastEnd:
    """Return the record of an end a minute after the generation's claim."""
    minute = timedelta(minutes=1)
    return changed(PastEnd(generation, kind, "", at, at - minute, lasted=minute, worked=False), **more)


def watched(observation: Observation, age: timedelta = timedelta(days=1)) -> Looks:
    """Return the looks of a supervisor that has seen nothing else for so long."""
    return Looks(dict.fromkeys(signs(observation), age), further({}, observation))


@dataclass(frozen=True)
class Driver:
    """A process that writes the checkpoint until `dies`, if it is to die; `generation` tells whose it is."""

    application: str
    generation: int
    dies: datetime | None = None


@dataclass
class SimulatedYarn:
    """The servers' side. Supervisors observe it with `look` and change it with `carry_out`, at any later moment.

    An application that arrives needs its generation's fence to be localised; one without it never runs. Its driver is a
    process of its own: it lives on for `lingers` after the ResourceManager has called the application ended. The
    NodeManager knows it as long as `nodemanager_answers`. While `forgetful`, the ResourceManager lists nothing.
    """

    now: datetime = START
    desired: Desired = field(default_factory=Desired)
    claims: dict[int, Claim] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    applications: list[tuple[int, Application]] = field(default_factory=list)
    on_their_way: list[Claim] = field(default_factory=list)
    offsets: dict[int, datetime] = field(default_factory=dict)
    commits: dict[int, datetime] = field(default_factory=dict)
    drivers: list[Driver] = field(default_factory=list)
    lingers: timedelta = timedelta()
    nodemanager_answers: bool = True
    forgetful: bool = False
    idle: bool = False
    has_helper: bool = False
    accepted: dict[int, Position] = field(default_factory=dict)
    ends: list[PastEnd] = field(default_factory=list)
    failure: str = ""
    freeze: Freeze = NOT_FROZEN

    def look(self) -> Observation:
        newest = max(self.claims, default=None)
        point = Checkpoint(CHECKPOINT, "q" if self.offsets else None, dict(self.offsets), dict(self.commits))
        claim = self.claims[newest] if newest else None
        listed = () if self.forgetful else tuple(self.applications)
        seen = Observation(
            *(STREAM, self.now, self.desired, claim, frozenset(self.files), listed, (point,)),
            freeze=self.freeze,
            folder=FolderLook(ends=tuple(self.ends)),
            driver=DriverLook(failure=self.failure),
        )
        if word := self.accepted.get(seen.generation + 1):
            seen = changed(seen, accepted={CHECKPOINT: word})
        app = seen.current
        if app is None or app.alive:
            return seen
        return changed(seen, containers=self._containers(app))

    def carry_out(self, step: Step) -> None:
        match step:
            case Submit(generation):
                self._claim(generation)
            case Stop(generation, app_id):
                self.files.add(stop_marker(generation))
                if self.has_helper and any(driver.application == app_id for driver in self.drivers):
                    self.files.add(stopped_marker(generation))
                    self.drivers = [driver for driver in self.drivers if driver.application != app_id]
                self.end(app_id, ApplicationState.FINISHED)
            case Kill(app_id):
                self.end(app_id, ApplicationState.KILLED)
            case Note(end):
                if all(end.generation > recorded.generation for recorded in self.ends):
                    self.ends.append(end)
            case GiveUp(generation, fence):
                arrived = any(number == generation and app.alive for number, app in self.applications)
                if self.forgetful or not arrived:
                    self.files.discard(fence)

    def arrive(self, *, at_once: bool = True) -> None:
        """Let the oldest submission under way reach the ResourceManager, which starts its driver at once or later."""
        claim = self.on_their_way.pop(0)
        number = len(self.applications) + 1
        accepted = application(claim.generation, ApplicationState.ACCEPTED, number=number)
        self.applications.append((claim.generation, accepted))
        if at_once:
            self.start(accepted.id)

    def start(self, app_id: str) -> None:
        """Localise an accepted application's driver, or fail to: without its fence it never runs."""
        number, app = next(pair for pair in self.applications if pair[1].id == app_id)
        if fence_name(number, self.claims[number].nonce) not in self.files:
            self.end(app_id, ApplicationState.FAILED)
            return
        self._become(app_id, ApplicationState.RUNNING, None)
        self.drivers.append(Driver(app.id, number))
        if self.has_helper:
            self.files.add(started_marker(number))

    def end(self, app_id: str, state: ApplicationState) -> None:
        """End an application by the ResourceManager's word; its driver's process lingers."""
        if not any(app.id == app_id and app.alive for _, app in self.applications):
            return
        self._become(app_id, state, self.now)
        self.drivers = [
            replace(driver, dies=self.now + self.lingers) if driver.application == app_id else driver
            for driver in self.drivers
        ]
        self._bury()

    def pass_time(self, seconds: float) -> None:
        """Advance the clock; a driver commits a batch unless its source is idle."""
        self.now += timedelta(seconds=seconds)
        if self.drivers and not self.idle:
            batch = max(self.offsets, default=-1) + 1
            self.offsets[batch] = self.commits[batch] = self.now
        self._bury()

    def lose_the_checkpoint(self) -> None:
        self.offsets.clear()
        self.commits.clear()

    def accept(self) -> None:
        """Write a person's word that the next generation may start from the checkpoint as it is."""
        seen = self.look()
        self.accepted[seen.generation + 1] = seen.checkpoints[0].position

    def monotonic(self) -> float:
        return (self.now - START).total_seconds()

    @property
    def running(self) -> list[Application]:
        return [app for _, app in self.applications if app.state is ApplicationState.RUNNING]

    @property
    def waiting(self) -> list[Application]:
        return [app for _, app in self.applications if app.state is ApplicationState.ACCEPTED]

    def _become(self, app_id: str, state: ApplicationState, finished: datetime | None) -> None:
        self.applications = [
            (number, application(number, state, number=int(app.id[-4:]), finished=finished))
            if app.id == app_id
            else (number, app)
            for number, app in self.applications
        ]

    def _bury(self) -> None:
        self.drivers = [driver for driver in self.drivers if driver.dies is None or driver.dies > self.now]

    def _containers(self, app: Application) -> Containers:
        if not self.nodemanager_answers:
            return containers(NodeVerdict.UNREACHABLE)
        lives = any(driver.application == app.id for driver in self.drivers)
        return containers(NodeVerdict.LIVE if lives else NodeVerdict.COMPLETE)

    def _claim(self, generation: int) -> None:
        """Grant one claim of a generation; a later one changes nothing."""
        if generation in self.claims:
            return
        claim = claim_of(TICKET_SPEC, generation, self.now, {CHECKPOINT: self.look().checkpoints[0].position})
        self.claims[generation] = claim
        self.files |= {f"gen-{generation:06d}", claim.fence}
        self.on_their_way.append(claim)
