"""A history before it runs: what happens in it, and when."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.jobs import Pace

USUAL_PACE = Pace()


@dataclass(frozen=True)
class Happening:
    """One thing that happens. Which fields count depends on `kind`, a key of happenings.HAPPENINGS.

    `at` is the true time. A disturbed request is named by its program `who` and by where it stands: it is the
    `request`-th from `at` on, reads included, or `after` requests behind the program's `write`-th changing request, or
    behind its first request whose words contain `behind`.
    """

    kind: str
    at: float = 0.0
    who: str = ""
    seconds: float = 0.0
    number: int = 0
    write: int = 0
    after: int = 0
    behind: str = ""
    request: int = 0

    @property
    def disturbs_a_request(self) -> bool:
        return bool(self.request or self.write or self.behind)

    def __str__(self) -> str:
        where = f"at {self.at:.1f} s"
        if self.request:
            where = f"request {self.request} from {self.at:.1f} s on"
        if self.write or self.behind:
            where = f"{self.after} requests behind {self.behind or f'write {self.write}'}"
        return f"{where}: {self.kind} {self.who} {self.seconds or ''} {self.number or ''}".rstrip()


@dataclass(frozen=True)
class Plan:
    """A history before it runs: the same plan gives the same history. Times are in seconds.

    `keepers` are their beginnings and state_dirs; those named in `polled` are Airflow's operator and trigger.
    `skews` are the clocks of both ResourceManagers and both NameNodes. NodeManagers behind a `firewall` answer
    nobody. A killed container lives on for up to `lingers`; a `deaf` driver ignores SIGTERM; `dies_of` ends each
    driver soon after its start. `longest_gap` is how long nothing may run. After `ends` all is calm, and within
    `patience` the stream must be as wanted, unless the history `concludes` nothing.
    """

    seed: str
    happenings: tuple[Happening, ...] = ()
    ends: float = 3600.0
    keepers: tuple[tuple[float, str], ...] = ((0.0, "/kstream"),)
    polled: tuple[str, ...] = ()
    helper: bool = True
    firewall: bool = False
    pace: Pace = USUAL_PACE
    max_lifetime: float = 7 * 86400.0
    httpfs: bool = False
    skews: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    host_skew: float = 0.0
    longest_gap: float | None = None
    dies_of: str = ""
    lingers: float = 2.0
    deaf: bool = False
    concludes: bool = True
    patience: float = 2700.0

    def __str__(self) -> str:
        return "\n  ".join([f"seed {self.seed!r}, until {self.ends:.0f} s", *map(str, self.happenings)])
