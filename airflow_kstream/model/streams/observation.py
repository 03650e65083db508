"""An observation of a stream at one moment: the only input of the decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import count

from airflow_kstream.model.clusters.application import Application, Containers
from airflow_kstream.model.kerberos.keytab import KeyVersion
from airflow_kstream.model.kerberos.tokens import USUAL_RENEWAL_RATIO
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.contract import generation_of_file, newest_trace, pushes
from airflow_kstream.model.streams.freeze import NOT_FROZEN, Freeze
from airflow_kstream.model.streams.generation import Claim, Desired, Position, StreamId
from airflow_kstream.model.streams.generation_end import PastEnd
from airflow_kstream.model.streams.horizon import TokenRound, WorkerTokens
from airflow_kstream.model.streams.resume import StartWord
from airflow_kstream.model.streams.token_push import Pushes


def application_of(applications: Iterable[tuple[int, Application]], generation: int) -> Application | None:
    """Return the application of a generation: the first that is alive, or else the last to start; None if it has none.

    A claim is submitted once. A second application with its tags is a person's, who ran the driver's command again, and
    must not take the place of a healthy one.
    """
    ours = sorted((app for number, app in applications if number == generation), key=lambda app: app.order)
    return next((app for app in ours if app.alive), ours[-1] if ours else None)


@dataclass(frozen=True)
class CredentialLook:
    """The credentials of the newest generation, as far as its claim does not tell of them."""

    key_at_hand: KeyVersion | None = None
    """The key in this host's keytab that the next generation would be submitted with."""
    renewal_ratio: float = USUAL_RENEWAL_RATIO
    """The share of their renew interval at which a job with a keytab replaces its tokens."""
    renewed: bool = True
    """Whether the ResourceManager renews the tokens that the job was submitted with."""
    rounds: tuple[TokenRound, ...] = ()
    """The newest rounds of tokens that a driver with a keytab logged, oldest first, as far as known."""
    renew_interval: timedelta | None = None
    """How long a token now lives without a renewal; None if that was not asked."""
    workers: WorkerTokens | None = None
    """The tokens with which its new workers start; None where that is nothing to count."""


@dataclass(frozen=True)
class YarnLook:
    """The stream in YARN, beside its applications."""

    strangers: tuple[Application, ...] = ()
    """Other users' applications with the stream's tags: reported, counted for nothing, never acted upon."""
    ours: frozenset[str] = frozenset()
    """The short names of our principals beside the one that the stream's applications run as."""
    time_left: timedelta | None = None
    """What YARN's lifetime limit leaves the running application; None if it has no limit."""
    ended: datetime | None = None
    """When the newest application ended, by the NameNode's clock; None if that is not asked or not known."""
    orphans_live: timedelta = timedelta()
    """How long the other processes of its newest application may go on without the leading one."""
    containers: Containers | None = None
    """What NodeManagers say of the newest application; None if none was asked."""


@dataclass(frozen=True)
class OutputsLook:
    """The outputs of a generation that nothing but silence can prove dead.

    `unchanged` is the time between the first and the last look of this supervisor at which they were the same. `doubt`
    is why nobody can tell, else empty.
    """

    paths: tuple[str, ...]
    unchanged: timedelta = timedelta()
    doubt: str = ""


@dataclass(frozen=True)
class FolderLook:
    """The stream's folder on HDFS, beside its newest claim and a person's wishes; and what it wrote elsewhere."""

    strangers: Mapping[str, str] = field(default_factory=dict)
    """What other users wrote into its folder, with their names: reported, and counted for nothing."""
    ends: tuple[PastEnd, ...] = ()
    """The ends that nobody planned, oldest first, as far as they are recorded."""
    accepted: Mapping[str, Position] | None = None
    """The positions from which a person lets the next generation start; None if no person accepted any."""
    outputs: OutputsLook | None = None
    """None where it declared none, or its death has another proof."""


@dataclass(frozen=True)
class DriverLook:
    """The last words of the newest generation's driver."""

    failure: str = ""
    """The error that it left in the stream's folder."""
    log_error: str = ""
    """The error that its log ends with; empty if that was not read."""


@dataclass(frozen=True)
class Observation:
    """A stream at one moment."""

    stream: StreamId
    now: datetime
    """By the NameNode's clock."""
    desired: Desired
    claim: Claim | None
    """The highest one; None before the first."""
    files: frozenset[str]
    """The names in the stream's folder, those that strangers wrote left out."""
    applications: tuple[tuple[int, Application], ...]
    """Those of the stream that the ResourceManager still lists, with their generations."""
    checkpoints: tuple[Checkpoint, ...]
    freeze: Freeze = NOT_FROZEN
    """The last order to freeze the cluster, or to lift that."""
    credentials: CredentialLook = CredentialLook()
    yarn: YarnLook = YarnLook()
    folder: FolderLook = field(default_factory=FolderLook)
    driver: DriverLook = DriverLook()

    @cached_property
    def generation(self) -> int:
        """Return the highest generation of the claim, the applications and the files; 0 before the first.

        A number is never used again: the markers of the generation that had it would be those of the new one.
        """
        claimed = self.claim.generation if self.claim else 0
        return max([claimed, newest_trace(self.files), *(number for number, _ in self.applications)])

    @cached_property
    def next_generation(self) -> int:
        """Return the number of the next generation: the first whose files no stranger has taken."""
        taken = {generation_of_file(name) for name in self.folder.strangers}
        return next(number for number in count(self.generation + 1) if number not in taken)

    @property
    def start_word(self) -> StartWord | None:
        """Return where the next generation starts by a person's word; None if nobody said it of this very one."""
        word = self.desired.start
        return word if word and word.generation == self.next_generation else None

    @property
    def placed(self) -> bool:
        """Return whether a person said where the next generation starts, and not only which state it may lose."""
        return self.start_word is not None and self.start_word.places

    @cached_property
    def current(self) -> Application | None:
        """Return the application of the highest generation, None if it has none."""
        return application_of(self.applications, self.generation)

    @cached_property
    def pushes(self) -> Pushes:
        """Return the pushes of fresh tokens to the claimed generation; none before the first claim."""
        return pushes(self.files, self.claim.generation) if self.claim else Pushes()

    @property
    def nonce(self) -> str:
        """Return the nonce of the newest generation's claim, empty if it has none."""
        return self.claim.nonce if self.claim and self.claim.generation == self.generation else ""

    @property
    def any_alive(self) -> bool:
        """Return True if an application of the stream lives, of whatever generation."""
        return any(app.alive for _, app in self.applications)

    @property
    def frozen(self) -> bool:
        """Return True while a person has frozen the cluster."""
        return self.freeze.holds(self.now)

    @property
    def last_move(self) -> datetime | None:
        """Return the time of the last change in any checkpoint of the stream, None if there is none."""
        moves = [point.last_move for point in self.checkpoints if point.last_move]
        return max(moves, default=None)
