"""The benchmark of leases runs from start to end; its speed depends on the machine and is not tested."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALL = (
    "--files",
    "100",
    "--writers",
    "1",
    "--as",
    "owner",
    "--limits",
    "unlimited",
    "--namespace",
    "2000",
    "--slow-sample",
    "1",
    "--heartbeat",
    "1",
)


@pytest.mark.usefixtures(
    "minicluster"
)  # Starts after the shared one: two miniclusters that start at once take longer than one after the other.
def test_the_lease_benchmark_measures_both_sides_and_prints_their_ratios(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.leases", *SMALL, "--json", str(figures)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(figures.read_text())
    assert {figure["task"] for figure in told} == {
        "recover 100 files of a killed writer",
        "recover 1 files of a killed writer",
        "a check that finds nothing",
        "find 100 open among 2,000 files",
    }
    assert all(figure["seconds"] > 0 for figure in told)
    assert [figure["extrapolated"] for figure in told if figure["backend"].startswith("loop of hdfs debug")] == [
        1,
        None,
    ]
    told_of = " ".join(ran.stderr.split())
    assert "first requested after" in told_of
    assert "waiting for the second look" in told_of
    assert "1 measured, the rest extrapolated" in ran.stdout
    assert "times faster" in ran.stdout
