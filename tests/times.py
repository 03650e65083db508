"""How long each test of a run took, kept in the run's folder for the table at the end of all its parts. A plugin."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.run_folder import VARIABLE

# The part of the run that this process is.
PART = "KSTREAM_TEST_PART"
_FOLDER = "times"


@dataclass(frozen=True)
class Times:
    """The seconds that each test took, by its name: its own fixtures and those that it was the first to ask for."""

    seconds: Mapping[str, float]

    def below(self, path: str) -> float:
        """Return the seconds of all tests in this file, or below this folder."""
        return sum(seconds for name, seconds in self.seconds.items() if name.startswith((f"{path}/", f"{path}::")))

    def slowest(self, number: int) -> list[tuple[str, float]]:
        return sorted(self.seconds.items(), key=lambda each: -each[1])[:number]


def read_times(run: Path) -> Times:
    """Return the times of all parts of this run that have ended."""
    return Times(
        {name: took for file in (run / _FOLDER).glob("*") for name, took in json.loads(file.read_text()).items()}
    )


class Stopwatch:
    """Adds up what pytest says of each test, and writes it at the end."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration  # type: ignore[assignment]  # Counter adds floats as well

    def pytest_sessionfinish(self) -> None:
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(json.dumps(self._seconds))


def pytest_configure(config: pytest.Config) -> None:
    """Take the time where the reports of all workers come together."""
    if PART in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Stopwatch(Path(os.environ[VARIABLE]) / _FOLDER / os.environ[PART]))
