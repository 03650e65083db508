"""Random plans, by the doors that they open. A family's plans depend on their number alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tests.simulation.draws import (
    KEEPERS,
    STEPS,
    at_a_request,
    at_a_time,
    at_any_request,
    in_order,
    long_trouble,
    person,
    skews_of,
    submission,
    watchers_trouble,
)
from tests.simulation.jobs import Pace
from tests.simulation.lost_drivers import DRIVER_FREEZES, HOST_FREEZES
from tests.simulation.plans import Happening, Plan

_ONE, _ANOTHER = "/kstream", "/another"
# The share of keepers that watch by Airflow's poller.
_POLLED = 0.2


def plans(family: str, numbers: range) -> Iterator[Plan]:
    for number in numbers:
        yield plan(family, number)


def plan(family: str, number: int) -> Plan:
    seed = f"{family} {number}"
    rng = random.Random(f"plan/{seed}")
    return _polled(seed, FAMILIES[family](rng, Plan(seed)))


def _polled(seed: str, plan: Plan) -> Plan:
    """Let Airflow's poller watch for some of the keepers, and trouble some of its triggerers.

    A stream that is down while its only watcher is blind waits for the next waking, so no gap is too long then.
    """
    rng = random.Random(f"polled/{seed}")
    polled = plan.polled or tuple(name for name in KEEPERS if rng.random() < _POLLED)
    others = [watchers_trouble(rng, plan.ends) for _ in range(rng.choice((0, 0, 1)))] if polled else []
    longest_gap = None if others else plan.longest_gap
    return replace(plan, polled=polled, happenings=in_order([*plan.happenings, *others]), longest_gap=longest_gap)


def _usual(rng: random.Random, plan: Plan) -> Plan:
    """Crashes, freezes, lost requests and replies, failovers, late and lost submissions, ends of jobs, persons."""
    ends = rng.uniform(900, 2400)
    happenings = [at_a_request(rng) for _ in range(rng.randint(1, 6))]
    happenings += [at_a_time(rng, ends) for _ in range(rng.randint(1, 5))]
    happenings += [person(rng, ends) for _ in range(rng.randint(0, 3))]
    happenings += [submission(rng) for _ in range(rng.randint(0, 2))]
    return replace(
        plan,
        happenings=in_order(happenings),
        ends=ends,
        keepers=((0.0, _ONE), (rng.uniform(0, 30), _ONE))[: rng.choice((1, 2, 2))],
        helper=rng.random() < 0.5,
        deaf=rng.random() < 0.3,
        lingers=rng.uniform(1, 20),
        pace=Pace(rng.uniform(6, 20), rng.uniform(1, 5)),
        max_lifetime=rng.choice((2400.0, 7 * 86400.0, 7 * 86400.0)),
        skews=skews_of(rng, 3),
        host_skew=rng.uniform(-200, 200),
        firewall=rng.random() < 0.3,
    )


def _any_request(rng: random.Random, plan: Plan) -> Plan:
    """Faults drawn over all requests of the keepers, reads included, and over those while a restart is under way."""
    usual = _usual(rng, plan)
    asked = rng.uniform(120, 900)
    others = [at_a_time(rng, usual.ends) for _ in range(rng.randint(0, 2))]
    begins = [Happening("restart", at=asked) if rng.random() < 0.6 else Happening("driver dies", at=asked)]
    faults = [at_any_request(rng, rng.choice((0.0, 0.0, asked))) for _ in range(rng.randint(3, 8))]
    return replace(usual, happenings=in_order([*others, *begins, *faults]))


def _frozen_drivers(rng: random.Random, plan: Plan) -> Plan:
    """Drivers, or their hosts, that freeze at any request and go on later, also after YARN gave them up."""
    usual = _usual(rng, plan)
    frozen = [
        Happening(
            kind,
            who=f"driver {rng.choice((1, 1, 2))}",
            request=rng.randint(1, 60),
            # Only a host that is away for long wakes beside a successor.
            seconds=rng.choice((30.0, 500.0, 900.0, rng.uniform(600, 2000), 3000.0)),
            number=rng.choice((0, 100, 200)),
        )
        for kind in rng.sample((DRIVER_FREEZES, HOST_FREEZES, HOST_FREEZES), rng.randint(1, 2))
    ]
    words = [Happening("restart", at=rng.uniform(100, 1200))] if rng.random() < 0.5 else []
    others = [at_any_request(rng, 0.0) for _ in range(rng.randint(0, 2))]
    return replace(
        usual,
        happenings=in_order([*frozen, *words, *others]),
        ends=3600.0,
        pace=replace(usual.pace, idle=rng.choice((0.0, 0.0, 200.0))),
        max_lifetime=7 * 86400.0,
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
        return replace(usual, happenings=in_order(first + adopts), pace=pace, keepers=((begins, _ONE),), ends=2400.0)
    if door == "another installation":
        keepers = ((0.0, _ONE), (rng.uniform(60, 600), _ANOTHER))
        return replace(usual, happenings=(), pace=pace, keepers=keepers, ends=2400.0, max_lifetime=7 * 86400.0)
    cut = Happening(door, at=rng.uniform(200, 900), seconds=rng.uniform(300, 3000))
    helper = rng.random() < 0.3
    return replace(
        usual, happenings=(replace(cut, number=rng.choice((0, 100, 200))),), pace=pace, helper=helper, ends=3600.0
    )


def _two_actives(rng: random.Random, plan: Plan) -> Plan:
    """ResourceManagers that say ACTIVE and don't know the newest applications."""
    usual = _usual(rng, plan)
    at, begins = rng.uniform(5, 300), rng.uniform(0, 200)
    late = Happening(
        "ResourceManager wakes late", at=at, seconds=rng.uniform(200, 1500), number=rng.choice((20, 60, 120))
    )
    wakes = at + late.seconds
    others = [
        Happening("crash of", at=rng.uniform(wakes - 90, wakes + late.number), who=rng.choice(KEEPERS))
        for _ in range(rng.randint(1, 2))
    ]
    others += [Happening("restart", at=rng.uniform(at + 20, at + 600)) for _ in range(rng.choice((0, 1)))]
    return replace(
        usual,
        happenings=in_order([late, *others]),
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
    return replace(usual, happenings=in_order(speaks), keepers=((0.0, _ONE), (begin, _ONE)), httpfs=True)


def _strangers(rng: random.Random, plan: Plan) -> Plan:
    """Applications of another user that carry our tags."""
    usual = _usual(rng, plan)
    tagged = Happening(
        "stranger's tags",
        at=rng.uniform(30, 900),
        seconds=rng.choice((5.0, 300.0, 86400.0)),
        number=rng.choice((0, 1, 2, 999999)),
    )
    others = [at_a_time(rng, usual.ends) for _ in range(rng.randint(0, 2))]
    return replace(usual, happenings=in_order([tagged, *others]))


def _lost_replies(rng: random.Random, plan: Plan) -> Plan:
    """Single lost replies and a KDC that is away for a minute; nobody crashes: then nothing waits for ten minutes."""
    usual = _usual(rng, plan)
    lost = [
        Happening("reply lost", who="keeper1", behind=rng.choice(STEPS), after=rng.randint(0, 5))
        for _ in range(rng.randint(1, 2))
    ]
    kdc = [Happening("KDC away", at=rng.uniform(300, 1000), seconds=60.0)] if rng.random() < 0.3 else []
    restart = Happening("restart", at=rng.uniform(200, 900))
    return replace(
        usual,
        happenings=in_order([restart, *lost, *kdc]),
        keepers=((0.0, _ONE),),
        ends=1800.0,
        max_lifetime=7 * 86400.0,
        # Each lost reply can cost a deferral and the pace of the looks after it, 135 s together.
        longest_gap=360.0,
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
    others = [at_a_time(rng, 1200.0) for _ in range(rng.randint(0, 1))]
    happenings = in_order([restart, *others])
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
        happenings=in_order(words),
        pace=Pace(rng.choice((10.0, 60.0)), 4.0, idle=rng.choice((100.0, 400.0))),
        helper=False,
        skews=skews_of(rng, 150),
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
    return replace(usual, happenings=in_order([*words, *lost]), ends=1500.0)


def _brake(rng: random.Random, plan: Plan) -> Plan:
    """Persons who freeze the cluster, prolong that and lift it, in the middle of whatever is under way."""
    usual = _usual(rng, plan)
    asked = rng.uniform(100, 900)
    words = [
        Happening("freeze", at=max(20.0, asked + rng.uniform(-100, 150)), seconds=rng.uniform(200, 1200))
        for _ in range(rng.randint(1, 2))
    ]
    words += [Happening("unfreeze", at=asked + rng.uniform(100, 900))] if rng.random() < 0.4 else []
    words += [Happening(rng.choice(("restart", "restart", "stop", "driver dies")), at=asked)]
    others = [at_any_request(rng, asked) for _ in range(rng.randint(0, 2))]
    others += [at_a_time(rng, usual.ends) for _ in range(rng.randint(0, 1))]
    return replace(usual, happenings=in_order([*words, *others]), patience=4500.0)


def _damaged_checkpoint(rng: random.Random, plan: Plan) -> Plan:
    """A checkpoint that is lost, or restored from an older copy, at any moment, and persons who decide about it."""
    usual = _usual(rng, plan)
    asked = rng.uniform(200, 900)
    kind, at = rng.choice(("checkpoint lost", "checkpoint restored")), asked + rng.uniform(-20, 150)
    damage = Happening(kind, at=at, number=rng.randint(1, 8))
    ends = [Happening(rng.choice(("restart", "driver dies", "crash of")), at=asked, who="keeper1")]
    if rng.random() < 0.6:
        ends = [Happening("stop", at=asked), Happening("start", at=asked + rng.uniform(100, 600))]
    words = [
        Happening(rng.choice(("accept", "accept", "take-over", "stop", "start")), at=damage.at + rng.uniform(0, 900))
        for _ in range(rng.randint(0, 2))
    ]
    others = [at_any_request(rng, asked) for _ in range(rng.randint(0, 2))]
    happenings = in_order([damage, *ends, *words, *others])
    return replace(usual, happenings=happenings, max_lifetime=7 * 86400.0, patience=4500.0)


def _broken_declaration(rng: random.Random, plan: Plan) -> Plan:
    """A declaration with which no job works, and the restart that submits it, beside the usual disturbances."""
    usual = _usual(rng, plan)
    at = rng.uniform(500, 900)
    words = [Happening("broken declaration", at=at), Happening("restart", at=at + rng.uniform(1, 60))]
    words += [Happening("restart", at=rng.uniform(at + 300, 2400))] if rng.random() < 0.2 else []
    others = [replace(at_a_time(rng, usual.ends), at=rng.uniform(at, at + 900)) for _ in range(rng.randint(0, 2))]
    return replace(usual, happenings=in_order([*words, *others]), ends=2400.0, max_lifetime=7 * 86400.0)


def _watched_by_the_poller(rng: random.Random, plan: Plan) -> Plan:
    """Servers that are away for long, move, or can't be reached by a triggerer, beside restarts that are due."""
    usual = _usual(rng, plan)
    ends = rng.uniform(2400, 4200)
    happenings = [long_trouble(rng, ends) for _ in range(rng.randint(1, 2))]
    happenings += [watchers_trouble(rng, ends) for _ in range(rng.randint(0, 2))]
    happenings += [at_a_time(rng, ends) for _ in range(rng.randint(0, 2))]
    happenings += [at_any_request(rng, 0.0) for _ in range(rng.randint(0, 2))]
    return replace(
        usual,
        happenings=in_order(happenings),
        ends=ends,
        polled=rng.choice((KEEPERS, KEEPERS[:1])),
        max_lifetime=rng.choice((2400.0, 4800.0)),
    )


FAMILIES: Mapping[str, Callable[[random.Random, Plan], Plan]] = {
    "usual": _usual,
    "any request": _any_request,
    "frozen drivers": _frozen_drivers,
    "other writers": _other_writers,
    "two actives": _two_actives,
    "httpfs": _httpfs,
    "strangers": _strangers,
    "lost replies": _lost_replies,
    "failing job": _failing_job,
    "deaf drivers": _deaf_drivers,
    "skewed clocks": _skewed_clocks,
    "persons": _persons,
    "brake": _brake,
    "damaged checkpoint": _damaged_checkpoint,
    "broken declaration": _broken_declaration,
    "watched by the poller": _watched_by_the_poller,
}
