"""The demonstration's temporary folder stays where its logs tell why something failed, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.console import Console

from airflow_kstream.demo.cli import working_folder
from airflow_kstream.demo.console import DemoConsole
from airflow_kstream.demo.environment import brought_up, require_own_folder
from airflow_kstream.minicluster import MiniclusterConfig
from airflow_kstream.minicluster.bringup import begin
from airflow_kstream.model.errors import MiniclusterError
from tests.temporary import temporary_files_in


@pytest.fixture
def console(tmp_path: Path) -> Iterator[DemoConsole]:
    with temporary_files_in(tmp_path):
        yield DemoConsole(Console(file=StringIO()))


def test_a_temporary_folder_is_private_and_goes_at_the_end(console: DemoConsole) -> None:
    with working_folder(None, "kstream-demo-", console) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "airflow.db").touch()
    assert not folder.exists()


def test_it_goes_when_a_signal_ends_the_demonstration(console: DemoConsole) -> None:
    with pytest.raises(SystemExit), working_folder(None, "kstream-demo-", console) as folder:
        raise SystemExit(130)
    assert not folder.exists()


@pytest.mark.parametrize("failure", [MiniclusterError("no KDC"), typer.Exit(1)])
def test_it_stays_when_something_failed_or_a_promise_was_broken(console: DemoConsole, failure: Exception) -> None:
    with pytest.raises(type(failure)), working_folder(None, "kstream-demo-", console) as folder:
        raise failure
    assert folder.exists()


def test_a_folder_that_a_person_named_always_stays(console: DemoConsole, tmp_path: Path) -> None:
    with working_folder(tmp_path / "demo", "kstream-demo-", console) as folder:
        assert folder == tmp_path / "demo"
    assert folder.exists()


def test_a_second_one_in_its_folder_leaves_the_first_ones_cluster_alone(console: DemoConsole, tmp_path: Path) -> None:
    site = begin(plan := MiniclusterConfig(tmp_path / "minicluster", frozenset()))
    words = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, cwd=site.folders.run) as daemon:
        with pytest.raises(MiniclusterError, match=f"minicluster down --root {plan.root}"), ExitStack() as stack:
            brought_up(plan, console, stack)
        assert daemon.poll() is None
        daemon.communicate()
    assert site.folders.record.is_file()


def test_an_airflow_of_somebodys_in_the_folder_is_not_the_demonstrations_to_remove(tmp_path: Path) -> None:
    """A home folder is closed to others, too, and has Airflow's own `airflow` in it."""
    (tmp_path / "airflow").mkdir()
    (tmp_path / "airflow/airflow.db").touch()
    with pytest.raises(MiniclusterError, match="has a folder airflow that no demonstration made; name an empty one"):
        require_own_folder(tmp_path)
    begin(MiniclusterConfig(tmp_path / "minicluster", frozenset()))
    assert require_own_folder(tmp_path)


def test_a_chosen_folder_is_closed_and_one_with_other_things_is_refused(tmp_path: Path, console: DemoConsole) -> None:
    """It gets keytabs, and Airflow's database and keys."""
    empty, shared = tmp_path / "empty", tmp_path / "shared"
    for folder in (empty, shared):
        folder.mkdir()
        folder.chmod(0o755)
    (shared / "notes").touch()
    with working_folder(empty, "kstream-demo-", console):
        assert empty.stat().st_mode & 0o777 == 0o700
    with pytest.raises(MiniclusterError, match="holds other things"), working_folder(shared, "kstream-demo-", console):
        pass
    assert shared.stat().st_mode & 0o777 == 0o755
