"""Single random happenings, of which families make their plans."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.simulation.plans import Happening
from tests.simulation.submissions import FATES
from tests.simulation.wire import FAULTS

KEEPERS = ("keeper1", "keeper2")
# With the processes that follow them after a crash.
_PROCESSES = (*KEEPERS, *KEEPERS, "keeper1.2", "keeper2.2")
# Most keepers send so many in a history, and at most so many while they restart a stream.
_REQUESTS, _REQUESTS_OF_A_RESTART = 250, 45
# Requests at which a step of the protocol begins or ends.
STEPS = ("gen-000001", "gen-000002", "fence-000001", "fence-000002", "stop-000001", "RENEWDELEGATIONTOKEN", "apps")


def at_a_request(rng: random.Random) -> Happening:
    """Disturb any request of a keeper, a changing one, or one of the few that follow it."""
    if rng.random() < 0.3:
        return at_any_request(rng, 0.0)
    fault, who, after = _fault(rng), rng.choice(KEEPERS), rng.choice((0, 0, 1, 2, 3, 5))
    if rng.random() < 0.3:
        return replace(fault, who=who, behind=rng.choice(STEPS), after=after)
    return replace(fault, who=who, write=rng.randint(1, 30), after=after)


def at_any_request(rng: random.Random, since: float) -> Happening:
    """Disturb a request drawn over all that a process sends from `since` on."""
    last = _REQUESTS_OF_A_RESTART if since else _REQUESTS
    return replace(_fault(rng), who=rng.choice(_PROCESSES), at=since, request=rng.randint(1, last))


def _fault(rng: random.Random) -> Happening:
    kind = rng.choice(FAULTS)
    return Happening(kind, seconds=rng.choice((20.0, 240.0, 700.0, 3600.0)) if kind.startswith("freeze") else 0.0)


def at_a_time(rng: random.Random, ends: float) -> Happening:
    kind, longest = rng.choice(
        (
            ("NameNode failover", 15.0),
            ("NameNode freezes", 60.0),
            ("ResourceManager failover", 20.0),
            ("ResourceManager restarts", 60.0),
            ("KDC away", 120.0),
            ("driver dies", 0.0),
            ("attempt expires", 28.0),
            ("crash of", 0.0),
            ("freeze of", 1800.0),
        )
    )
    seconds = rng.uniform(1, longest) if longest else 0.0
    return Happening(kind, at=rng.uniform(20, ends), who=rng.choice(KEEPERS), seconds=seconds)


def watchers_trouble(rng: random.Random, ends: float) -> Happening:
    """Trouble a triggerer: cut it off from all servers, take its conf folder, or let another one begin in its place."""
    kind = rng.choice(("triggerer cut off", "triggerer without conf", "triggerer restarts"))
    seconds = 0.0 if kind == "triggerer restarts" else rng.uniform(30, 2400)
    return Happening(kind, at=rng.uniform(60, ends), who=rng.choice(KEEPERS), seconds=seconds)


def long_trouble(rng: random.Random, ends: float) -> Happening:
    """Take servers away for up to 20 minutes, or let them move until somebody edits the connection."""
    kind, longest = rng.choice(
        (
            ("ResourceManagers away", 1300.0),
            ("NameNodes away", 1300.0),
            ("NameNode freezes", 60.0),
            ("ResourceManagers move", 900.0),
            ("triggerer cut off", 3000.0),
            ("triggerer without conf", 1500.0),
        )
    )
    return Happening(kind, at=rng.uniform(100, ends), who="keeper1", seconds=rng.uniform(0.5, 1.0) * longest)


def person(rng: random.Random, ends: float) -> Happening:
    return Happening(rng.choice(("stop", "start", "hold", "restart", "restart")), at=rng.uniform(60, ends))


def submission(rng: random.Random) -> Happening:
    """Hamper one of the first submissions; a ResourceManager that caches its listing is late by half a minute."""
    kind = rng.choice(FATES)
    seconds = rng.uniform(5, 45) if kind == "is listed late" else rng.choice((5.0, 60.0, 400.0, 900.0))
    return Happening(f"a submission {kind}", number=rng.randint(1, 3), seconds=seconds)


def skews_of(rng: random.Random, most: float) -> tuple[float, float, float, float]:
    one, two, three, four = (rng.uniform(-most, most) for _ in range(4))
    return one, two, three, four


def in_order(happenings: list[Happening]) -> tuple[Happening, ...]:
    return tuple(sorted(happenings, key=lambda happening: (happening.at, happening.write, happening.kind)))
