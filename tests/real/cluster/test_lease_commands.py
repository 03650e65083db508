"""`kstream leases` at a terminal and in a script, on files that real writers left open."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from getpass import getuser

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.minicluster import Minicluster
from tests.live.lease_commands import NO_AGE, Commands, commands_as
from tests.live.streams import await_that, cluster
from tests.live.writers import Writer, leave_open, make_closed, pattern, writer
from tests.live.writers.hadoop_says import content, is_open, open_files, soft_probe

FOLDER = f"/user/{getuser()}/lease-commands"
DEAD = (f"{FOLDER}/dead/plain", f"{FOLDER}/dead/two words", f"{FOLDER}/dead/a\ttab\nand [red]brackets")
LEAKED, GROWING = f"{FOLDER}/living/leaked", f"{FOLDER}/living/growing"
MANY = [f"{FOLDER}/many/{number}" for number in range(600)]
OUTCOMES = ("closed", "already closed", "unconfirmed", "not tried")


@pytest.fixture(scope="module")
def kstream(minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """`kstream leases` as the owner of the files."""
    return commands_as(minicluster, "streamer", tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="module")
def superuser(minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """`kstream leases` as a user that may list all leases of the NameNode."""
    return commands_as(minicluster, "hdfs", tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="module")
def folder(minicluster: Minicluster) -> Iterator[str]:
    yield FOLDER
    with cluster(minicluster) as found:
        hdfs = Hdfs(found.namenodes, found.watcher, found.tls)
        hdfs.delete(FOLDER, recursive=True)
        hdfs.close()


@pytest.fixture(scope="module")
def living(minicluster: Minicluster, folder: str) -> Iterator[Writer]:
    """A client that leaks one file and goes on with another."""
    with writer(minicluster) as client:
        client.leave(LEAKED, 700)
        client.leave(GROWING, 100)
        client.abandon(LEAKED)
        client.grow(GROWING, seconds=0.5)
        yield client


@pytest.fixture(scope="module")
def dead(minicluster: Minicluster, folder: str) -> tuple[str, ...]:
    """Files of a killed writer whose lease is past the NameNode's soft limit, so that it counts as abandoned.

    A probe of one of them would begin its recovery, so the fixture probes a file of a writer that was killed later.
    """
    leave_open(minicluster, DEAD, size=1000)
    leave_open(minicluster, MANY, size=10)
    leave_open(minicluster, [f"{folder}/clock"], size=10)
    await_that(
        lambda: soft_probe(minicluster, f"{folder}/clock").exception != "AlreadyBeingCreatedException",
        "the soft limit passes",
    )
    return DEAD


def test_the_list_has_every_open_file_and_escapes_what_could_break_it(
    kstream: Commands, dead: tuple[str, ...], living: Writer
) -> None:
    done = kstream.run("list", FOLDER)

    assert done.returncode == 0, done.stderr
    assert "dead/a\\ttab\\nand [red]brackets" in done.stdout
    assert all(path in done.stdout for path in (*dead[:2], LEAKED, GROWING))


def test_programs_get_paths_as_they_are(kstream: Commands, dead: tuple[str, ...]) -> None:
    found = kstream.json("list", f"{FOLDER}/dead", "--pattern", "*\ttab\n*")

    assert [finding["path"] for finding in found["findings"]] == [dead[2]]
    assert found["findings"][0]["visible_length"] == 1000


def test_the_list_is_filtered_by_age_and_owner(kstream: Commands, dead: tuple[str, ...]) -> None:
    assert kstream.json("list", FOLDER, "--min-age", "1h")["findings"] == []
    assert kstream.json("list", FOLDER, "--owner", "nobody")["findings"] == []
    assert len(kstream.json("list", f"{FOLDER}/dead", "--owner", getuser())["findings"]) == len(dead)


def test_an_open_file_is_explained_in_words_and_left_open(
    minicluster: Minicluster, kstream: Commands, dead: tuple[str, ...]
) -> None:
    done = kstream.run("explain", dead[0], *NO_AGE)

    assert done.returncode == 0, done.stderr
    assert "probe its holder, and recover it if the holder is dead" in done.stdout
    assert "a reader gets 1000 bytes" in done.stdout
    assert "on localhost" in done.stdout
    assert is_open(minicluster, dead[0])


def test_a_growing_file_is_explained_as_growing(kstream: Commands, living: Writer) -> None:
    [finding] = kstream.json("explain", GROWING, *NO_AGE)["findings"]

    assert finding["condition"] == "growing"


def test_explain_says_that_a_holder_has_just_renewed_its_lease(kstream: Commands, living: Writer) -> None:
    done = kstream.run("recover", LEAKED, *NO_AGE)

    assert done.returncode == 0, done.stderr
    assert "renewed its lease within the last minute" in done.stdout
    assert "1 whose holder renewed its lease within the last minute" in done.stderr


def test_a_closed_file_is_explained_to_programs_too(minicluster: Minicluster, kstream: Commands, folder: str) -> None:
    make_closed(minicluster, [f"{folder}/closed"])
    told = kstream.json("explain", f"{folder}/closed")

    assert (told["open"], told["findings"]) == (False, [])
    assert told["file"]["owner"] == getuser()
    assert {"length", "closed_at", "file_id"} <= told["file"].keys()


def test_a_path_that_does_not_exist_is_reported_as_missing(kstream: Commands) -> None:
    done = kstream.run("explain", f"{FOLDER}/never")

    assert done.returncode == 1
    assert "does not exist" in done.stderr


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    minicluster: Minicluster, kstream: Commands, dead: tuple[str, ...]
) -> None:
    done = kstream.run("recover", f"{FOLDER}/dead", *NO_AGE, "--dry-run")

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("probe its holder, and recover it if the holder is dead") == len(dead)
    assert set(open_files(minicluster, f"{FOLDER}/dead")) == set(dead)


def test_living_holders_files_are_left_alone_and_the_exit_code_says_stuck(
    minicluster: Minicluster, kstream: Commands, living: Writer
) -> None:
    done = kstream.run("recover", f"{FOLDER}/living", *NO_AGE, "--leak-after", "1s")

    assert done.returncode == 1
    assert "nobody approved it, and its path is not on the allow-list" in done.stdout
    assert set(open_files(minicluster, f"{FOLDER}/living")) == {LEAKED, GROWING}


def test_dead_holders_files_are_closed_with_every_flushed_byte_and_recorded(
    minicluster: Minicluster, kstream: Commands, dead: tuple[str, ...]
) -> None:
    [done] = kstream.json("recover", f"{FOLDER}/dead", *NO_AGE)

    assert {row["path"]: row["bytes_lost"] for row in done["recoveries"]} == dict.fromkeys(dead, 0)
    assert open_files(minicluster, f"{FOLDER}/dead") == {}
    assert [content(minicluster, path) for path in dead] == [pattern(1000)] * len(dead)
    assert set(dead) <= {record["path"] for record in kstream.json("history", "--since", "1h")}
    assert set(dead) == {record["path"] for record in kstream.json("history", f"{FOLDER}/dead")}
    assert kstream.json("history", f"{FOLDER}/dea") == []
    [row] = [line for line in kstream.run("history").stdout.splitlines() if "dead/a\\ttab" in line and "closed" in line]
    assert [cell.strip() for cell in row.split("│")][3:6] == ["closed", "1000", "0"]

    assert f"no file is open for write below {FOLDER}/dead" in kstream.run("list", f"{FOLDER}/dead").stderr
    again = kstream.run("recover", f"{FOLDER}/dead", *NO_AGE)
    assert again.returncode == 0
    assert "0 open files; nothing to recover" in again.stderr


def test_a_person_approves_a_leaked_file_and_the_growing_one_beside_it_survives(
    minicluster: Minicluster, kstream: Commands, living: Writer
) -> None:
    approved = ("--approve", LEAKED, "--approve", GROWING, "--approved-by", "dana")
    [done] = kstream.json("recover", f"{FOLDER}/living", *NO_AGE, "--leak-after", "1s", *approved)

    assert [row["path"] for row in done["recoveries"]] == [LEAKED]
    assert content(minicluster, LEAKED) == pattern(700)
    assert set(open_files(minicluster, f"{FOLDER}/living")) == {GROWING}
    assert any("dana" in record["reason"] for record in kstream.json("history"))


def test_ctrl_c_in_the_middle_of_many_reports_the_outcome_of_each_file(
    minicluster: Minicluster, superuser: Commands, dead: tuple[str, ...]
) -> None:
    """At a terminal, the user sees the bar and presses once; recoveries in progress get a final check.

    The history has the files that were decided about; of the others the report says why they were not.
    """
    argv = superuser.argv("recover", f"{FOLDER}/many", *NO_AGE)
    seen, code = _interrupted_at_a_terminal(argv)
    records = [record for record in superuser.json("history") if record["path"] in MANY]

    assert code == 130
    assert "stopping after a final check" in seen
    assert f"{len(MANY)} open files; " in seen.rpartition("stopping")[2]
    undecided = len(set(MANY) - {record["path"] for record in records})
    assert re.search(rf"{undecided} [a-z ]+ \(.*: the run was interrupted\)", " ".join(seen.split()))
    by_outcome = {outcome: {row["path"] for row in records if row["outcome"] == outcome} for outcome in OUTCOMES}
    assert sum(map(len, by_outcome.values())) >= len(MANY) - undecided
    assert not by_outcome["closed"] & set(open_files(minicluster, f"{FOLDER}/many"))


def _interrupted_at_a_terminal(argv: list[str]) -> tuple[str, int]:
    """Run it on a terminal of its own, press Ctrl-C when the bar shows files, and read to the end."""
    terminal, child = pty.openpty()
    # Regardless of the tests' own terminal: a dumb one shows no bar.
    env = os.environ | {"TERM": "xterm"}
    process = subprocess.Popen(argv, stdin=child, stdout=child, stderr=child, env=env, start_new_session=True)
    os.close(child)
    seen, pressed, deadline = "", False, time.monotonic() + 400
    while process.poll() is None or select.select([terminal], [], [], 0)[0]:
        assert time.monotonic() < deadline, seen
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            seen += os.read(terminal, 65536).decode(errors="replace")
        except OSError:
            break
        if "recovering" in seen and not pressed:
            process.send_signal(signal.SIGINT)
            pressed = True
    os.close(terminal)
    return seen, process.wait()
