"""The tiers of the tests, their parts and stages, as data: `./kstream test`, `--real` and `--slow`.

A budget is the wall time on two idle cores; the table at the end of a run prints it beside the time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

# Of the tiers that run on clusters, each worker has one.
WORKERS = 3
# As many as there are cores.
CORES = 2
# Of what waits for most of its time.
WAITING = 4


@dataclass(frozen=True)
class Stage:
    """The tests of a part below this path, which run one after the other; `budget` is in seconds."""

    path: str
    covers: str
    budget: int


@dataclass(frozen=True)
class Part:
    """A part of a tier: a command, its arguments, and its budget in seconds; 0 where none is set.

    Essential parts that follow each other run at the same time; when one fails, the rest is not run. A part that
    `waits` for most of its time is pytest's marker of that name in the slow tier, and runs beside the others that wait.
    A part that `computes`, and starts no cluster, runs beside those, and gets of the cores what they leave.
    """

    name: str
    covers: str
    command: tuple[str, ...]
    budget: int = 0
    stages: tuple[Stage, ...] = ()
    essential: bool = False
    waits: bool = False
    computes: bool = False


def _pytest(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "pytest", *arguments)


def _side_by_side(*arguments: str, workers: int = WORKERS) -> tuple[str, ...]:
    return _pytest("-n", str(workers), "--dist", "loadscope", *arguments)


_SECRETS = Part("secrets", "no secret in anything that the tests left", _pytest("tests/afterwards"), budget=15)
# Without a cluster, by folder.
IN_PROCESS = (
    "unit",
    "hostile",
    "properties",
    "triage",
    "loopback",
    "processes",
    "kdc",
    "simulation",
    "spark",
    "airflow",
)
ON_ONE_CLUSTER = (
    Stage("tests/contract", "each assumption about a real server, and the cluster's start", 280),
    Stage("tests/stories/test_airflow.py", "a stream's life in a running Airflow, click by click", 130),
    Stage("tests/stories/test_restarts.py", "a restart at a horizon and one under a fault, rows compared", 90),
)

SMALL = (
    Part("ruff", "style and common mistakes", ("ruff", "check", "."), budget=5, essential=True),
    Part("format", "the layout of the code", ("ruff", "format", "--check", "."), budget=5, essential=True),
    Part("mypy", "types, strictly", ("mypy",), budget=50, essential=True),
    Part("rooms", "which room may import which", ("lint-imports", "--no-logo"), budget=50, essential=True),
    Part(
        "cluster",
        "the real servers, a running Airflow and restarts, on one cluster",
        _pytest("tests/contract", "tests/stories"),
        budget=500,
        stages=ON_ONE_CLUSTER,
        waits=True,
    ),
    Part(
        "in-process",
        "units, properties, servers on loopback, a KDC, Airflow and Spark in one process",
        _side_by_side(*(f"tests/{folder}" for folder in IN_PROCESS), workers=CORES),
        budget=500,
        computes=True,
    ),
    _SECRETS,
)

# What the small tier leaves out, on the servers that it has.
REAL = (
    Part(
        "real",
        "whole commands, lives of streams, faults, shipped DAGs in a running Airflow, and Flink, on real clusters",
        _side_by_side("tests/real", "-m", "not compatibility and not faults"),
        budget=2040,
    ),
    _SECRETS,
)

# By the word that selects each.
SLOW = {
    "faults": Part(
        "faults",
        "streams under faults, and supervisors that are killed",
        _side_by_side("tests/slow", "tests/real/faults", "-m", "faults"),
    ),
    "clusters": Part(
        "clusters",
        "rotated keytabs, two realms, protected RPC, encryption zones, three DataNodes",
        _side_by_side("tests/slow", "-m", "clusters"),
    ),
    "tools": Part(
        "tools", "the test runner, the minicluster, the demonstration and its shipper", _side_by_side("tests/tools")
    ),
    "mutants": Part(
        "mutants",
        "planted defects, each of which a test of the small tier must catch",
        (sys.executable, "-m", "tests.mutants", "--jobs", str(CORES)),
    ),
    # It keeps both cores busy; beside others its drivers would start too late for tokens of three minutes.
    "crashes": Part("crashes", "the demonstration, with Airflow crashed twice", _pytest("tests/slow", "-m", "crashes")),
    "lives": Part(
        "lives",
        "streams past several lives of their tokens",
        _side_by_side("tests/slow", "-m", "lives"),
        waits=True,
    ),
    "stalls": Part("stalls", "what looks like a stall and is none", _pytest("tests/slow", "-m", "stalls"), waits=True),
    "predictions": Part(
        "predictions",
        "each end of credentials, foretold and let happen",
        _side_by_side("tests/slow", "-m", "predictions"),
        waits=True,
    ),
    "alerts": Part(
        "alerts",
        "each alert from its cause to its end, in a real Airflow",
        _pytest("tests/slow", "-m", "alerts"),
        waits=True,
    ),
    "simulations": Part(
        "simulations",
        "ten thousand histories of the whole supervisor, and 20 times as many of each policy",
        _pytest("-n", str(CORES), "tests/simulation", "-m", "simulation", "--hypothesis-profile", "deep"),
        computes=True,
    ),
    "prometheus": Part(
        "prometheus",
        "alerts and the dashboard's queries in a real Prometheus",
        _pytest("tests/slow", "-m", "prometheus"),
    ),
    "compatibility": Part(
        "compatibility",
        "the wheel in empty environments of each Python and in Airflow's image, older Sparks and Airflows, Flink 2",
        _pytest("tests/slow", "tests/real/flink", "-m", "compatibility"),
    ),
}


def waiting_together(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts with those that wait joined into one, in the place of the first."""
    waiting = [part for part in parts if part.waits]
    if len(waiting) < 2:
        return tuple(parts)
    names = [part.name for part in waiting]
    joined = Part(
        "-".join(names),
        "; ".join(part.covers for part in waiting),
        _side_by_side("tests/slow", "-m", " or ".join(names), workers=WAITING),
        waits=True,
    )
    return tuple(joined if part is waiting[0] else part for part in parts if part not in waiting[1:])


def rounds(parts: Sequence[Part]) -> list[tuple[Part, ...]]:
    """Return the parts that run at the same time: essential ones, and what computes beside what waits."""
    waiting = next((part for part in parts if part.waits), None)
    beside = tuple(part for part in parts if part.computes) if waiting else ()
    grouped = [tuple(group) for _, group in groupby((part for part in parts if part not in beside), key=_place)]
    return [(*together, *beside) if waiting in together else together for together in grouped]


def _place(part: Part) -> object:
    """Return what parts that run at the same time have in common."""
    return True if part.essential else part.name
