"""The tiers of the tests and their parts, as data: `./kstream test` and `./kstream test --slow`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

# As many clusters run side by side from the beginning: three that start at once take longer than one after the other.
CLUSTERS = 2
# A further worker runs what needs no cluster, and starts one for what is left then.
WORKERS = CLUSTERS + 1
# Of what waits for most of its time.
WAITING = 4


@dataclass(frozen=True)
class Part:
    """A part of a tier: a command and its arguments. When an `essential` part fails, the rest is not run.

    A slow part `repeats` what the small tier has, too. A part that `waits` for most of its time is pytest's marker of
    that name, and runs beside the others that wait. A part that `computes`, and starts no server, runs beside those,
    and gets of the cores what they leave.
    """

    name: str
    covers: str
    command: tuple[str, ...]
    essential: bool = False
    repeats: bool = False
    waits: bool = False
    computes: bool = False


def _pytest(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "pytest", *arguments)


def _side_by_side(*arguments: str, workers: int = WORKERS) -> tuple[str, ...]:
    return _pytest("-n", str(workers), "--dist", "loadscope", "--durations", "30", *arguments)


SMALL = (
    Part("ruff", "style and common mistakes", ("ruff", "check", "."), essential=True),
    Part("format", "the layout of the code", ("ruff", "format", "--check", "."), essential=True),
    Part("mypy", "types, strictly", ("mypy",), essential=True),
    Part("rooms", "which room may import which", ("lint-imports", "--no-logo"), essential=True),
    Part("tests", "units, the real cluster, Airflow", _side_by_side("-m", "not slow and not afterwards")),
    Part("secrets", "no secret in anything that the tests left", _pytest("-m", "afterwards")),
)

# By the word that selects each.
SLOW = {
    # The small tier has those of other folders, which need another cluster.
    "faults": Part(
        "faults",
        "a stream under faults, and runs that are killed",
        _side_by_side("tests/faults", "tests/slow", "-m", "faults"),
        repeats=True,
    ),
    "mutants": Part(
        "mutants",
        "planted defects, each of which a test of the small tier must catch",
        (sys.executable, "-m", "tests.mutants", "--jobs", str(CLUSTERS)),
    ),
    # It keeps both cores busy; beside others its drivers would start too late for tokens of three minutes.
    "crashes": Part("crashes", "the demonstration, with Airflow crashed twice", _pytest("-m", "crashes")),
    "lives": Part(
        "lives",
        "streams past several lives of their tokens",
        _side_by_side("-m", "lives"),
        waits=True,
    ),
    "stalls": Part("stalls", "what looks like a stall and is none", _pytest("-m", "stalls"), waits=True),
    "predictions": Part(
        "predictions",
        "each end of credentials, foretold and let happen",
        _side_by_side("-m", "predictions"),
        waits=True,
    ),
    "alerts": Part(
        "alerts", "each alert from its cause to its end, in a real Airflow", _pytest("-m", "alerts"), waits=True
    ),
    "simulations": Part(
        "simulations",
        "ten thousand histories of the whole supervisor, and 20 times as many of each policy",
        _pytest("-n", str(CLUSTERS), "tests/simulation", "-m", "simulation", "--hypothesis-profile", "deep"),
        computes=True,
    ),
    "prometheus": Part(
        "prometheus", "alerts and the dashboard's queries in a real Prometheus", _pytest("-m", "prometheus")
    ),
    "compatibility": Part(
        "compatibility", "the wheel in empty environments of each Python", _pytest("-m", "compatibility")
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
        _side_by_side("-m", " or ".join(names), workers=WAITING),
        waits=True,
    )
    return tuple(joined if part is waiting[0] else part for part in parts if part not in waiting[1:])


def rounds(parts: Sequence[Part]) -> list[tuple[Part, ...]]:
    """Return the parts that run at the same time: what computes runs beside what waits, where both are chosen."""
    computing = tuple(part for part in parts if part.computes)
    waiting = next((part for part in parts if part.waits), None)
    if waiting is None:
        return [(part,) for part in parts]
    return [(part, *computing) if part is waiting else (part,) for part in parts if part not in computing]
