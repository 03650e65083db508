"""The process supervisor, with real children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from airflow_kstream.demo.supervisor import Child, Happening, ProcessSupervisor, RespawnLimits, SupervisorEvent
from airflow_kstream.minicluster.processes import Launch
from airflow_kstream.model.errors import InvalidInput, MiniclusterError

SLEEPER = (sys.executable, "-c", "import time; print('awake', flush=True); time.sleep(600)")
STUBBORN = (
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('awake', flush=True); time.sleep(600)",
)
# A child, a grandchild, and a daemon that forked twice and has a session of its own.
FAMILY = (
    "bash",
    "-c",
    "sleep 601 & (setsid bash -c 'sleep 602 & sleep 603 & exit' &) ; echo awake; wait; sleep 604",
)
GROWN_UP = ["bash", "sleep", "sleep", "sleep"]


def eventually(is_true: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def children_of_others() -> set[psutil.Process]:
    """Return the processes that this one had started before the test: a minicluster, another test's Spark session."""
    return set(psutil.Process().children())


def is_grown_up(family: list[psutil.Process]) -> bool:
    """Return True if all processes have started and those that only fork have ended."""
    try:
        return sorted(process.name() for process in family) == GROWN_UP
    except psutil.NoSuchProcess:
        return False


class Diary:
    """A collector of events, as the demonstration's console is one."""

    def __init__(self) -> None:
        self.events: list[SupervisorEvent] = []

    def __call__(self, event: SupervisorEvent) -> None:
        self.events.append(event)

    def of(self, name: str) -> list[Happening]:
        return [event.happening for event in self.events if event.child == name]


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture
def supervisor(diary: Diary) -> Iterator[ProcessSupervisor]:
    with ProcessSupervisor(diary, RespawnLimits(backoff=0.05, per_minute=3)) as supervisor:
        yield supervisor


@pytest.fixture
def child(tmp_path: Path) -> Callable[..., Child]:
    def build(name: str, argv: tuple[str, ...], grace: float = 5) -> Child:
        return Child(name, Launch(argv, dict(os.environ), tmp_path, tmp_path / f"{name}.log"), grace)

    return build


def awake(child: Child) -> Callable[[], bool]:
    log = child.launch.output
    return lambda: log.exists() and "awake" in log.read_text()


def test_a_child_runs_in_its_own_session_and_writes_a_private_log(
    supervisor: ProcessSupervisor, child: Callable[..., Child]
) -> None:
    sleeper = child("sleeper", SLEEPER)

    supervisor.start(sleeper)
    eventually(awake(sleeper))

    [process] = supervisor.processes("sleeper")
    assert os.getsid(process.pid) == process.pid
    assert sleeper.launch.output.stat().st_mode & 0o777 == 0o600


def test_a_child_that_dies_is_respawned(
    supervisor: ProcessSupervisor, diary: Diary, child: Callable[..., Child]
) -> None:
    sleeper = child("sleeper", SLEEPER)
    supervisor.start(sleeper)
    eventually(awake(sleeper))
    [first] = supervisor.processes("sleeper")

    first.terminate()
    eventually(lambda: Happening.RESPAWNED in diary.of("sleeper"))

    eventually(lambda: supervisor.processes("sleeper"))
    assert supervisor.processes("sleeper") != [first]
    assert diary.of("sleeper") == [Happening.STARTED, Happening.DIED, Happening.RESPAWNED]
    assert diary.events[1].detail == "killed by signal 15"


def test_a_crash_takes_the_whole_tree_and_the_child_comes_back(
    supervisor: ProcessSupervisor, diary: Diary, child: Callable[..., Child]
) -> None:
    supervisor.start(child("family", FAMILY))
    eventually(lambda: is_grown_up(supervisor.processes("family")))
    before = supervisor.processes("family")

    killed = supervisor.kill("family")

    assert sorted(process.pid for process in before) == killed
    assert not any(process.is_running() for process in before)
    eventually(lambda: is_grown_up(supervisor.processes("family")))
    assert diary.of("family") == [Happening.STARTED, Happening.DIED, Happening.RESPAWNED]


def test_requested_crashes_do_not_use_up_the_respawns(
    supervisor: ProcessSupervisor, diary: Diary, child: Callable[..., Child]
) -> None:
    supervisor.start(child("sleeper", SLEEPER))

    for crashes in range(1, 6):
        eventually(lambda: supervisor.processes("sleeper"))
        supervisor.kill("sleeper")
        eventually(partial(lambda count: diary.of("sleeper").count(Happening.RESPAWNED) == count, crashes))

    assert supervisor.given_up == {}


def test_a_child_that_dies_too_often_is_given_up_with_its_log(
    supervisor: ProcessSupervisor, diary: Diary, child: Callable[..., Child]
) -> None:
    supervisor.start(child("broken", ("bash", "-c", "echo the port is taken; exit 3")))

    eventually(lambda: supervisor.given_up)

    assert "the port is taken" in supervisor.given_up["broken"]
    assert diary.of("broken").count(Happening.DIED) == 4
    assert diary.of("broken")[-1] == Happening.GAVE_UP
    assert diary.events[1].detail == "ended with exit code 3"


def test_a_command_that_does_not_exist_says_so_in_its_log(
    supervisor: ProcessSupervisor, child: Callable[..., Child]
) -> None:
    supervisor.start(child("missing", ("/nowhere/program",)))

    eventually(lambda: supervisor.given_up)

    assert "/nowhere/program can't be started" in supervisor.given_up["missing"]


def test_stop_leaves_no_process_behind(
    supervisor: ProcessSupervisor, diary: Diary, child: Callable[..., Child], children_of_others: set[psutil.Process]
) -> None:
    supervisor.start(child("family", FAMILY))
    supervisor.start(child("sleeper", SLEEPER))
    eventually(lambda: is_grown_up(supervisor.processes("family")) and supervisor.processes("sleeper"))
    everybody = [*supervisor.processes("family"), *supervisor.processes("sleeper")]

    supervisor.stop()

    assert [process for process in everybody if process.is_running()] == []
    assert set(psutil.Process().children()) <= children_of_others
    assert diary.of("family")[-1] == diary.of("sleeper")[-1] == Happening.STOPPED


def test_stop_reaches_a_child_that_has_just_started(supervisor: ProcessSupervisor, child: Callable[..., Child]) -> None:
    for number in range(5):
        supervisor.start(child(f"sleeper-{number}", SLEEPER, grace=120))

    began = time.monotonic()
    supervisor.stop()

    assert time.monotonic() - began < 60


def test_a_child_that_ignores_sigterm_is_killed_after_its_grace(
    supervisor: ProcessSupervisor, child: Callable[..., Child]
) -> None:
    stubborn = child("stubborn", STUBBORN, grace=0.5)
    supervisor.start(stubborn)
    eventually(awake(stubborn))
    [process] = supervisor.processes("stubborn")

    began = time.monotonic()
    supervisor.stop()

    assert not process.is_running()
    assert 0.4 < time.monotonic() - began < 60


def test_stop_during_a_backoff_starts_nothing(
    diary: Diary, child: Callable[..., Child], children_of_others: set[psutil.Process]
) -> None:
    supervisor = ProcessSupervisor(diary, RespawnLimits(backoff=60))
    supervisor.start(child("brief", ("true",)))
    eventually(lambda: Happening.DIED in diary.of("brief"))

    supervisor.stop()

    assert diary.of("brief") == [Happening.STARTED, Happening.DIED]
    assert set(psutil.Process().children()) <= children_of_others


def test_names_are_unique_and_unknown_ones_are_refused(
    supervisor: ProcessSupervisor, child: Callable[..., Child]
) -> None:
    supervisor.start(child("sleeper", SLEEPER))

    with pytest.raises(InvalidInput, match="'sleeper' is kept already"):
        supervisor.start(child("sleeper", SLEEPER))
    with pytest.raises(InvalidInput, match="no child is named 'slepper'; there are sleeper"):
        supervisor.kill("slepper")


def test_a_stopped_supervisor_starts_nothing(supervisor: ProcessSupervisor, child: Callable[..., Child]) -> None:
    supervisor.stop()

    with pytest.raises(MiniclusterError, match="the supervisor was stopped"):
        supervisor.start(child("late", SLEEPER))


def test_a_failing_listener_does_not_disturb_the_supervisor(child: Callable[..., Child]) -> None:
    def fails(event: SupervisorEvent) -> None:
        raise RuntimeError(event.child)

    with ProcessSupervisor(fails, RespawnLimits(backoff=0.05)) as supervisor:
        supervisor.start(child("sleeper", SLEEPER))
        eventually(lambda: supervisor.processes("sleeper"))
        [first] = supervisor.processes("sleeper")
        supervisor.kill("sleeper")
        eventually(lambda: supervisor.processes("sleeper") not in ([], [first]))


def test_many_threads_may_crash_and_stop_at_once(
    child: Callable[..., Child], children_of_others: set[psutil.Process]
) -> None:
    supervisor = ProcessSupervisor(limits=RespawnLimits(backoff=0))
    supervisor.start(child("family", FAMILY))
    crashers = [threading.Thread(target=supervisor.kill, args=("family",)) for _ in range(8)]

    for thread in crashers:
        thread.start()
    supervisor.stop()
    for thread in crashers:
        thread.join()

    assert set(psutil.Process().children()) <= children_of_others


SUPERVISOR_PROGRAM = """
import os, sys, time
from pathlib import Path
import psutil
from airflow_kstream.demo.supervisor import Child, ProcessSupervisor
from airflow_kstream.minicluster.processes import Launch

# By their names: four are there for a moment while one of them is only about to become another.
def grown_up(family):
    try:
        return sorted(process.name() for process in family) == ["bash", "sleep", "sleep", "sleep"]
    except psutil.NoSuchProcess:
        return False

with ProcessSupervisor() as supervisor:
    log = Path(sys.argv[1])
    supervisor.start(Child("family", Launch(sys.argv[2:], dict(os.environ), log.parent, log), grace=1))
    while not grown_up(tree := supervisor.processes("family")):
        time.sleep(0.02)
    print(*[process.pid for process in tree], flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_trees_die_with_the_supervisor(number: signal.Signals, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR_PROGRAM, str(tmp_path / "log"), *FAMILY],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        assert program.stdout is not None
        tree = [psutil.Process(int(pid)) for pid in program.stdout.readline().split()]
        program.send_signal(number)

    assert len(tree) == len(GROWN_UP)
    eventually(lambda: not any(process.is_running() for process in tree))
