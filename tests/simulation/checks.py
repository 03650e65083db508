"""What must hold in every history, checked as it happens; and the story of the history, for a person to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_kstream.model.streams.contract import claim_file, generation_of_file, newest_claim, stop_marker
from airflow_kstream.model.streams.generation import DesiredState

if TYPE_CHECKING:
    from tests.simulation.jobs import Driver
    from tests.simulation.world import World
    from tests.simulation.yarn import App

OUR_USER = "streamer"
# Within so many seconds, so many claims of one stream, beyond those that a person calls for.
_LOOP_SECONDS, _LOOP = 1800.0, 12
# FailurePolicy's: so many claims a day, beside the first, persons' and those that follow a planned stop; and after
# as many of them in a row, the least time that they take. Full jitter can be short, and never for so many.
_DAY, _PER_DAY = 86400.0, 24
_PACE = {8: 60.0, 12: 1800.0, 16: 7200.0}
# The residual: a driver whose host slept through its end can finish its batch, or begin one, until it learns of it.
_RESIDUAL = 4.0
# The clocks of the NameNodes, of which one says when a freeze expires, differ by this at most.
_SKEW_OF_NAMENODES = 10.0
# A restart is planned at 65 to 75 % of a life; the clocks of the servers differ.
_EARLIEST_SHARE = 0.55


@dataclass(frozen=True)
class Violation:
    """A promise that was broken: `promise` is one of a few words, `what` says how."""

    promise: str
    at: float
    what: str

    def __str__(self) -> str:
        return f"{self.at:9.1f} s  {self.promise}: {self.what}"


TWO_WRITERS = "two writers"
BACKWARDS = "progress went backwards"
GRANTED_TWICE = "one claim was granted twice"
HARMED = "a healthy generation was harmed"
NO_FENCE = "a healthy generation lost its fence"
STUCK = "no way out"
NOTHING_RAN = "nothing ran for too long"
LOOP = "restart loop"
OVER_BUDGET = "more restarts than the budget"
WORD_LOST = "a person's word was lost"
THAWED = "somebody acted on a frozen cluster"
UNWOKEN = "nobody was woken"
BLIND = "a watcher looks no longer"
DEFECT = "an error that is none of ours"


@dataclass
class Word:
    """What a person said about a stream: a state or, with None, that its generations up to `up_to` be replaced.

    `ended` is when the command reported success; None if it has not.
    """

    folder: str
    said: DesiredState | None
    began: float
    up_to: int = 0
    ended: float | None = None


@dataclass(frozen=True)
class Frozen:
    """A freeze: who looks into the state_dir `folder` after `since` must not act before `until`."""

    folder: str
    since: float
    until: float


@dataclass
class Checks:
    """The record of one history."""

    world: World
    told: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    claims: dict[tuple[str, int], float] = field(default_factory=dict)
    looked: dict[tuple[str, str], float] = field(default_factory=dict)
    # The same of threads, in which pollers look: a worker's own looks leave them out.
    watched: dict[tuple[str, str], float] = field(default_factory=dict)
    last_ran: dict[str, float] = field(default_factory=dict)
    planned: set[tuple[str, int]] = field(default_factory=set)
    # When a process fell asleep right before it removed a fence.
    slept: dict[str, float] = field(default_factory=dict)
    # When the claimer of a generation had looked at the checkpoint: what becomes of it later, it can't see.
    seen: dict[tuple[str, int], float] = field(default_factory=dict)
    brakes: list[Frozen] = field(default_factory=list)
    # When persons decided about the checkpoint, when somebody damaged it, and the newest batch that was committed.
    accepted_at: list[float] = field(default_factory=list)
    damaged_at: float | None = None
    furthest: int = -1
    # The newest commit that a process, and that the claimer of a generation, had seen.
    saw: dict[str, int] = field(default_factory=dict)
    known: dict[tuple[str, int], int] = field(default_factory=dict)

    def tell(self, who: str, what: str) -> None:
        # The same history tells the same story, in whichever temporary folder the client lies.
        self.told.append(f"{self.world.now:9.1f} s  {who}: {what.replace(f'{self.world.client_folder}/', '')}")

    def broken(self, promise: str, what: str) -> None:
        violation = Violation(promise, self.world.now, what)
        self.violations.append(violation)
        self.told.append(f"{violation.at:9.1f} s  BROKEN  {promise}: {what}")

    def on_file(self, path: str, appeared: bool, by: str) -> None:
        folder, _, name = path.rpartition("/")
        number = generation_of_file(name)
        if number is None:
            return
        if (name in {claim_file(number), stop_marker(number)} and appeared) or name.startswith("fence-"):
            self._braked(by, f"{'writes' if appeared else 'deletes'} {name}")
        if name == claim_file(number) and appeared:
            self._claimed(folder, number, by)
        elif name == stop_marker(number) and appeared:
            self.planned.add((folder, number))
            self.tell(by, f"asks generation {number} to stop")
            if not self._cause(folder, number):
                self.broken(HARMED, f"{by} stops generation {number}, which nobody wanted and which is young")
        elif name.startswith("fence-") and not appeared:
            self._unfenced(path, number, by)

    def on_kill(self, app: App, by: str, how: str) -> None:
        self.tell(by, f"{how} {app.id}")
        self._braked(by, f"{how} {app.id}")
        driver = self.world.driver_of(app)
        if driver is None or not driver.alive or not driver.folder:
            return
        names = self.world.files.names(driver.folder)
        marked = stop_marker(driver.generation) in names
        superseded = newest_claim(names) > driver.generation
        if not marked and not superseded and self.world.files.exists(driver.fence):
            self.broken(HARMED, f"{by}: {how} {app.id}, generation {driver.generation}, the only one with a fence")

    def submitted(self, driver: Driver) -> None:
        for other in self._others(driver):
            if (other.folder, other.generation) == (driver.folder, driver.generation) and other.app.alive:
                self.broken(GRANTED_TWICE, f"{driver} and {other} were submitted under one claim")

    def began(self, driver: Driver) -> None:
        for other in self._others(driver):
            if other.app.alive and other.begun:
                self.broken(TWO_WRITERS, f"{driver} began while {other} runs, which YARN knows")
        self._ran_again(driver)

    def plans(self, driver: Driver, batch: int) -> None:
        """Check that nobody plans a batch beside a driver that began later: a driver given up may end its batch."""
        for other in self._others(driver):
            residual = driver.slept_through_its_end and self.world.now - driver.woke_at <= _RESIDUAL
            if other.begun and other.began_at > driver.began_at and not residual:
                self.broken(TWO_WRITERS, f"{driver} plans batch {batch} beside {other}")

    def starts_at(self, driver: Driver, batch: int) -> None:
        """Check that a generation goes on from the newest commit that was seen, unless a person decided otherwise."""
        seen = self.seen.get((driver.folder, driver.generation), 0.0)
        hidden = self.damaged_at is not None and self.damaged_at > seen
        decided = self.damaged_at is not None and any(at >= self.damaged_at for at in self.accepted_at)
        known = self.known.get((driver.folder, driver.generation), -1)
        if batch <= known and driver.folder and not hidden and not decided:
            self.broken(
                BACKWARDS, f"{driver} starts at batch {batch}, and its claimer had seen batch {known} committed"
            )

    def saw_commits(self, by: str) -> None:
        """Take note that this process lists the commits, as long as nobody has damaged them."""
        if self.damaged_at is None:
            self.saw[by] = self.furthest

    def committed(self, batch: int) -> None:
        self.furthest = max(self.furthest, batch)

    def committed_already(self, driver: Driver, batch: int) -> None:
        """Check that a batch which stands committed is not committed again, but by one that slept in that batch."""
        if not driver.slept_through_its_end:
            self.broken(BACKWARDS, f"{driver} commits batch {batch} once more")

    def ended(self, driver: Driver) -> None:
        if driver.begun and driver.folder:
            self.last_ran[driver.folder] = self.world.now

    def wanted(self, folder: str) -> set[DesiredState]:
        """Return the states of which one must hold now: the last word, and each that overlapped it."""
        said = [word for word in self.words if word.folder == folder and word.said is not None]
        ended = [word for word in said if word.ended is not None]
        if not ended:
            return {DesiredState.RUNNING, *(word.said for word in said if word.said)}
        last = max(word.began for word in ended)
        return {word.said for word in said if word.said and (word.ended is None or word.ended >= last)}

    def newest(self, folder: str) -> int:
        return max((number for of, number in self.claims if of == folder), default=0)

    def to_be_replaced(self, folder: str) -> int:
        """Return the highest generation that a person wants to be replaced, unless a later order to run took that
        back."""
        said = [word for word in self.words if word.folder == folder]
        runs = [word for word in said if word.said is DesiredState.RUNNING]
        return max(
            (
                word.up_to
                for word in said
                if word.said is None and not any(run.ended is None or run.ended >= word.began for run in runs)
            ),
            default=0,
        )

    def story(self, last: int = 400) -> str:
        return "\n".join(self.told[-last:])

    def _claimed(self, folder: str, number: int, by: str) -> None:
        now = self.world.now
        self.claims[folder, number] = now
        looks = [at for (who, path), at in self.looked.items() if who == by and path.endswith("/commits")]
        self.seen[folder, number] = max(looks, default=0.0)
        self.known[folder, number] = self.saw.get(by, -1)
        self.tell(by, f"claims generation {number}")
        self._obeyed(folder, number, by)
        since = now - _LOOP_SECONDS
        recent = [at for (of, _), at in self.claims.items() if of == folder and at > since]
        excused = len([word for word in self.words if word.began > since])
        if len(recent) > _LOOP + excused:
            self.broken(LOOP, f"{len(recent)} claims within {_LOOP_SECONDS:.0f} s")
        self._within_budget(folder, number)

    def _within_budget(self, folder: str, number: int) -> None:
        """Check the claims that followed ends which nobody planned, since a person's last word."""
        since = max([self.world.now - _DAY, *(word.ended or self.world.now for word in self.words)])
        spent = sorted(
            at
            for (of, one), at in self.claims.items()
            if of == folder and one > 1 and at > since and (folder, one - 1) not in self.planned
        )
        if len(spent) > _PER_DAY:
            self.broken(OVER_BUDGET, f"generation {number} is restart {len(spent)} within a day")
        for count, least in _PACE.items():
            if len(spent) >= count and spent[-1] - spent[-count] < least:
                self.broken(OVER_BUDGET, f"{count} restarts within {spent[-1] - spent[-count]:.0f} s")

    def _obeyed(self, folder: str, number: int, by: str) -> None:
        """Check that a look which began after a person's last word was carried out brings no claim against it."""
        said = [word for word in self.words if word.folder == folder and word.said and word.ended is not None]
        against = DesiredState.RUNNING not in self.wanted(folder)
        last = max((word.ended or 0.0 for word in said), default=None)
        # Orders lie beside the folder: a look lists the state_dir first.
        looked = min(self.looked.get((by, place), 0.0) for place in (folder, folder.rpartition("/")[0]))
        if against and last is not None and looked > last:
            self.broken(WORD_LOST, f"{by} claims generation {number} though a person wants it stopped or held")

    def _unfenced(self, path: str, number: int, by: str) -> None:
        self.tell(by, f"takes the fence of generation {number}")
        for driver in self.world.drivers:
            # HDFS has no removal with a condition: what arrives while the taker sleeps between its last look and its
            # request loses its fence. It ends by itself, and a successor follows.
            unseen = driver.app.submitted > self.slept.get(by, float("inf"))
            if driver.fence == path and driver.alive and driver.localised and not unseen:
                self.broken(NO_FENCE, f"{by} takes the fence of {driver}")

    def _braked(self, by: str, what: str) -> None:
        """Check that nobody acts who has looked at the brake since a person pulled it."""
        if by not in self.world.programs or by.startswith("person"):
            return
        for brake in self.brakes:
            looked = self.looked.get((by, brake.folder), 0.0)
            if looked > brake.since and self.world.now < brake.until - _SKEW_OF_NAMENODES:
                self.broken(THAWED, f"{by} {what} on a cluster that is frozen until {brake.until:.0f} s")

    def _cause(self, folder: str, number: int) -> bool:
        now, claimed = self.world.now, self.claims.get((folder, number), 0.0)
        said = any(
            word.folder == folder and word.said in {DesiredState.STOPPED, None} and claimed - 3600 <= word.began <= now
            for word in self.words
        )
        # Of a job that was taken over the tokens are older than the claim.
        by_hand = [driver.app.submitted - 120 for driver in self.world.drivers if driver.alive and not driver.folder]
        return said or now - min(claimed, *by_hand, claimed) >= _EARLIEST_SHARE * self.world.life

    def _others(self, driver: Driver) -> Iterator[Driver]:
        for other in self.world.drivers:
            if other is not driver and other.alive and other.checkpoint == driver.checkpoint:
                yield other

    def _ran_again(self, driver: Driver) -> None:
        limit = self.world.plan.longest_gap
        since = self.last_ran.get(driver.folder, 0.0)
        if limit is None or not driver.folder:
            return
        spoken = [word.ended or self.world.now for word in self.words]
        gap = self.world.now - max([since, *spoken])
        if gap > limit:
            self.broken(NOTHING_RAN, f"nothing of {driver.folder} ran for {gap:.0f} s")
