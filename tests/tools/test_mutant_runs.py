"""The tests of a mutant run in a copy of the checkout, and nobody reads what they print."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.mutants import __main__ as mutants


def test_differences_are_not_shown_in_full_where_ci_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To show those of megabytes takes pytest minutes: a mutant's test would end by its time-out."""
    monkeypatch.setenv("CI", "true")
    # It names the folder that this copy lies in, which pytest refuses.
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    copy = tmp_path / "m0"
    copy.mkdir()
    (copy / "test_it.py").write_text("def test_it():\n    assert b'a line' == b'a lime'\n")
    ran = mutants._pytest(copy, ["test_it.py"], 60, 600)
    assert ran.returncode == 1
    assert "Use -v to get more diff" in ran.stdout


def test_a_copy_has_new_files_and_none_that_git_ignores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout, copy = tmp_path / "checkout", tmp_path / "copy"
    subprocess.run(["git", "init", "--quiet", checkout], check=True)
    files = {"deleted.py": "", "changed.py": "", "new/file.py": "", "ignored.pyc": "", ".gitignore": "*.pyc"}
    for name, text in files.items():
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text(text)
    subprocess.run(["git", "add", "deleted.py", "changed.py"], cwd=checkout, check=True)
    (checkout / "changed.py").write_text("changed")
    (checkout / "deleted.py").unlink()
    monkeypatch.setattr(mutants, "CHECKOUT", checkout)
    mutants._copy(copy)
    copied = {str(file.relative_to(copy)): file.read_text() for file in copy.rglob("*") if file.is_file()}
    assert copied == {"changed.py": "changed", "new/file.py": "", ".gitignore": "*.pyc"}
