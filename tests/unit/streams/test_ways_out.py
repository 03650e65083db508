"""No state without a way out: each refusal names commands, and a person who carries them out gets a running stream.

Servers are simulated: copies of folders, writers of unknown origin and containers that outlive their application are
wanted by the moment. A case is a row: what went wrong, the words of the refusal, and what the person does.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

import airflow_kstream.policy.streams
from airflow_kstream.clients.yarn import ContainerPlace
from airflow_kstream.model.application import ApplicationState
from airflow_kstream.model.checkpoint import Checkpoint
from airflow_kstream.model.containers import NodeReport, NodeVerdict
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.plan import Phase, Refuse
from airflow_kstream.model.queue import Queue, Queues
from airflow_kstream.model.stream import OnChange, StreamSpec
from airflow_kstream.policy.streams.reconcile import Mode
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams import checkpoint_lock, formats
from airflow_kstream.supervise.streams.accept import accept_checkpoints
from airflow_kstream.supervise.streams.adopt import adopt
from airflow_kstream.supervise.streams.brake import Brake
from airflow_kstream.supervise.streams.hold import hold
from airflow_kstream.supervise.streams.reconcile import Reconciler
from airflow_kstream.supervise.streams.take_over import take_over
from airflow_kstream.supervise.streams.witnesses import Witnesses
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER

FIRST, SECOND, THIRD = (f"application_1_000{number}" for number in (1, 2, 3))
(CHECKPOINT,) = SPEC.checkpoints
EPOCHS = f"{CHECKPOINT}/epochs.json"
ADOPT = "`kstream streams adopt SPEC.yaml --application-id"
ACCEPT, TAKE_OVER = "`kstream streams accept SPEC.yaml`", "`kstream streams take-over SPEC.yaml`"
KILL, START = "`yarn application -kill", "`kstream streams start orders`"


class Troubled(Life):
    """A stream with a person at a terminal: each verb is one of the commands that refusals name."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.patch = patch
        self.foreign_writer = False
        progress = self.engine.progress

        def moving(session: ClusterSession, spec: StreamSpec) -> tuple[Checkpoint, ...]:
            if self.foreign_writer:
                self.engine.complete_epoch(spec)
            return progress(session, spec)

        patch.setattr(self.engine, "progress", moving)

    def use_spec(self, **changed: object) -> None:
        self.run = replace(self.run, spec=replace(self.run.spec, **changed))  # type: ignore[arg-type]

    def generation(self, number: int) -> str:
        """Start an application of this generation that nobody claimed."""
        return self.yarn.start(frozenset(self.run.id.tags(number))).id

    def kill(self, *applications: str) -> None:
        for name in applications:
            diagnostics = f"Application {name} was killed by user ada at 10.0.0.1"
            self.yarn.end(name, ApplicationState.KILLED, diagnostics)

    def adopt(self, application: str) -> None:
        adopt(self.run, application)

    def accept(self) -> None:
        accept_checkpoints(self.run, "looked at")

    def take_over(self) -> None:
        take_over(self.run, "looked at", tell=lambda line: None)

    def start(self) -> None:
        self.set_desired(DesiredState.RUNNING)

    def remove(self, name: str) -> None:
        assert self.hdfs.delete(name), name

    def path(self, name: str) -> str:
        return f"{self.run.id.folder}/{name}"

    def write(self, name: str, text: str) -> None:
        self.hdfs.write(name, text, overwrite=True)

    def alive(self) -> list[str]:
        return [app.id for app in self.yarn.apps.values() if app.alive]


@pytest.fixture
def life(life: Life, monkeypatch: pytest.MonkeyPatch) -> Troubled:
    """A stream in trouble, with the patience and the tickets of the other one."""
    troubled = Troubled(monkeypatch)
    monkeypatch.setattr("time.sleep", troubled.clock.sleep)
    monkeypatch.setattr("time.monotonic", troubled.clock.monotonic)
    return troubled


Act = Callable[[Troubled], object]


@dataclass(frozen=True)
class Way:
    """A way out of a state. `refused_by` is the function of the policy that made the refusal, if one did."""

    name: str
    trouble: Act
    says: tuple[str, ...]
    out: Act
    refused_by: str = ""


def two_generations(life: Troubled) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.request_restart()
    assert life.reconcile().generation == 2
    life.engine.complete_epoch(SPEC)


def lose(life: Troubled) -> None:
    life.hdfs.delete(life.run.id.folder, recursive=True)


def restore(life: Troubled) -> None:
    """Put an older copy of the folder in its place: it knows nothing of generation 2."""
    for name in life.hdfs.names(life.run.id.folder):
        if "-000002" in name:
            life.hdfs.delete(life.path(name))


def two_in_a_lost_folder(life: Troubled) -> None:
    two_generations(life)
    lose(life)
    life.generation(3)


def two_beside_an_older_copy(life: Troubled) -> None:
    two_generations(life)
    restore(life)
    life.generation(3)


def two_of_one_generation(life: Troubled) -> None:
    two_generations(life)
    restore(life)
    life.generation(2)


def an_old_one_beside_a_lost_end(life: Troubled) -> None:
    two_in_a_lost_folder(life)
    life.kill(THIRD)


def an_old_one_beside_an_end_and_an_older_copy(life: Troubled) -> None:
    two_beside_an_older_copy(life)
    life.kill(THIRD)


def one_beside_an_older_stop(life: Troubled) -> None:
    two_generations(life)
    restore(life)
    life.set_desired(DesiredState.STOPPED)


def dead_in_a_lost_folder(life: Troubled) -> None:
    two_generations(life)
    lose(life)
    life.yarn.end(SECOND, ApplicationState.FAILED)


def dead_without_a_checkpoint(life: Troubled) -> None:
    life.use_spec(checkpoints=())
    life.begin()
    lose(life)
    life.yarn.end(FIRST, ApplicationState.FAILED)


def dead_beside_an_older_copy(life: Troubled) -> None:
    two_generations(life)
    restore(life)
    life.yarn.end(SECOND, ApplicationState.FAILED)


def keep(*first: str, keeping: str) -> Act:
    def act(life: Troubled) -> None:
        life.kill(*first)
        life.adopt(keeping)

    return act


def keep_none(word: Act) -> Act:
    def act(life: Troubled) -> None:
        life.kill(*life.alive())
        word(life)

    return act


def start_and_keep(life: Troubled) -> None:
    life.start()
    life.adopt(SECOND)


def a_claim_that_lost_whom_it_adopted(life: Troubled) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    (name,) = (name for name in life.hdfs.files if name.endswith("gen-000001"))
    life.write(name, life.hdfs.read(name).replace('"adopted": null', '"adopted": 7'))
    life.yarn.apps[FIRST] = replace(life.yarn.end(FIRST, ApplicationState.FAILED), tags=frozenset())
    life.clock.ahead += timedelta(days=1)


def claimed_by_a_newer_program(life: Troubled) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    name = life.path("gen-000001")
    life.write(name, life.hdfs.read(name).replace('"version": 2', '"version": 3'))
    life.yarn.end(FIRST, ApplicationState.FAILED)


def upgrade(life: Troubled) -> None:
    life.patch.setattr(formats, "VERSION", 3)
    life.patch.setattr(checkpoint_lock, "VERSION", 3)


def ended_with(change: Act) -> Act:
    def act(life: Troubled) -> None:
        life.begin()
        for _ in range(3):
            life.engine.complete_epoch(SPEC)
        life.request_restart()
        life.reconcile()
        life.yarn.end(SECOND, ApplicationState.FAILED)
        change(life)

    return act


def checkpoint_gone(life: Troubled) -> None:
    life.patch.setattr(life, "copy", life.hdfs.read(EPOCHS), raising=False)
    life.remove(EPOCHS)


def checkpoint_older(life: Troubled) -> None:
    copy = life.hdfs.read(EPOCHS)
    life.patch.setattr(life, "copy", copy, raising=False)
    life.write(EPOCHS, f"[{copy.strip('[]').partition(',')[0]}]")


def put_it_back(life: Troubled) -> None:
    life.write(EPOCHS, life.copy)  # type: ignore[attr-defined]


def declare_another_checkpoint(life: Troubled) -> None:
    life.use_spec(checkpoints=("/data/orders/another",))


def outlived_by_a_container(life: Troubled) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    place = ContainerPlace("node1:45454", "node1:8042")
    life.patch.setattr(life.yarn, "driver_places", lambda application: frozenset({place}))
    node_says(life, NodeVerdict.LIVE)
    life.yarn.end(FIRST, ApplicationState.FAILED)


def node_says(life: Troubled, verdict: NodeVerdict) -> None:
    life.patch.setattr(Witnesses, "_ask", lambda witnesses, place, app: NodeReport(place.web, verdict, "container_1"))


def end_its_processes(life: Troubled) -> None:
    node_says(life, NodeVerdict.COMPLETE)


def restart_the_nodemanager(life: Troubled) -> None:
    node_says(life, NodeVerdict.RESTARTED)


def written_by_somebody(life: Troubled) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.yarn.end(FIRST, ApplicationState.FAILED)
    life.foreign_writer = True


def stop_that_job(life: Troubled) -> None:
    life.foreign_writer = False


def adopt_a_job(life: Troubled) -> None:
    life.adopt(life.yarn.start(frozenset()).id)


def of_another_stream(life: Troubled) -> None:
    other = replace(life.run, spec=replace(SPEC, name="other"))
    Reconciler(other, tell=lambda line: None).run()
    life.yarn.end(FIRST, ApplicationState.FAILED)


def stop_the_other_stream(life: Troubled) -> None:
    other = Life()
    other.run = replace(life.run, spec=replace(SPEC, name="other"))
    other.set_desired(DesiredState.STOPPED)
    assert other.reconcile().phase is Phase.STOPPED


def data_of_nobody(life: Troubled) -> None:
    life.engine.complete_epoch(SPEC)


def owned_by_a_newer_program(life: Troubled) -> None:
    life.begin()
    life.yarn.end(FIRST, ApplicationState.FAILED)
    name = f"{CHECKPOINT}/_kstream/owner-000001"
    life.write(name, life.hdfs.read(name).replace('"version": 1', '"version": 3'))


def unreadable(file: str) -> Act:
    def act(life: Troubled) -> None:
        life.begin()
        life.write(file if file.startswith("/") else life.path(file), "{")
        life.yarn.end(FIRST, ApplicationState.FAILED)

    return act


def remove(file: str, then: Act = lambda life: None) -> Act:
    def act(life: Troubled) -> None:
        life.remove(file if file.startswith("/") else life.path(file))
        then(life)

    return act


def declared_twice(life: Troubled) -> None:
    blue = replace(SPEC, on_change=OnChange.RESTART)
    green = replace(blue, arguments=("green",))
    for spec in (blue, green, blue):
        life.run = replace(life.run, spec=spec)
        life.begin()
    life.run = replace(life.run, spec=green)


def make_them_equal(life: Troubled) -> None:
    life.use_spec(arguments=())


def due_with(trouble: Act) -> Act:
    def act(life: Troubled) -> None:
        life.begin()
        for _ in range(2):
            life.engine.complete_epoch(SPEC)
        # Notes how far it came.
        life.reconcile()
        trouble(life)
        life.request_restart()

    return act


def drained(life: Troubled) -> None:
    life.yarn.scheduler = Queues((Queue("root.default", "DRAINING"),), complete=True)


def open_the_queue(life: Troubled) -> None:
    life.yarn.scheduler = Queues((Queue("root.default", "RUNNING"),), complete=True)


def without_its_jar(life: Troubled) -> None:
    life.engine.files = ("/jobs/gone.jar",)


def put_the_jar_there(life: Troubled) -> None:
    life.hdfs.write("/jobs/gone.jar", "")


def without_rights(life: Troubled) -> None:
    life.hdfs.refused = (f"rwx {CHECKPOINT}",)


def grant_the_rights(life: Troubled) -> None:
    life.hdfs.refused = ()


def without_a_client(life: Troubled) -> None:
    life.engine.obstacle = "this host has no client"


def install_the_client(life: Troubled) -> None:
    life.engine.obstacle = ""


def lost_its_checkpoint(life: Troubled) -> None:
    checkpoint_gone(life)


def stop_and_accept(life: Troubled) -> None:
    """Only a stream that has ended can be let start elsewhere: while it runs, it moves its checkpoint."""
    life.set_desired(DesiredState.STOPPED)
    assert life.reconcile().phase is Phase.STOPPED
    life.start()
    life.accept()


def wait_long_enough(life: Troubled) -> None:
    """Its horizon forces the restart: whatever preflight finds is better than a dead stream."""
    life.clock.ahead += timedelta(days=6, hours=23, minutes=30)


def another_principal(life: Troubled) -> None:
    life.hdfs.whoami = life.yarn.whoami = "billing"


def ended_and_declared_for_another_principal(life: Troubled) -> None:
    life.begin()
    life.engine.complete_epoch(SPEC)
    life.yarn.end(FIRST, ApplicationState.FAILED)
    another_principal(life)


def hand_the_folder_on(life: Troubled) -> None:
    """The command that the refusal names, by HDFS's superuser: of the folder alone. Both may write the checkpoint."""
    life.hdfs.owners[life.run.id.folder] = "billing"
    life.hdfs.modes[CHECKPOINT] = "777"


def due_for_another_principal(life: Troubled) -> None:
    due_with(lambda life: None)(life)
    another_principal(life)


def forced_for_another_principal(life: Troubled) -> None:
    """A horizon that is near leaves no time for preflight."""
    due_for_another_principal(life)
    wait_long_enough(life)


CHOWN = f"`hdfs dfs -chown billing /kstream/{Life().run.id}` (without -R)"
ADOPT_THIRD = f"to keep {THIRD}: {KILL} {SECOND}`; then {ADOPT} {THIRD}` takes it up again"
NOBODY = "nobody claimed generation 3 in this folder"

REFUSALS = (
    Way("two, keep one", two_in_a_lost_folder, (NOBODY, ADOPT_THIRD), keep(SECOND, keeping=THIRD), "_undecided"),
    Way(
        "two, keep none",
        two_in_a_lost_folder,
        (f"{KILL} {SECOND}`, {KILL} {THIRD}`; then {TAKE_OVER}",),
        keep_none(Troubled.take_over),
        "_undecided",
    ),
    Way(
        "two beside a copy, keep one",
        two_beside_an_older_copy,
        (ADOPT_THIRD,),
        keep(SECOND, keeping=THIRD),
        "_undecided",
    ),
    Way(
        "two beside a copy, keep none",
        two_beside_an_older_copy,
        (f"{KILL} {THIRD}`; then {ACCEPT}",),
        keep_none(Troubled.accept),
        "_undecided",
    ),
    Way(
        "two of one generation",
        two_of_one_generation,
        (f"to keep {SECOND}: {KILL} {THIRD}`",),
        keep(THIRD, keeping=SECOND),
        "_undecided",
    ),
    Way(
        "an old one in a lost folder",
        an_old_one_beside_a_lost_end,
        (f"to keep none: {KILL} {SECOND}`; then {TAKE_OVER}",),
        keep_none(Troubled.take_over),
        "_undecided",
    ),
    Way(
        "an old one beside a copy",
        an_old_one_beside_an_end_and_an_older_copy,
        (f"to keep none: {KILL} {SECOND}`; then {ACCEPT}",),
        keep_none(Troubled.accept),
        "_undecided",
    ),
    Way(
        "a stop of an older copy",
        one_beside_an_older_stop,
        (f"to keep {SECOND}: {START} and then {ADOPT} {SECOND}`",),
        start_and_keep,
        "_undecided",
    ),
    Way("dead without a checkpoint", dead_without_a_checkpoint, (ACCEPT,), Troubled.accept, "_dead"),
    Way("dead beside a copy", dead_beside_an_older_copy, (ACCEPT,), Troubled.accept, "_dead"),
    Way("adopted whom, none runs", a_claim_that_lost_whom_it_adopted, (ACCEPT,), Troubled.accept, "_dead"),
    Way(
        "adopted whom, one runs",
        a_claim_that_lost_whom_it_adopted,
        (f"{ADOPT} ID`", "`yarn application -list`"),
        adopt_a_job,
        "_dead",
    ),
    Way("a newer claim", claimed_by_a_newer_program, ("upgrade this program",), upgrade, "_hands_off"),
    Way("gone, restored", ended_with(checkpoint_gone), ("restore the checkpoint",), put_it_back, "_submit_once_dead"),
    Way("gone, accepted", ended_with(checkpoint_gone), (ACCEPT,), Troubled.accept, "_submit_once_dead"),
    Way(
        "gone, another",
        ended_with(checkpoint_gone),
        ("declare a new checkpoint",),
        declare_another_checkpoint,
        "_submit_once_dead",
    ),
    Way("older, restored", ended_with(checkpoint_older), ("is older than it was",), put_it_back, "_submit_once_dead"),
    Way("older, accepted", ended_with(checkpoint_older), (ACCEPT,), Troubled.accept, "_submit_once_dead"),
    Way(
        "a container lives on",
        outlived_by_a_container,
        ("End those processes on that node",),
        end_its_processes,
        "_still_running",
    ),
    Way(
        "a container is a ghost",
        outlived_by_a_container,
        ("restart its NodeManager",),
        restart_the_nodemanager,
        "_still_running",
    ),
    Way(
        "somebody writes, stopped",
        written_by_somebody,
        ("`yarn application -list`", "stop that job"),
        stop_that_job,
        "_silent",
    ),
    Way("somebody writes, adopted", written_by_somebody, (f"{ADOPT} ID`",), adopt_a_job, "_silent"),
)

CONFLICTS = (
    Way("dead in a lost folder", dead_in_a_lost_folder, (TAKE_OVER,), Troubled.take_over),
    Way("another owner, stopped", of_another_stream, ("`kstream streams stop other`",), stop_the_other_stream),
    Way("another owner, taken over", of_another_stream, (TAKE_OVER,), Troubled.take_over),
    Way("another owner, another", of_another_stream, ("declare another checkpoint",), declare_another_checkpoint),
    Way("data of nobody, taken over", data_of_nobody, (TAKE_OVER,), Troubled.take_over),
    Way("data of nobody, adopted", data_of_nobody, (f"{ADOPT} ID`",), adopt_a_job),
    Way("data of nobody, another", data_of_nobody, ("declare another checkpoint",), declare_another_checkpoint),
    Way("another principal", ended_and_declared_for_another_principal, (CHOWN,), hand_the_folder_on),
    Way("a newer owner", owned_by_a_newer_program, ("upgrade this one",), upgrade),
    Way(
        "no claim to read",
        unreadable("gen-000001"),
        ("`hdfs dfs -rm /kstream/",),
        remove("gen-000001", Troubled.take_over),
    ),
    Way(
        "no word to read",
        unreadable("desired-000001.json"),
        ("`hdfs dfs -rm /kstream/",),
        remove("desired-000001.json"),
    ),
    Way(
        "no acceptance to read", unreadable("accepted-000002"), ("`hdfs dfs -rm /kstream/",), remove("accepted-000002")
    ),
    Way(
        "no owner to read",
        unreadable(f"{CHECKPOINT}/_kstream/owner-000001"),
        ("`hdfs dfs -rm /data/",),
        remove(f"{CHECKPOINT}/_kstream/owner-000001"),
    ),
)

BLOCKED = (
    Way("queue drains", due_with(drained), ("queue root.default is DRAINING",), open_the_queue),
    Way("no jar", due_with(without_its_jar), ("/jobs/gone.jar does not exist",), put_the_jar_there),
    Way("no rights", due_with(without_rights), ("access=rwx",), grant_the_rights),
    Way("another principal", due_for_another_principal, (CHOWN, "write the checkpoints"), hand_the_folder_on),
    Way("another principal, forced", forced_for_another_principal, (CHOWN,), hand_the_folder_on),
    Way("no client", due_with(without_a_client), ("this host has no client",), install_the_client),
    Way("checkpoint gone", due_with(lost_its_checkpoint), ("restore the checkpoint",), put_it_back),
    Way("checkpoint gone for good", due_with(lost_its_checkpoint), (ACCEPT,), stop_and_accept),
    Way("declared twice, made equal", declared_twice, ("make them equal",), make_them_equal),
    Way("declared twice, restarted", declared_twice, ("`kstream streams restart orders`",), Life.request_restart),
    *(
        Way(f"{way}, horizon", due_with(trouble), (), wait_long_enough)
        for way, trouble in (("queue", drained), ("jar", without_its_jar), ("rights", without_rights))
    ),
)


def held(life: Troubled) -> None:
    life.begin()
    hold(life.run, "a new disk")
    life.yarn.end(FIRST, ApplicationState.FAILED)


def stopped(life: Troubled) -> None:
    life.begin()
    life.set_desired(DesiredState.STOPPED)


def killed_by_a_person(life: Troubled) -> None:
    life.begin()
    life.kill(FIRST)
    life.begin()


def failing(life: Troubled) -> None:
    """It ends of one error until its circuit breaker opens."""
    life.begin()
    for _ in range(40):
        for app in life.alive():
            life.yarn.end(app, ApplicationState.FAILED, "User class threw exception: java.lang.Error: 7")
        if life.begin().phase is Phase.BACKING_OFF and life.watch().breaker_open:
            return
        life.clock.ahead += timedelta(minutes=20)
    raise AssertionError("its circuit breaker never opened")


def frozen(life: Troubled) -> None:
    life.begin()
    life.hdfs.write(f"{CLUSTER.state_dir}/other/gen-000001", "")
    Brake(life.run.session.hdfs, CLUSTER.state_dir).freeze(timedelta(days=1), "a new NameNode")
    life.yarn.end(FIRST, ApplicationState.FAILED)


def unfreeze(life: Troubled) -> None:
    Brake(life.run.session.hdfs, CLUSTER.state_dir).lift("done")


PHASES = (
    Way("held", held, (START,), Troubled.start),
    Way("stopped", stopped, (START,), Troubled.start),
    Way("killed by a person", killed_by_a_person, (START,), Troubled.start),
    Way("breaker open", failing, (START, "circuit breaker is open"), Troubled.start),
    Way("frozen", frozen, ("`kstream streams unfreeze`",), unfreeze),
)


def named(way: Way) -> str:
    return way.name


def runs(life: Troubled, mode: Mode = Mode.WATCH) -> None:
    """The stream runs, alone, and its supervisor is content. It may first wait out the pause after an end."""
    for _ in range(4):
        report = Reconciler(life.run, tell=lambda line: None).run(mode)
        if report.phase is Phase.BACKING_OFF:
            life.clock.ahead += timedelta(minutes=30)
    assert (report.phase, report.owner_doubt) == (Phase.RUNNING, ""), report.why
    assert life.alive() == [report.application]


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that made a refusal."""
    seen: list[str] = []
    make = Refuse.__init__

    def noted(refusal: Refuse, why: str) -> None:
        seen.append(sys._getframe(1).f_code.co_name)
        make(refusal, why)

    monkeypatch.setattr(Refuse, "__init__", noted)
    return seen


@pytest.mark.parametrize("way", REFUSALS, ids=named)
def test_a_refusal_names_its_way_out_and_it_works(life: Troubled, refusals: list[str], way: Way) -> None:
    way.trouble(life)
    before = life.alive()
    with pytest.raises(KstreamError) as refused:
        runs(life, Mode.ENSURE)
    assert way.refused_by in refusals
    assert life.alive() == before, "nothing is done meanwhile"
    for words in way.says:
        assert words in str(refused.value)
    way.out(life)
    runs(life, Mode.ENSURE)


def test_no_refusal_is_left_out() -> None:
    made = set()
    for file in Path(airflow_kstream.policy.streams.__path__[0]).glob("*.py"):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef):
                calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
                made |= {function.name for call in calls if isinstance(call, ast.Name) and call.id == "Refuse"}
    assert made == {way.refused_by for way in REFUSALS}


@pytest.mark.parametrize("way", CONFLICTS, ids=named)
def test_what_belongs_to_somebody_else_or_cannot_be_read_has_a_way_out(life: Troubled, way: Way) -> None:
    way.trouble(life)
    with pytest.raises(KstreamError) as refused:
        runs(life, Mode.ENSURE)
    for words in way.says:
        assert words in str(refused.value)
    way.out(life)
    runs(life, Mode.ENSURE)


@pytest.mark.parametrize("way", BLOCKED, ids=named)
def test_a_blocked_restart_follows_once_its_cause_is_mended(life: Troubled, way: Way) -> None:
    way.trouble(life)
    before = life.alive()
    with pytest.raises(KstreamError, match="the current generation keeps running") as refused:
        runs(life)
    for words in way.says:
        assert words in str(refused.value)
    assert life.alive() == before
    way.out(life)
    runs(life)
    assert way.out is make_them_equal or life.alive() != before


@pytest.mark.parametrize("way", PHASES, ids=named)
def test_a_stream_that_is_left_as_it_is_says_which_word_starts_it(life: Troubled, way: Way) -> None:
    way.trouble(life)
    report = life.reconcile()
    for words in way.says:
        assert words in f"{report.why}; {report.freeze}"
    assert life.alive() == []
    way.out(life)
    runs(life, Mode.ENSURE)
