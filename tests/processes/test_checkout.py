"""What `./kstream` answers in a fresh checkout, where nothing is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from airflow_kstream import __version__
from airflow_kstream.cli import commands
from tests.wheel import ROOT

READ_BY_IT = ("kstream", "requirements.lock", "requirements-bootstrap.lock", "pyproject.toml")
OF_THE_SCRIPT = {"test", "docs"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in READ_BY_IT:
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "airflow_kstream").mkdir()
    shutil.copy(ROOT / "airflow_kstream" / "__init__.py", tmp_path / "airflow_kstream")
    return tmp_path


def answer(checkout: Path, *words: str) -> tuple[int, str, str]:
    """Return the exit code and both outputs of the script, for a user with an empty home."""
    home = checkout / "home"
    home.mkdir(exist_ok=True)
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([checkout / "kstream", *words], env=env, capture_output=True, text=True, check=False)
    assert not (checkout / ".venv").exists()
    assert list(home.iterdir()) == []
    return done.returncode, done.stdout, done.stderr


def test_help_names_each_word_and_what_it_costs_and_installs_nothing(checkout: Path) -> None:
    code, said, _ = answer(checkout, "--help")
    assert code == 0
    assert {*commands(), *OF_THE_SCRIPT} - set(said.replace(",", " ").split()) == set()
    assert "1.2 GB" in said
    assert answer(checkout, "help") == answer(checkout, "-h") == (0, said, "")


@pytest.mark.parametrize("words", [("up", "--help"), ("help", "streams"), ("streams", "plan", "-h")])
def test_help_of_a_word_says_that_the_rest_comes_once_it_is_installed(checkout: Path, words: tuple[str, ...]) -> None:
    code, said, beside = answer(checkout, *words)
    assert (code, said) == (0, answer(checkout, "--help")[1])
    assert beside == f"kstream: once all this is installed, ./kstream {' '.join(words)} tells more\n"


def test_a_mistyped_word_installs_nothing(checkout: Path) -> None:
    code, said, beside = answer(checkout, "demmo", "--once")
    assert (code, said) == (2, "")
    assert beside == "kstream: there is no word demmo; ./kstream --help names all\n"
    assert answer(checkout)[0] == 2


def test_the_version_needs_no_installation(checkout: Path) -> None:
    assert answer(checkout, "--version") == (0, f"kstream {__version__}\n", "")
