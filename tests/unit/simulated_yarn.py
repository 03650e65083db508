"""A simulated cluster that follows YARN's and HDFS's rules, with simulated time, to test policies against."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.application import Application, ApplicationState
from airflow_kstream.model.checkpoint import Checkpoint
from airflow_kstream.model.contract import fence_name, stop_marker
from airflow_kstream.model.generation import Claim, Desired, Position, StreamId
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.plan import GiveUp, Kill, Step, Stop, Submit
from airflow_kstream.model.spec_fingerprint import fingerprint
from airflow_kstream.model.stream import StreamSpec, TicketCredentials
from airflow_kstream.model.tokens import TokenLifetimes

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


def claim_of(spec: StreamSpec, generation: int, at: datetime, positions: dict[str, Position] | None = None) -> Claim:
    return Claim(
        generation=generation,
        nonce=f"nonce{generation}",
        claimed_at=at,
        claimed_by="somebody",
        spec_fingerprint=fingerprint(spec),
        spec=spec,
        lifetimes=WEEK,
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


@dataclass
class SimulatedYarn:
    """The servers' side. Supervisors observe it with `look` and change it with `carry_out`, at any later moment.

    An application that arrives needs its generation's fence to be localised; one without it never runs.
    """

    now: datetime = START
    desired: Desired = field(default_factory=Desired)
    claims: dict[int, Claim] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    applications: list[tuple[int, Application]] = field(default_factory=list)
    on_their_way: list[Claim] = field(default_factory=list)
    offsets: dict[int, datetime] = field(default_factory=dict)
    commits: dict[int, datetime] = field(default_factory=dict)

    def look(self) -> Observation:
        newest = max(self.claims, default=None)
        point = Checkpoint(CHECKPOINT, "q", dict(self.offsets), dict(self.commits))
        claim = self.claims[newest] if newest else None
        return Observation(
            STREAM, self.now, self.desired, claim, frozenset(self.files), tuple(self.applications), (point,)
        )

    def carry_out(self, step: Step) -> None:
        match step:
            case Submit(generation):
                self._claim(generation)
            case Stop(generation, app_id):
                self.files.add(stop_marker(generation))
                self.end(app_id, ApplicationState.FINISHED)
            case Kill(app_id):
                self.end(app_id, ApplicationState.KILLED)
            case GiveUp(_, fence):
                self.files.discard(fence)

    def arrive(self) -> None:
        """Let the oldest submission under way reach the ResourceManager, which localises it or fails to."""
        claim = self.on_their_way.pop(0)
        fits = fence_name(claim.generation, claim.nonce) in self.files
        state = ApplicationState.RUNNING if fits else ApplicationState.FAILED
        number = len(self.applications) + 1
        finished = None if fits else self.now
        self.applications.append(
            (claim.generation, application(claim.generation, state, number=number, finished=finished))
        )

    def end(self, app_id: str, state: ApplicationState) -> None:
        self.applications = [
            (number, application(number, state, number=int(app.id[-4:]), finished=self.now))
            if app.id == app_id and app.alive
            else (number, app)
            for number, app in self.applications
        ]

    def pass_time(self, seconds: int) -> None:
        """Advance the clock; a running application commits a batch."""
        self.now += timedelta(seconds=seconds)
        if self.running:
            batch = max(self.offsets, default=-1) + 1
            self.offsets[batch] = self.commits[batch] = self.now

    @property
    def running(self) -> list[Application]:
        return [app for _, app in self.applications if app.state is ApplicationState.RUNNING]

    def _claim(self, generation: int) -> None:
        """Grant one claim of a generation; a later one changes nothing."""
        if generation in self.claims:
            return
        claim = claim_of(TICKET_SPEC, generation, self.now)
        self.claims[generation] = claim
        self.files |= {f"gen-{generation:06d}", claim.fence}
        self.on_their_way.append(claim)
