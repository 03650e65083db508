"""`airflow kstream`: the same program as `kstream`, by Airflow's own command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NO_HEAVY_IMPORT = (
    "import sys; import airflow_kstream.airflow_cli as a; a.commands();"
    "print([name for name in sys.modules if name.startswith(('airflow_kstream.cli', 'airflow_kstream.supervise'))])"
)


def ran(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "AIRFLOW_HOME": str(folder), "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "COLUMNS": "120"}
    return subprocess.run([sys.executable, "-m", *command], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words",
    [
        # Options that Airflow's own parser must leave alone.
        ("streams", "status", "--help"),
        ("streams", "plan", "/nowhere/orders.yaml", "--cluster", "/nowhere/cluster.yaml"),
        ("leases", "list", "relative", "--cluster", "/nowhere/cluster.yaml"),
        ("streams", "no-such-command"),
    ],
    ids=" ".join,
)
def test_both_say_the_same_and_end_with_the_same_code(tmp_path: Path, words: tuple[str, ...]) -> None:
    own, airflows = ran(tmp_path, "airflow_kstream.cli", *words), ran(tmp_path, "airflow", "kstream", *words)
    assert airflows.returncode == own.returncode
    assert (own.stdout or own.stderr).strip()
    assert own.stdout in airflows.stdout
    # Airflow may have warnings of its own.
    assert own.stderr in airflows.stderr


def test_without_a_command_it_says_which_there_are(tmp_path: Path) -> None:
    done = ran(tmp_path, "airflow", "kstream")
    assert done.returncode == 0
    for group in ("streams", "leases", "tokens", "tickets", "connection"):
        assert group in done.stdout


def test_airflows_other_commands_do_not_pay_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", NO_HEAVY_IMPORT], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
