"""A mutant is planted in a copy of the checkout, its tests run there, and nobody reads what they print."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.mutants import __main__ as mutants
from tests.mutants.planting import BrokenMutant, Mutant


def test_differences_are_not_shown_in_full_where_ci_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To show those of megabytes takes pytest minutes: a mutant's test would end by its time-out."""
    monkeypatch.setenv("CI", "true")
    # It names the folder that this copy lies in, which pytest refuses.
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    copy = tmp_path / "m0"
    copy.mkdir()
    (copy / "test_it.py").write_text("def test_it():\n    assert b'a line' == b'a lime'\n")
    ran = mutants._pytest(copy, ["test_it.py"], 600)
    assert ran.returncode == 1
    assert "Use -v to get more diff" in ran.stdout


def test_a_copy_has_new_files_and_none_that_git_ignores(tmp_path: Path) -> None:
    checkout, copy = tmp_path / "checkout", tmp_path / "copy"
    subprocess.run(["git", "init", "--quiet", checkout], check=True)
    files = {"deleted.py": "", "changed.py": "", "new/file.py": "", "ignored.pyc": "", ".gitignore": "*.pyc"}
    for name, text in files.items():
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text(text)
    subprocess.run(["git", "add", "deleted.py", "changed.py"], cwd=checkout, check=True)
    (checkout / "changed.py").write_text("changed")
    (checkout / "deleted.py").unlink()
    mutants._copy(checkout, copy)
    copied = {str(file.relative_to(copy)): file.read_text() for file in copy.rglob("*") if file.is_file()}
    assert copied == {"changed.py": "changed", "new/file.py": "", ".gitignore": "*.pyc"}


@pytest.mark.parametrize("times", [0, 2])
def test_a_mutant_whose_place_is_not_found_once_is_refused(times: int) -> None:
    with pytest.raises(BrokenMutant, match=f"its old text occurs {times} times in some.py"):
        Mutant("a promise is broken", "some.py", "alive", "dead").planted_in("alive = True\n" * times)


def test_a_mutant_that_is_no_python_is_refused() -> None:
    with pytest.raises(BrokenMutant, match="does not compile"):
        Mutant("a promise is broken", "some.py", "alive = True", "alive =").planted_in("alive = True\n")
