"""The wheel in empty environments of every Python that this machine has, installed with README's lines."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.wheel import built_wheel, locked_constraints

PYTHONS = ("python3.11", "python3.12", "python3.13")
pytestmark = pytest.mark.compatibility


def runs(python: str) -> bool:
    """Tell whether this machine has it; a version manager's stub exists for those that it could get, too."""
    with suppress(OSError):
        return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    return False


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module", params=[python for python in PYTHONS if runs(python)])
def installed(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment with the core alone, of the versions that are locked."""
    environment = tmp_path_factory.mktemp("empty")
    subprocess.run([request.param, "-m", "venv", environment], check=True)
    install(environment, str(wheel))
    return environment


def install(environment: Path, what: str) -> None:
    constraints = environment / "constraints.txt"
    constraints.write_text(locked_constraints())
    pip = [str(environment / "bin/python"), "-m", "pip", "-q", "install", "-c", str(constraints), what]
    subprocess.run(pip, check=True)


def run(environment: Path, *command: str) -> str:
    first, *rest = command
    done = subprocess.run([environment / "bin" / first, *rest], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_core_has_a_command_line_and_no_spark_client(installed: Path) -> None:
    assert "streams" in run(installed, "kstream", "--help")
    assert "pyspark" not in run(installed, "pip", "freeze")


def test_airflow_finds_the_provider(installed: Path, tmp_path: Path) -> None:
    assert "airflow-kstream" in run(installed, "airflow", "providers", "list")


def test_the_spark_extra_installs_a_pair_that_matches(installed: Path, wheel: Path) -> None:
    install(installed, f"{wheel}[spark]")
    frozen = dict(line.partition("==")[::2] for line in run(installed, "pip", "freeze").splitlines())
    assert frozen["pyspark"] == frozen["pyspark-client"]
    assert (
        "version"
        in subprocess.run(
            [installed / "bin/spark-submit", "--version"], capture_output=True, text=True, check=True
        ).stderr
    )
