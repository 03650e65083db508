"""`airflow kstream`: the same program as `kstream`, by Airflow's own command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.cli.cli_parser import get_parser

from airflow_kstream import airflow_cli
from airflow_kstream.cli import commands, main

Said = tuple[int | str | None, str, str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[[Callable[[], object]], Said]:
    """Return a function that runs a command in this process, and returns its code and both of its outputs."""

    def run(command: Callable[[], object]) -> Said:
        with pytest.raises(SystemExit) as end:
            command()
        return end.value.code, *capsys.readouterr()

    return run


def airflow(*words: str) -> None:
    arguments = get_parser().parse_args(["kstream", *words])
    arguments.func(arguments)


@pytest.mark.parametrize(
    "words",
    [
        # Options that Airflow's own parser must leave alone.
        ("streams", "status", "--help"),
        ("streams", "plan", "/nowhere/orders.yaml", "--cluster", "/nowhere/cluster.yaml"),
        ("leases", "list", "relative", "--cluster", "/nowhere/cluster.yaml"),
        ("streams", "no-such-command"),
        ("--cluster", "/nowhere/cluster.yaml", "streams", "status"),
        ("-c", "/nowhere/a.yaml", "streams", "status", "-c", "/nowhere/b.yaml"),
        ("--version",),
    ],
    ids=" ".join,
)
def test_both_say_the_same_and_end_with_the_same_code(
    said: Callable[[Callable[[], object]], Said], words: tuple[str, ...]
) -> None:
    own = said(lambda: main(list(words)))
    assert said(lambda: airflow(*words)) == own
    assert own[1] or own[2]


def test_airflows_own_help_names_each_group(said: Callable[[Callable[[], object]], Said]) -> None:
    code, printed, _ = said(lambda: airflow("--help"))
    _, _, named = printed.partition("Runs `kstream COMMAND`:")
    of_a_checkout = {"minicluster", "demo", "up"}
    assert not code
    assert commands().keys() - of_a_checkout - set(re.findall(r"\w+", named)) == set()


def test_without_a_command_it_says_which_there_are(said: Callable[[Callable[[], object]], Said]) -> None:
    code, printed, _ = said(airflow)
    assert not code
    for group in ("streams", "leases", "tokens", "tickets", "connection"):
        assert group in printed


def test_the_program_of_airflow_knows_it(tmp_path: Path) -> None:
    env = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    command = [sys.executable, "-m", "airflow", "kstream", "streams", "no-such-command"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No such command" in done.stderr


def test_airflows_help_names_every_command() -> None:
    (kstream,) = airflow_cli.commands()
    shipped = commands().keys() - {"minicluster", "demo", "up"}
    assert {name for name in shipped if name not in str(kstream.description)} == set()
