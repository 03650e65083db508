"""Noninterference: whatever an ordinary user of the cluster adds, the stream's life is the same without it.

Each history is lived twice, with and without such a user, `mallory`, and compared step by step: phases, generations,
and what was done. Files of every kind, folders and tagged applications are added at any moment. In a closed folder none
can be; in one that somebody opened they are, and a stream that has ever run is neither refused, nor delayed, nor
counted otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.authors import FolderKind, folder_name
from airflow_kstream.model.errors import Denied, KstreamError
from airflow_kstream.model.streams.generation import DesiredState, StreamId
from airflow_kstream.model.streams.plan import Report
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.ended_lives import BRISK, CODE
from tests.simulated.fixtures import lived
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER

STATE_DIR = CLUSTER.state_dir
FOLDER = StreamId(BRISK.name, STATE_DIR).folder
# Each is two lives of 30 ms.
HISTORIES = settings(max_examples=120 if settings().max_examples <= 100 else 10_000)
NUMBERS = st.sampled_from([1, 2, 3, 4, 7, 999_999])
_KINDS = (
    "gen stop started stopped failed fence accepted reached blocked examined ended launched "
    "push applied refused unpushed stalled desired closing"
)
KINDS = st.sampled_from(_KINDS.split())
Act = Callable[[Life], object]
History = list[tuple[bool, Act]]
TEXTS = st.sampled_from(["", "rubbish", "{}", '{"version": 3}', '{"version": 9, "nonce": "x"}', "[" * 500])


@dataclass
class Lived:
    """A stream's life: what each step of it showed."""

    life: Life
    seen: list[object] = field(default_factory=list)

    def step(self, act: Callable[[Life], object]) -> None:
        try:
            shown = act(self.life)
        except KstreamError as error:
            shown = type(error).__name__, _plain(error.message)
        self.seen.append(_shown(shown))
        # Of an order and an end within the same moment, the machine's pace would tell which came first.
        self.life.clock.ahead += timedelta(minutes=1)


def _shown(shown: object) -> object:
    if not isinstance(shown, Report):
        return shown
    done = [_plain(done.what) for done in shown.done]
    return shown.phase, shown.generation, done, _plain(shown.why)


def _plain(words: str) -> str:
    """Return the words without what differs from run to run: ids of applications, times and nonces."""
    return re.sub(r"application_\d+_\d+|[0-9a-f]{12,}|\d+(\.\d+)?", "#", words)


# ---- What happens to the stream, and what persons do ---------------------------------------------------------------


def reconcile(life: Life) -> Report:
    return Reconciler(life.run, tell=lambda line: None, patient=False).run(Mode.ENSURE)


def commit(life: Life) -> None:
    life.engine.complete_epoch(BRISK)


def end(life: Life) -> None:
    for app in [app for app in life.yarn.apps.values() if app.alive and app.user == "streamer"][-1:]:
        life.yarn.end(app.id, ApplicationState.FAILED, CODE)


def restart(life: Life) -> None:
    life.request_restart()


def hold(life: Life) -> None:
    life.set_desired(DesiredState.HELD)


def stop(life: Life) -> None:
    life.set_desired(DesiredState.STOPPED)


def start(life: Life) -> None:
    life.set_desired(DesiredState.RUNNING)


def freeze(life: Life) -> None:
    FreezeStore(life.run.session).freeze(timedelta(hours=1), "a new NameNode")


def lift(life: Life) -> None:
    FreezeStore(life.run.session).lift("go on")


def watch(life: Life) -> object:
    seen = life.watch()
    return type(seen.step), seen.generation, seen.lives, _plain(seen.why)


def wait(life: Life) -> None:
    life.clock.ahead += timedelta(minutes=20)


OURS = st.sampled_from(
    [reconcile, reconcile, reconcile, commit, end, restart, hold, stop, start, freeze, lift, watch, wait]
)


# ---- What mallory does ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Written:
    path: str
    text: str

    def __call__(self, life: Life) -> None:
        folder = self.path.rpartition("/")[0]
        with life.hdfs.as_user("mallory"):
            life.hdfs.make_folder(folder, "777")
            if self.path not in life.hdfs.files:
                life.hdfs.write(self.path, self.text)


@dataclass(frozen=True)
class Tagged:
    generation: int
    ended: bool

    def __call__(self, life: Life) -> None:
        app = life.yarn.start(frozenset(StreamId(BRISK.name, STATE_DIR).tags(self.generation)), user="mallory")
        if self.ended:
            life.yarn.end(app.id)


def _name(kind: str, number: int, nonce: int) -> str:
    return f"{kind}-{number:06d}" + (f"-{nonce}" if kind in {"fence", "push", "stalled"} else "")


NAMES = st.builds(_name, KINDS, NUMBERS, NUMBERS)
PLACES = st.sampled_from(
    [
        *(folder_name(kind, user) for kind in FolderKind for user in ("mallory", "streamer", "hdfs")),
        f"{folder_name(FolderKind.DECLARED, 'mallory')}/{StreamId(BRISK.name, STATE_DIR)}",
        str(StreamId("aaa", STATE_DIR)),
        "freeze",
    ]
)
ELSEWHERE = st.builds(
    Written,
    st.builds(
        "{}/{}/{}".format,
        st.just(STATE_DIR),
        PLACES,
        st.one_of(NAMES, st.just(f"{StreamId(BRISK.name, STATE_DIR)}.000099.json"), st.just("freeze.000099.json")),
    ),
    TEXTS,
)
ROOT = st.builds(Written, st.sampled_from([f"{STATE_DIR}/supervisors", f"{STATE_DIR}/.check-1"]), st.just("mallory\n"))
TAGGED = st.builds(Tagged, NUMBERS, st.booleans())
INSIDE = st.builds(Written, st.builds("{}/{}".format, st.just(FOLDER), NAMES), TEXTS)


def _history(
    mallorys: st.SearchStrategy[Callable[[Life], object]],
) -> st.SearchStrategy[History]:
    """Draw acts, each with whether it is mallory's."""
    ours = st.tuples(st.just(False), OURS)
    return st.lists(st.one_of(ours, ours, st.tuples(st.just(True), mallorys)), min_size=4, max_size=14)


def _live(history: History, *, with_mallory: bool, opened: bool) -> Lived:
    with lived() as life:
        life.run = replace(life.run, spec=BRISK)
        life.hdfs.modes[STATE_DIR] = "1777"
        told = Lived(life)
        told.step(reconcile)
        for mallorys, act in history:
            if opened:
                life.hdfs.modes[FOLDER] = "777"
            if not mallorys:
                told.step(act)
            elif with_mallory:
                # A closed folder lets nobody else write.
                with suppress(Denied):
                    act(life)
        told.step(reconcile)
        return told


@HISTORIES
@given(_history(st.one_of(ELSEWHERE, ROOT, TAGGED, INSIDE)))
def test_beside_a_closed_folder_mallory_changes_nothing(history: History) -> None:
    alone = _live(history, with_mallory=False, opened=False)
    assert _live(history, with_mallory=True, opened=False).seen == alone.seen


@HISTORIES
@given(_history(st.one_of(ELSEWHERE, TAGGED, INSIDE, INSIDE)))
def test_in_an_opened_folder_mallory_changes_nothing_either(history: History) -> None:
    alone = _live(history, with_mallory=False, opened=True)
    with_mallory = _live(history, with_mallory=True, opened=True)
    assert _without_numbers(with_mallory.seen) == _without_numbers(alone.seen)


def _without_numbers(seen: list[object]) -> list[object]:
    """Leave the generations' numbers out: those that mallory took are passed over."""
    return [
        tuple(part for part in each if not isinstance(part, int)) if isinstance(each, tuple) else each for each in seen
    ]
