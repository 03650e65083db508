"""Random plans, by the doors that they open. A family's plans depend on their number alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tests.simulation.jobs import Pace
from tests.simulation.submissions import FATES
from tests.simulation.wire import FAULTS
from tests.simulation.world import Happening, Plan

_ONE, _ANOTHER = "/kstream", "/another"
_KEEPERS = ("keeper1", "keeper2")
# Requests at which a step of the protocol begins or ends.
_STEPS = ("gen-000001", "gen-000002", "fence-000001", "fence-000002", "stop-000001", "RENEWDELEGATIONTOKEN", "apps")


def plans(family: str, numbers: range) -> Iterator[Plan]:
    for number in numbers:
        yield plan(family, number)


def plan(family: str, number: int) -> Plan:
    seed = f"{family} {number}"
    rng = random.Random(f"plan/{seed}")
    return FAMILIES[family](rng, Plan(seed))


def _usual(rng: random.Random, plan: Plan) -> Plan:
    """Crashes, freezes, lost requests and replies, failovers, late and lost submissions, ends of jobs, persons."""
    ends = rng.uniform(900, 2400)
    happenings = [_at_a_request(rng) for _ in range(rng.randint(1, 6))]
    happenings += [_at_a_time(rng, ends) for _ in range(rng.randint(1, 5))]
    happenings += [_person(rng, ends) for _ in range(rng.randint(0, 3))]
    happenings += [_submission(rng) for _ in range(rng.randint(0, 2))]
    return replace(
        plan,
        happenings=_sorted(happenings),
        ends=ends,
        keepers=((0.0, _ONE), (rng.uniform(0, 30), _ONE))[: rng.choice((1, 2, 2))],
        helper=rng.random() < 0.5,
        deaf=rng.random() < 0.3,
        lingers=rng.uniform(1, 20),
        pace=Pace(rng.uniform(6, 20), rng.uniform(1, 5)),
        max_lifetime=rng.choice((2400.0, 7 * 86400.0, 7 * 86400.0)),
        skews=_skews(rng, 3),
        host_skew=rng.uniform(-200, 200),
        firewall=rng.random() < 0.3,
    )


def _other_writers(rng: random.Random, plan: Plan) -> Plan:
    """Writers that no look at YARN tells of: jobs by hand, another installation, nodes that YARN has given up."""
    usual = _usual(rng, plan)
    pace = Pace(rng.choice((20.0, 120.0, 300.0)), rng.uniform(2, 6), rng.choice((0.0, 90.0, 240.0)))
    door = rng.choice(("job by hand", "another installation", "node cut off"))
    if door == "job by hand":
        first = [Happening(door, at=1.0)]
        adopts = [Happening("adopt", at=rng.uniform(60, 900))] if rng.random() < 0.3 else []
        begins = rng.uniform(60, 600)
        return replace(usual, happenings=_sorted(first + adopts), pace=pace, keepers=((begins, _ONE),), ends=2400.0)
    if door == "another installation":
        keepers = ((0.0, _ONE), (rng.uniform(60, 600), _ANOTHER))
        return replace(usual, happenings=(), pace=pace, keepers=keepers, ends=2400.0, max_lifetime=7 * 86400.0)
    cut = Happening(door, at=rng.uniform(200, 900), seconds=rng.uniform(300, 3000))
    return replace(usual, happenings=(cut,), pace=pace, helper=rng.random() < 0.3, ends=3600.0)


def _two_actives(rng: random.Random, plan: Plan) -> Plan:
    """ResourceManagers that say ACTIVE and don't know the newest applications."""
    usual = _usual(rng, plan)
    at, begins = rng.uniform(5, 300), rng.uniform(0, 200)
    late = Happening(
        "ResourceManager wakes late", at=at, seconds=rng.uniform(200, 1500), number=rng.choice((20, 60, 120))
    )
    wakes = at + late.seconds
    others = [
        Happening("crash of", at=rng.uniform(wakes - 90, wakes + late.number), who=rng.choice(_KEEPERS))
        for _ in range(rng.randint(1, 2))
    ]
    others += [Happening("restart", at=rng.uniform(at + 20, at + 600)) for _ in range(rng.choice((0, 1)))]
    return replace(
        usual,
        happenings=_sorted([late, *others]),
        ends=max(usual.ends, wakes + 300),
        pace=replace(usual.pace, idle=rng.choice((0.0, 200.0))),
        keepers=((begins, _ONE), (begins + 9.0, _ONE)),
    )


def _httpfs(rng: random.Random, plan: Plan) -> Plan:
    """HttpFS in the place of the NameNodes' own web server."""
    usual = _usual(rng, plan)
    said = rng.sample(("stop", "hold", "start", "restart"), rng.randint(0, 2))
    speaks = [Happening(word, at=rng.uniform(200, usual.ends)) for word in said]
    begin = rng.uniform(0, 0.4)
    return replace(usual, happenings=_sorted(speaks), keepers=((0.0, _ONE), (begin, _ONE)), httpfs=True)


def _strangers(rng: random.Random, plan: Plan) -> Plan:
    """Applications of another user that carry our tags."""
    usual = _usual(rng, plan)
    tagged = Happening(
        "stranger's tags",
        at=rng.uniform(30, 900),
        seconds=rng.choice((5.0, 300.0, 86400.0)),
        number=rng.choice((0, 1, 2, 999999)),
    )
    others = [_at_a_time(rng, usual.ends) for _ in range(rng.randint(0, 2))]
    return replace(usual, happenings=_sorted([tagged, *others]))


def _lost_replies(rng: random.Random, plan: Plan) -> Plan:
    """Single lost replies and a KDC that is away for a minute; nobody crashes: then nothing waits for ten minutes."""
    usual = _usual(rng, plan)
    lost = [
        Happening("reply lost", who="keeper1", behind=rng.choice(_STEPS), after=rng.randint(0, 5))
        for _ in range(rng.randint(1, 2))
    ]
    kdc = [Happening("KDC away", at=rng.uniform(300, 1000), seconds=60.0)] if rng.random() < 0.3 else []
    restart = Happening("restart", at=rng.uniform(200, 900))
    return replace(
        usual,
        happenings=_sorted([restart, *lost, *kdc]),
        keepers=((0.0, _ONE),),
        ends=1800.0,
        max_lifetime=7 * 86400.0,
        longest_gap=300.0,
    )


def _failing_job(rng: random.Random, plan: Plan) -> Plan:
    """A job that dies at each start, of something that may look like a token of ours."""
    usual = _usual(rng, plan)
    error = rng.choice(("Token has expired (JWT)", "java.lang.OutOfMemoryError", "org.apache.kafka.TimeoutException"))
    return replace(usual, happenings=(), keepers=((0.0, _ONE),), dies_of=error, ends=2400.0, concludes=False)


def _deaf_drivers(rng: random.Random, plan: Plan) -> Plan:
    """Drivers that ignore SIGTERM and go on for half a minute after YARN's word that they were killed."""
    usual = _usual(rng, plan)
    restart = Happening("restart", at=rng.uniform(200, 600))
    others = [_at_a_time(rng, 1200.0) for _ in range(rng.randint(0, 1))]
    happenings = _sorted([restart, *others])
    return replace(usual, happenings=happenings, helper=False, deaf=True, lingers=rng.uniform(25, 40), ends=1200.0)


def _skewed_clocks(rng: random.Random, plan: Plan) -> Plan:
    """Clocks that differ by up to Kerberos' five minutes, idle sources, and containers that outlive YARN's word."""
    usual = _usual(rng, plan)
    words = [Happening("restart", at=rng.uniform(200, 900))]
    words += [Happening("NameNode failover", at=rng.uniform(200, 1000), seconds=rng.uniform(0, 5))]
    if rng.random() < 0.5:
        words += [Happening("ResourceManager restarts", at=rng.uniform(700, 1700), seconds=rng.uniform(30, 100))]
    return replace(
        usual,
        happenings=_sorted(words),
        pace=Pace(rng.choice((10.0, 60.0)), 4.0, idle=rng.choice((100.0, 400.0))),
        helper=False,
        skews=_skews(rng, 150),
        lingers=rng.uniform(5, 25),
        ends=1800.0,
    )


def _persons(rng: random.Random, plan: Plan) -> Plan:
    """Persons who speak at nearly the same moment, over servers that lose replies."""
    usual = _usual(rng, plan)
    moments = [rng.uniform(100, 900) for _ in range(rng.randint(2, 4))]
    words = [
        Happening(rng.choice(("stop", "hold", "start", "restart")), at=moment + rng.uniform(0, 0.1))
        for moment in moments
        for _ in range(rng.randint(2, 3))
    ]
    lost = [
        Happening("reply lost", who=f"person{rng.randint(1, 6)}", write=rng.randint(1, 6), after=rng.randint(0, 3))
        for _ in range(rng.randint(0, 3))
    ]
    return replace(usual, happenings=_sorted([*words, *lost]), ends=1500.0)


FAMILIES: Mapping[str, Callable[[random.Random, Plan], Plan]] = {
    "usual": _usual,
    "other writers": _other_writers,
    "two actives": _two_actives,
    "httpfs": _httpfs,
    "strangers": _strangers,
    "lost replies": _lost_replies,
    "failing job": _failing_job,
    "deaf drivers": _deaf_drivers,
    "skewed clocks": _skewed_clocks,
    "persons": _persons,
}


def _at_a_request(rng: random.Random) -> Happening:
    """Disturb a changing request of a keeper, or one of the few that follow it."""
    kind = rng.choice(FAULTS)
    seconds = rng.choice((20.0, 240.0, 700.0, 3600.0)) if kind.startswith("freeze") else 0.0
    who, after = rng.choice(_KEEPERS), rng.choice((0, 0, 1, 2, 3, 5))
    if rng.random() < 0.3:
        return Happening(kind, who=who, seconds=seconds, behind=rng.choice(_STEPS), after=after)
    return Happening(kind, who=who, seconds=seconds, write=rng.randint(1, 30), after=after)


def _at_a_time(rng: random.Random, ends: float) -> Happening:
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
    return Happening(kind, at=rng.uniform(20, ends), who=rng.choice(_KEEPERS), seconds=seconds)


def _person(rng: random.Random, ends: float) -> Happening:
    return Happening(rng.choice(("stop", "start", "hold", "restart", "restart")), at=rng.uniform(60, ends))


def _submission(rng: random.Random) -> Happening:
    """Hamper one of the first submissions; a ResourceManager that caches its listing is late by half a minute."""
    kind = rng.choice(FATES)
    seconds = rng.uniform(5, 45) if kind == "is listed late" else rng.choice((5.0, 60.0, 400.0, 900.0))
    return Happening(f"a submission {kind}", number=rng.randint(1, 3), seconds=seconds)


def _skews(rng: random.Random, most: float) -> tuple[float, float, float, float]:
    one, two, three, four = (rng.uniform(-most, most) for _ in range(4))
    return one, two, three, four


def _sorted(happenings: list[Happening]) -> tuple[Happening, ...]:
    return tuple(sorted(happenings, key=lambda happening: (happening.at, happening.write, happening.kind)))
