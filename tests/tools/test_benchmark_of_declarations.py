"""The benchmark of declarations, which Airflow parses and starts tasks of."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_the_benchmark_measures_both_sides(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.declarations", "--streams", "3", "--rounds", "1"]
    subprocess.run([*command, "--json", str(figures)], check=True, capture_output=True)
    assert [(figure["task"], figure["seconds"] > 0) for figure in json.loads(figures.read_text())] == [
        ("import beyond Airflow", True),
        *[("parse 3 declarations", True)] * 2,
        *[("start one task of 3", True)] * 2,
    ]
