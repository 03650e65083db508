"""No state without a way out: each refusal names commands, and a person who carries them out gets a running stream.

A case is a row: what went wrong, step by step; the words of the refusal; and what the person does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState, NodeVerdict
from airflow_kstream.model.clusters.authors import order_name
from airflow_kstream.model.clusters.queue import Queue, Queues
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase, Refuse
from airflow_kstream.model.streams.stream import OnChange, StreamSpec
from airflow_kstream.policy.streams.ends.death import death
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.checkpoint import adopt as adopting
from airflow_kstream.supervise.streams.checkpoint import take_over as taking_over
from airflow_kstream.supervise.streams.checkpoint.adopt import accept_checkpoints
from airflow_kstream.supervise.streams.folder.engine import Newest
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.orders import desired as orders
from tests.simulated.engine import FakeEngine
from tests.simulated.life import SPEC, Life
from tests.simulated.restarts import dead
from tests.simulated.servers import CLUSTER, session_of
from tests.simulated.yarn import STREAM, TICKET_SPEC, containers, watched

FIRST, SECOND, THIRD = (f"application_1_000{number}" for number in (1, 2, 3))
(CHECKPOINT,) = SPEC.checkpoints
FOLDER, EPOCHS, BACKUP = Life().run.id.folder, f"{CHECKPOINT}/epochs.json", "/backup/epochs.json"
OWNER, CLAIM = f"{CHECKPOINT}/_kstream/owner-000001", f"{FOLDER}/gen-000001"
ORDER = f"{CLUSTER.state_dir}/orders.streamer/{order_name(str(STREAM), 1)}"
ADOPT = "`kstream streams adopt SPEC.yaml --application-id"
ACCEPT, TAKE_OVER = "`kstream streams accept SPEC.yaml`", "`kstream streams take-over SPEC.yaml`"
KILL, START = "`yarn application -kill", "`kstream streams start orders`"
CHOWN = f"`hdfs dfs -chown billing {FOLDER}` (without -R)"
ADOPT_THIRD = f"to keep {THIRD}: {KILL} {SECOND}`; then {ADOPT} {THIRD}` takes it up again"

Act = Callable[[Life], object]


@dataclass
class Contested(FakeEngine):
    """An engine whose checkpoint somebody else writes, too, as long as it is `contested`."""

    contested: bool = False

    def progress(self, session: ClusterSession, spec: StreamSpec, newest: Newest) -> tuple[Checkpoint, ...]:
        if self.contested:
            self.complete_epoch(spec)
        return super().progress(session, spec, newest)


# ---- What happens to a stream, and what a person does --------------------------------------------------------------


def contest(yes: bool) -> Act:
    return lambda life: setattr(life.engine, "contested", yes)


def begin(life: Life) -> None:
    life.begin()


def commit(life: Life) -> None:
    life.engine.complete_epoch(SPEC)


def restart(life: Life) -> None:
    life.request_restart()
    life.reconcile()


def lose_the_folder(life: Life) -> None:
    life.hdfs.delete(FOLDER, recursive=True)


def restore_an_older_folder(life: Life) -> None:
    """Put a copy in its place that knows nothing of generation 2."""
    for name in life.hdfs.names(FOLDER):
        if "-000002" in name:
            life.hdfs.delete(f"{FOLDER}/{name}")


def appear(generation: int) -> Act:
    """Start an application of this generation that nobody claimed."""
    return lambda life: life.yarn.start(frozenset(life.run.id.tags(generation)))


def fail(application: str) -> Act:
    return lambda life: life.yarn.end(application, ApplicationState.FAILED)


def kill(*applications: str) -> Act:
    def act(life: Life) -> None:
        for name in applications:
            life.yarn.end(name, ApplicationState.KILLED, f"Application {name} was killed by user ada at 10.0.0.1")

    return act


def adopt(application: str) -> Act:
    return lambda life: adopting.adopt(life.run, application)


def adopt_a_job(life: Life) -> None:
    adopt(life.yarn.start(frozenset()).id)(life)


def accept(life: Life) -> None:
    accept_checkpoints(life.run, "looked at")


def take_over(life: Life) -> None:
    taking_over.take_over(life.run, "looked at", tell=lambda line: None)


def want(state: DesiredState) -> Act:
    return lambda life: life.set_desired(state)


def stop(life: Life) -> None:
    life.set_desired(DesiredState.STOPPED)
    assert life.reconcile().phase is Phase.STOPPED


def wait(time: timedelta) -> Act:
    def act(life: Life) -> None:
        life.clock.ahead += time

    return act


def declare(**changed: object) -> Act:
    def act(life: Life) -> None:
        life.run = replace(life.run, spec=replace(life.run.spec, **changed))  # type: ignore[arg-type]

    return act


def write(file: str, old: str = "", new: str = "{") -> Act:
    """Replace this part of a file, or all of it."""

    def act(life: Life) -> None:
        life.hdfs.write(file, life.hdfs.read(file).replace(old, new) if old else new, overwrite=True)

    return act


def remove(file: str) -> Act:
    return lambda life: life.hdfs.delete(file)


def copy(source: str, target: str) -> Act:
    return lambda life: life.hdfs.write(target, life.hdfs.read(source), overwrite=True)


def keep_its_first_batch(life: Life) -> None:
    life.hdfs.write(EPOCHS, f"[{life.hdfs.read(EPOCHS).strip('[]').partition(',')[0]}]", overwrite=True)


def queue(state: str) -> Act:
    return lambda life: setattr(life.yarn, "scheduler", Queues((Queue("root.default", state),), complete=True))


def need_a_jar(life: Life) -> None:
    life.engine.files = ("/jobs/gone.jar",)


def refuse(*what: str) -> Act:
    return lambda life: setattr(life.hdfs, "refused", what)


def lack(obstacle: str) -> Act:
    return lambda life: setattr(life.engine, "obstacle", obstacle)


def become_another_user(life: Life) -> None:
    """Declare another principal: a new task logs in as it."""
    life.hdfs.whoami = life.yarn.whoami = "billing"
    life.run = replace(life.run, session=session_of(life.hdfs, life.yarn))


def hand_the_folder_on(life: Life) -> None:
    """Carry out the command that the refusal names, as HDFS's superuser. Both may write the checkpoint."""
    life.hdfs.owners[FOLDER] = "billing"
    life.hdfs.modes[CHECKPOINT] = "777"


def as_another_stream(*acts: Act) -> Act:
    """Let this happen to stream "other" of the same servers and checkpoint."""

    def act(life: Life) -> None:
        ours = life.run
        life.run = replace(ours, spec=replace(SPEC, name="other"))
        do(life, acts)
        life.run = ours

    return act


def freeze(life: Life) -> None:
    FreezeStore(life.run.session).freeze(timedelta(days=1), "a new NameNode")


def unfreeze(life: Life) -> None:
    FreezeStore(life.run.session).lift("done")


def hold(life: Life) -> None:
    orders.hold(life.run, "a new disk")


def fail_until_its_breaker_opens(life: Life) -> None:
    for _ in range(40):
        if (phase := life.begin().phase) is Phase.BACKING_OFF and life.watch().breaker_open:
            return
        if phase is Phase.RUNNING:
            life.yarn.end(alive(life)[0], ApplicationState.FAILED, "User class threw exception: java.lang.Error: 7")
        life.clock.ahead += timedelta(minutes=20)
    raise AssertionError("its circuit breaker never opened")


def do(life: Life, acts: Sequence[Act]) -> None:
    for act in acts:
        act(life)


# ---- The rows ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A way out of a trouble."""

    name: str
    trouble: tuple[Act, ...]
    says: tuple[str, ...]
    out: tuple[Act, ...]


TWO = (begin, commit, restart, commit)
LOST, OLDER = (*TWO, lose_the_folder), (*TWO, restore_an_older_folder)
DEAD = (begin, commit, fail(FIRST))
# Its checkpoint came to its third batch before the restart.
SECOND_DEAD = (begin, commit, commit, commit, restart, fail(SECOND), copy(EPOCHS, BACKUP))
PUT_BACK = (copy(BACKUP, EPOCHS),)
ELSEWHERE = (declare(checkpoints=("/data/orders/another",)),)
ANOTHER = (as_another_stream(begin), fail(FIRST))
MISSES_ITS_FIRST = write(CLAIM, '"adopted": null', '"adopted": 7')


def hide(life: Life) -> None:
    """Take its tags from the first application: only the claim could tell whose it is."""
    life.yarn.apps[FIRST] = replace(life.yarn.apps[FIRST], tags=frozenset())


DOUBTFUL = (*DEAD, MISSES_ITS_FIRST, hide, wait(timedelta(days=1)))
STARTED = want(DesiredState.RUNNING)

REFUSED = (
    Way(
        "two, one stays", (*LOST, appear(3)), ("nobody claimed generation 3", ADOPT_THIRD), (kill(SECOND), adopt(THIRD))
    ),
    Way(
        "two, none stays",
        (*LOST, appear(3)),
        (f"{KILL} {SECOND}`, {KILL} {THIRD}`; then {TAKE_OVER}",),
        (kill(SECOND, THIRD), take_over),
    ),
    Way("two beside a copy, one stays", (*OLDER, appear(3)), (ADOPT_THIRD,), (kill(SECOND), adopt(THIRD))),
    Way(
        "two beside a copy, none stays",
        (*OLDER, appear(3)),
        (f"{KILL} {THIRD}`; then {ACCEPT}",),
        (kill(SECOND, THIRD), accept),
    ),
    Way(
        "two of one generation",
        (*OLDER, appear(2)),
        (f"to keep {SECOND}: {KILL} {THIRD}`",),
        (kill(THIRD), adopt(SECOND)),
    ),
    Way(
        "an old one in a lost folder",
        (*LOST, appear(3), kill(THIRD)),
        (f"to keep none: {KILL} {SECOND}`; then {TAKE_OVER}",),
        (kill(SECOND), take_over),
    ),
    Way(
        "an old one beside a copy",
        (*OLDER, appear(3), kill(THIRD)),
        (f"to keep none: {KILL} {SECOND}`; then {ACCEPT}",),
        (kill(SECOND), accept),
    ),
    Way(
        "a stop of an older copy",
        (*OLDER, want(DesiredState.STOPPED)),
        (f"to keep {SECOND}: {START} and then {ADOPT} {SECOND}`",),
        (STARTED, adopt(SECOND)),
    ),
    Way(
        "dead without a checkpoint",
        (declare(checkpoints=()), begin, lose_the_folder, fail(FIRST)),
        (ACCEPT,),
        (accept,),
    ),
    Way("dead in a lost folder", (*LOST, fail(SECOND)), (TAKE_OVER,), (take_over,)),
    Way("dead beside a copy", (*OLDER, fail(SECOND)), (ACCEPT,), (accept,)),
    Way("adopted nobody knows whom, none runs", DOUBTFUL, (ACCEPT,), (accept,)),
    Way("adopted nobody knows whom", DOUBTFUL, (f"{ADOPT} ID`", "`yarn application -list`"), (adopt_a_job,)),
    Way("gone, restored", (*SECOND_DEAD, remove(EPOCHS)), ("restore the checkpoint",), PUT_BACK),
    Way("gone, accepted", (*SECOND_DEAD, remove(EPOCHS)), (ACCEPT,), (accept,)),
    Way("gone, another", (*SECOND_DEAD, remove(EPOCHS)), ("declare a new checkpoint",), ELSEWHERE),
    Way("older, restored", (*SECOND_DEAD, keep_its_first_batch), ("is older than it was",), PUT_BACK),
    Way("older, accepted", (*SECOND_DEAD, keep_its_first_batch), (ACCEPT,), (accept,)),
    Way(
        "somebody writes, stopped",
        (*DEAD, contest(True)),
        ("`yarn application -list`", "stop that job"),
        (contest(False),),
    ),
    Way("somebody writes, adopted", (*DEAD, contest(True)), (f"{ADOPT} ID`",), (adopt_a_job,)),
    Way("another owner, stopped", ANOTHER, ("`kstream streams stop other`",), (as_another_stream(stop),)),
    Way("another owner, taken over", ANOTHER, (TAKE_OVER,), (take_over,)),
    Way("another owner, another", ANOTHER, ("declare another checkpoint",), ELSEWHERE),
    Way("data of nobody, taken over", (commit,), (TAKE_OVER,), (take_over,)),
    Way("data of nobody, adopted", (commit,), (f"{ADOPT} ID`",), (adopt_a_job,)),
    Way("data of nobody, another", (commit,), ("declare another checkpoint",), ELSEWHERE),
    Way("another principal", (*DEAD, become_another_user), (CHOWN,), (hand_the_folder_on,)),
    Way("no claim to read", (*DEAD, write(CLAIM)), (f"`hdfs dfs -rm -r {CLAIM}",), (remove(CLAIM), take_over)),
    *(
        Way(
            f"no {file.rpartition('/')[2]} to read",
            (*DEAD, write(file)),
            (f"`hdfs dfs -rm -r {file}",),
            (remove(file),),
        )
        for file in (ORDER, f"{FOLDER}/accepted-000002", OWNER)
    ),
)

DUE = (begin, commit, commit, begin)
DUEL = tuple(
    act
    for arguments in ((), ("green",), ())
    for act in (declare(on_change=OnChange.RESTART, arguments=arguments), begin)
)
NEAR = wait(timedelta(days=6, hours=23, minutes=30))


def ask_for_a_restart(life: Life) -> None:
    life.request_restart()


def blocked(*trouble: Act) -> tuple[Act, ...]:
    """Return the steps to a restart that is asked for and cannot be: the stream notes how far it came before."""
    return (*DUE, *trouble, ask_for_a_restart)


BLOCKED = (
    Way("a queue drains", blocked(queue("DRAINING")), ("queue root.default is DRAINING",), (queue("RUNNING"),)),
    Way(
        "no jar",
        blocked(need_a_jar),
        ("/jobs/gone.jar does not exist",),
        (lambda life: life.hdfs.write("/jobs/gone.jar", ""),),
    ),
    Way("no rights", blocked(refuse(f"rwx {CHECKPOINT}")), ("access=rwx",), (refuse(),)),
    Way("no client", blocked(lack("this host has no client")), ("this host has no client",), (lack(""),)),
    Way(
        "another principal",
        (*blocked(), become_another_user),
        (CHOWN, "write the checkpoints"),
        (hand_the_folder_on,),
    ),
    Way("another principal, forced", (*blocked(), become_another_user, NEAR), (CHOWN,), (hand_the_folder_on,)),
    Way("gone", blocked(copy(EPOCHS, BACKUP), remove(EPOCHS)), ("restore the checkpoint",), PUT_BACK),
    # Only a stream that has ended may start elsewhere: one that runs moves its checkpoint.
    Way("gone for good", blocked(remove(EPOCHS)), (ACCEPT,), (stop, STARTED, accept)),
    Way(
        "declared twice, restarted",
        (*DUEL, declare(arguments=("green",))),
        ("`kstream streams restart orders`",),
        (ask_for_a_restart,),
    ),
    # Its horizon forces the restart: nothing that preflight finds is worse than a dead stream.
    Way("a queue drains, horizon", blocked(queue("DRAINING")), (), (NEAR,)),
    Way("no jar, horizon", blocked(need_a_jar), (), (NEAR,)),
    Way("no rights, horizon", blocked(refuse(f"rwx {CHECKPOINT}")), (), (NEAR,)),
)

LEFT_ALONE = (
    Way("held", (begin, hold, fail(FIRST)), (START,), (STARTED,)),
    Way("stopped", (begin, want(DesiredState.STOPPED)), (START,), (STARTED,)),
    Way("killed by a person", (begin, kill(FIRST), begin), (START,), (STARTED,)),
    Way("its breaker is open", (fail_until_its_breaker_opens,), (START, "circuit breaker is open"), (STARTED,)),
    Way("frozen", (begin, freeze, fail(FIRST)), ("`kstream streams unfreeze`",), (unfreeze,)),
)


@pytest.fixture
def life(life: Life) -> Life:
    life.use(life.hdfs, Contested(life.hdfs, life.yarn))
    return life


def alive(life: Life) -> list[str]:
    return [app.id for app in life.yarn.apps.values() if app.alive]


def runs(life: Life, mode: Mode) -> None:
    """Assert that the stream runs, alone, and that its supervisor is content. It may first wait out a pause."""
    for _ in range(4):
        report = life.reconcile(mode)
        if report.phase is Phase.BACKING_OFF:
            life.clock.ahead += timedelta(minutes=30)
    assert (report.phase, report.declaration.owner_doubt) == (Phase.RUNNING, ""), report.why
    assert alive(life) == [report.job.application]


def named(ways: tuple[Way, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("way", ways, ids=[way.name for way in ways])


@named(REFUSED)
def test_a_refusal_names_its_way_out_and_it_works(life: Life, way: Way) -> None:
    do(life, way.trouble)
    before = alive(life)
    with pytest.raises(KstreamError) as refused:
        runs(life, Mode.ENSURE)
    assert [words for words in way.says if words not in str(refused.value)] == []
    assert alive(life) == before, "nothing is done meanwhile"
    do(life, way.out)
    runs(life, Mode.ENSURE)


@named(BLOCKED)
def test_a_blocked_restart_follows_once_its_cause_is_mended(life: Life, way: Way) -> None:
    do(life, way.trouble)
    before = alive(life)
    with pytest.raises(KstreamError, match="the current generation keeps running") as refused:
        runs(life, Mode.WATCH)
    assert [words for words in way.says if words not in str(refused.value)] == []
    assert alive(life) == before
    do(life, way.out)
    runs(life, Mode.WATCH)
    assert alive(life) != before


def test_two_declarations_that_are_made_equal_leave_the_stream_as_it_runs(life: Life) -> None:
    do(life, (*DUEL, declare(arguments=("green",))))
    with pytest.raises(KstreamError, match="make them equal"):
        runs(life, Mode.WATCH)
    before = alive(life)
    declare(arguments=())(life)
    runs(life, Mode.WATCH)
    assert alive(life) == before


@named(LEFT_ALONE)
def test_a_stream_that_is_left_as_it_is_says_which_word_starts_it(life: Life, way: Way) -> None:
    do(life, way.trouble)
    report = life.reconcile()
    assert [words for words in way.says if words not in f"{report.why}; {report.freeze}"] == []
    assert alive(life) == []
    do(life, way.out)
    runs(life, Mode.ENSURE)


@pytest.mark.parametrize(
    "trouble",
    [(*DEAD, write(CLAIM, '"version": 3', '"version": 5')), (*DEAD, write(OWNER, '"version": 1', '"version": 3'))],
)
def test_what_a_newer_program_wrote_asks_for_an_upgrade(life: Life, trouble: tuple[Act, ...]) -> None:
    do(life, trouble)
    with pytest.raises(KstreamError, match=r"upgrade this (one|program)"):
        runs(life, Mode.ENSURE)


def test_a_container_that_outlives_its_application_has_two_ways_out() -> None:
    yarn = dead(lived=timedelta(hours=1))
    seen = yarn.look()
    verdicts = {
        verdict: death(TICKET_SPEC, outlived, watched(outlived))
        for verdict in (NodeVerdict.LIVE, NodeVerdict.COMPLETE, NodeVerdict.RESTARTED)
        for outlived in [replace(seen, yarn=replace(seen.yarn, containers=containers(verdict)))]
    }
    refused = verdicts[NodeVerdict.LIVE]
    assert isinstance(refused, Refuse)
    assert "End those processes on that node" in refused.why
    assert "restart its NodeManager" in refused.why
    assert not any(isinstance(verdicts[verdict], Refuse) for verdict in (NodeVerdict.COMPLETE, NodeVerdict.RESTARTED))


def test_a_folder_of_an_earlier_format_is_left_as_it_is_and_says_what_takes_it_over(life: Life) -> None:
    do(life, (begin, commit, write(CLAIM, '"version": 3', '"version": 2')))
    files = dict(life.hdfs.files)
    assert life.begin().phase is Phase.RUNNING
    assert alive(life) == [FIRST]
    fail(FIRST)(life)
    wait(timedelta(hours=1))(life)
    with pytest.raises(KstreamError, match=r"earlier format \(version 2\).*`kstream streams adopt`") as refused:
        life.begin()
    assert "upgrade" not in str(refused.value)
    assert life.hdfs.files == files
