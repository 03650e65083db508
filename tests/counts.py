"""How much a run tried, in one line at its end: a faster run that tries less is not faster. A plugin."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import statistics

# Its type is inferred from its default, which is None.
collector: Any = statistics.collector
_EXAMPLES = "examples"
# In the log of the ResourceManager, once for each application that a client submitted (RMAppImpl).
_SUBMITTED = re.compile(r"Storing application with id (application_\d+_\d+)")
# A worker has a folder in pytest's, a test has one in its worker's, and may start a cluster below its own.
_DEPTHS = range(1, 5)


@dataclass(frozen=True)
class Counts:
    """What a run tried: tests by tier, examples of properties, clusters that were started, applications of YARN."""

    tests: Counter[str]
    examples: int
    clusters: int
    submissions: int

    def __str__(self) -> str:
        tests = ", ".join(f"{number} {tier}" for tier, number in sorted(self.tests.items()))
        return (
            f"{self.tests.total()} tests ({tests}), {self.examples} property examples, "
            f"{self.clusters} clusters, {self.submissions} applications on them"
        )


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Note how many examples of a property were tried; Hypothesis's own plugin hears it, too."""
    theirs = collector.value

    def note(told: dict[str, Any]) -> None:
        item.user_properties.append((_EXAMPLES, examples_in(told)))
        if theirs:
            theirs(told)

    with collector.with_value(note):
        return (yield)


def examples_in(told: dict[str, Any]) -> int:
    """Return how many examples met the property's assumptions."""
    phases = [phase for name, phase in told.items() if name.endswith("-phase")]
    return sum(case["status"] != "invalid" for phase in phases for case in phase.get("test-cases", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
    calls = [report for report in reports if report.when == "call"]
    below = Path(config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined]  # pytest names it nowhere else
    records = [file for depth in _DEPTHS for file in below.glob("*/" * depth + "minicluster.json")]
    clusters = {file.parent.resolve() for file in records}
    counts = Counts(
        Counter(tier_of(report.nodeid) for report in calls),
        sum(int(value) for report in calls for name, value in report.user_properties if name == _EXAMPLES),
        len(clusters),
        sum(len(submitted(_lines(folder))) for folder in clusters),
    )
    terminalreporter.write_line(str(counts))


def tier_of(nodeid: str) -> str:
    return nodeid.removeprefix("tests/").partition("/")[0]


def submitted(lines: Iterable[str]) -> set[str]:
    """Return the applications that these lines of ResourceManagers say were submitted."""
    return {found[1] for line in lines if (found := _SUBMITTED.search(line))}


def _lines(cluster: Path) -> Iterator[str]:
    for log in [*(cluster / "logs").glob("r*.log*")]:
        with log.open(errors="replace") as lines:
            yield from lines
