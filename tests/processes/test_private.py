"""Private folders, with several processes that make and sweep them at once."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tenacity import Retrying, stop_after_delay, wait_fixed

from airflow_kstream.clients.local.private import private_folder
from tests.temporary import temporary_files_in

MANY_TIMES = """
from airflow_kstream.clients.local.private import private_folder
for _ in range(300):
    with private_folder():
        pass
"""
# Prints its folder, and runs until it is killed.
HOLDER = """
import sys
from airflow_kstream.clients.local.private import private_folder
with private_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""
# The same, but the process that works in the folder is its child, which ends with its input.
PARENT = """
import subprocess, sys
from airflow_kstream.clients.local.private import kept_for_a_child, private_folder
with private_folder() as folder, kept_for_a_child(folder) as lock:
    print(folder, flush=True)
    subprocess.run(["cat"], cwd=folder, pass_fds=(lock,))
"""
OTHER_PROCESSES = ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--mount-proc"]


@pytest.fixture(autouse=True)
def shared_tmp(tmp_path: Path) -> Iterator[Path]:
    with temporary_files_in(tmp_path):
        yield tmp_path


@contextmanager
def running(script: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout
        yield process, Path(process.stdout.readline().rstrip())
        process.kill()


def test_a_private_folder_is_ours_alone_and_gone_afterwards() -> None:
    with private_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()


def test_processes_that_sweep_at_once_do_not_trip_over_each_other() -> None:
    """Each sweeper finds folders of the others that vanish while it looks at them."""
    sweepers = [subprocess.Popen([sys.executable, "-c", MANY_TIMES], stderr=subprocess.PIPE) for _ in range(4)]
    assert [process.communicate()[1] for process in sweepers] == [b""] * len(sweepers)


def test_what_a_killed_process_left_behind_is_swept() -> None:
    with running(HOLDER) as (process, folder):
        process.kill()
        process.wait()
        assert folder.exists()
        with private_folder():
            assert not folder.exists()


def test_a_sweep_spares_a_folder_that_another_container_uses() -> None:
    """One uid and one TMPDIR, but neither container sees the other's processes."""
    with running(HOLDER) as (process, folder):
        alone = [*OTHER_PROCESSES, sys.executable, "-c"]
        unseen = f"from pathlib import Path; assert not Path('/proc/{process.pid}').exists()"
        subprocess.run([*alone, unseen], check=True)
        subprocess.run([*alone, MANY_TIMES], check=True)
        assert folder.exists()


def test_a_sweep_spares_the_folder_of_a_killed_process_while_its_child_works_there() -> None:
    with running(PARENT) as (process, folder):
        assert process.stdin
        assert process.stdout
        process.stdin.write("are you there?\n")
        process.stdin.flush()
        assert process.stdout.readline() == "are you there?\n"
        process.kill()
        process.wait()
        with private_folder():
            assert folder.exists()
        process.stdin.close()
        # The child has the output, too: its end is the child's, whose lock goes with it a moment later.
        assert process.stdout.read() == ""
        for attempt in Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.05), reraise=True):
            with attempt, private_folder():
                assert not folder.exists()
