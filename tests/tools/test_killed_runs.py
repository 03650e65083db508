"""The folder of a test run whose guard was killed with it is deleted by the next run, with what still runs in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run_folder import fresh_inner, make_run_folder, memory_of, remove, remove_what_was_left
from tests.temporary import temporary_files_in

# Leaves a server in its folder, as a minicluster is: in a session of its own, and nobody's child.
RUN = """
import subprocess, time
from tests.run_folder import WorkerFolder, make_run_folder
run, use = make_run_folder()
print(WorkerFolder(run, "main").in_memory(), flush=True)
print(subprocess.Popen(["sleep", "600"], cwd=run, start_new_session=True).pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path) -> Iterator[Path]:
    with temporary_files_in(tmp_path):
        yield tmp_path


def test_what_a_killed_run_left_is_ended_and_deleted_by_the_next_one(temporary: Path) -> None:
    run = subprocess.Popen([sys.executable, "-c", RUN], stdout=subprocess.PIPE, text=True)
    assert run.stdout
    with run.stdout:
        in_memory = Path(run.stdout.readline().strip())
        server = int(run.stdout.readline())
    assert in_memory.is_dir()
    remove_what_was_left()
    assert [*temporary.iterdir()], "a run that lives keeps its folder"
    run.kill()
    run.wait()
    remove_what_was_left()
    assert not [*temporary.iterdir()]
    assert not in_memory.parent.exists()
    assert not is_running(server)


def test_a_folder_is_in_use_until_the_last_process_of_its_run_ends(temporary: Path) -> None:
    run, use = make_run_folder()
    last = subprocess.Popen(["sleep", "600"], pass_fds=(use,))
    os.close(use)
    remove_what_was_left()
    assert run.exists()
    last.kill()
    last.wait()
    remove_what_was_left()
    assert not run.exists()


def test_an_inner_run_begins_empty_and_is_deleted_with_the_outer_one(temporary: Path) -> None:
    run, _ = make_run_folder()
    inner = fresh_inner(run, "inner")
    memory_of(inner).mkdir(parents=True)
    (inner / "left").touch()
    assert not [*fresh_inner(run, "inner").iterdir()]
    assert not memory_of(inner).exists()
    memory_of(inner).mkdir(parents=True)
    remove(run)
    assert not [*temporary.iterdir()]
    assert not memory_of(run).exists()


def test_folders_of_others_are_left_alone(temporary: Path) -> None:
    (temporary / "kstream-test-mine").mkdir()
    remove_what_was_left()
    assert (temporary / "kstream-test-mine").exists()


def is_running(pid: int) -> bool:
    try:
        return "sleep" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False
