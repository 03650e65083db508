"""A person's brake on a cluster: while it holds, no supervisor changes anything, and everybody says so.

Servers are simulated, because the moments between a look, a word and a step are what is tested; that words lie as
files on a real HDFS is the business of tests/contract/hdfs/test_namenode_files.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.errors import SubmissionFailed
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.contract import ended_file, stop_marker
from airflow_kstream.model.streams.freeze import Freeze
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.plan import GiveUp, Kill, Phase, Settled, Step, Stop, Submit
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.submission import SubmitOutcome
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.checkpoint.ownership import own
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.engine import FakeEngine
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, session_of
from tests.simulated.yarn import START, TICKET_SPEC, WEEK, SimulatedYarn, watched

HOUR, FOUR_HOURS, WEEK_LONG = timedelta(hours=1), timedelta(hours=4), timedelta(days=7)


FIRST = "application_1_0001"


def brake(life: Life, user: str = "") -> FreezeStore:
    """Return the brake in the hands of the stream's user or of another one."""
    session = life.run.session
    if user:
        session = replace(session_of(life.hdfs, life.yarn), identity=Identity(f"{user}@EXAMPLE.COM"))
    return FreezeStore(session)


def freeze(life: Life, lasts: timedelta = FOUR_HOURS) -> Freeze:
    return brake(life).freeze(lasts, "a new NameNode")


def files_but_orders(life: Life) -> dict[str, str]:
    orders = f"{CLUSTER.state_dir}/orders."
    return {path: text for path, (text, _) in life.hdfs.files.items() if not path.startswith(orders)}


def running(yarn: SimulatedYarn) -> None:
    yarn.carry_out(Submit(1, "its first generation"))
    yarn.arrive()
    yarn.pass_time(60)


def due_to_stop(yarn: SimulatedYarn) -> None:
    running(yarn)
    yarn.desired = Desired(restart_up_to=1)


def unwanted(yarn: SimulatedYarn) -> None:
    running(yarn)
    yarn.desired = Desired(DesiredState.STOPPED)


def beside_another(yarn: SimulatedYarn) -> None:
    running(yarn)
    yarn.carry_out(Submit(2, "as if the first were dead"))
    yarn.arrive(at_once=False)


def never_arrived(yarn: SimulatedYarn) -> None:
    yarn.carry_out(Submit(1, "its first generation"))
    yarn.on_their_way.clear()


def past_its_horizon(yarn: SimulatedYarn) -> None:
    running(yarn)
    yarn.pass_time(6.99 * 86400)


@pytest.mark.parametrize(
    ("situation", "kind"),
    [
        (lambda yarn: None, Submit),
        (due_to_stop, Stop),
        (unwanted, Stop),
        (past_its_horizon, Stop),
        (beside_another, Kill),
        (never_arrived, GiveUp),
    ],
)
def test_whatever_would_change_the_world_waits_while_the_cluster_is_frozen(
    situation: Callable[[SimulatedYarn], None], kind: type[Step]
) -> None:
    yarn = SimulatedYarn()
    situation(yarn)

    def step() -> Step:
        seen = yarn.look()
        return next_step(TICKET_SPEC, seen, watched(seen), Mode.ENSURE)

    due = step()
    assert isinstance(due, kind)
    yarn.freeze = Freeze(1, yarn.now + HOUR, "ada", "a new NameNode")
    frozen = step()
    assert isinstance(frozen, Settled)
    assert frozen.phase is Phase.FROZEN
    assert due.why in frozen.why
    yarn.freeze = replace(yarn.freeze, until=yarn.now)
    assert step() == due


def test_a_requested_restart_waits_for_the_end_of_the_freeze(life: Life) -> None:
    life.begin()
    life.request_restart()
    word = freeze(life)
    before = files_but_orders(life)
    report = life.reconcile()
    assert (report.phase, report.job.application, report.done) == (Phase.FROZEN, FIRST, ())
    assert report.freeze == str(word)
    assert files_but_orders(life) == before
    assert not life.watch().calls_for_action
    life.clock.ahead += FOUR_HOURS
    assert life.watch().calls_for_action
    assert life.reconcile().generation == 2


def test_a_freeze_that_is_renewed_holds_on_and_one_that_is_lifted_does_not(life: Life) -> None:
    life.begin()
    life.request_restart()
    freeze(life, HOUR)
    freeze(life, FOUR_HOURS)
    life.clock.ahead += 2 * HOUR
    assert life.reconcile().phase is Phase.FROZEN
    brake(life).lift("done")
    # NameNodes tell whole seconds: another process may read the same moment as an earlier one.
    life.clock.ahead -= timedelta(seconds=1)
    assert life.reconcile().generation == 2


def test_a_dead_stream_is_not_started_while_frozen_and_its_task_goes_on_watching(life: Life) -> None:
    life.begin()
    freeze(life)
    life.yarn.end(FIRST, ApplicationState.KILLED)
    report = life.reconcile(Mode.ENSURE)
    assert (report.phase, report.job.succeeded, report.ended) == (Phase.FROZEN, True, False)
    assert len(life.yarn.apps) == 1
    brake(life).lift("done")
    assert life.reconcile(Mode.ENSURE).generation == 2


def test_a_freeze_deletes_nothing_of_what_ended_before_it(life: Life) -> None:
    life.begin()
    life.request_restart()
    assert life.reconcile().generation == 2
    life.yarn.end("application_1_0002", ApplicationState.FAILED)
    freeze(life)
    before = {*life.hdfs.files}
    life.reconcile(Mode.WATCH)
    assert [path.rpartition("/")[2] for path in {*life.hdfs.files} ^ before] == [ended_file(2)]


def test_a_stop_that_was_begun_before_is_neither_finished_nor_undone(life: Life) -> None:
    life.begin()
    life.run.folder.ask_to_stop(1, "a restart was requested")
    freeze(life)
    report = life.reconcile()
    assert (report.phase, life.yarn.apps[FIRST].alive) == (Phase.FROZEN, True)
    assert "its stop was begun before" in report.why
    assert stop_marker(1) in life.run.folder.names()
    # A driver that obeys the marker has ended by itself: nothing follows it before the freeze is over.
    life.yarn.end(FIRST)
    report = life.reconcile()
    assert (report.phase, len(life.yarn.apps)) == (Phase.FROZEN, 1)
    brake(life).lift("done")
    assert life.reconcile().generation == 2


def test_a_freeze_in_the_middle_of_a_stop_lets_no_kill_follow(life: Life) -> None:
    asked: list[bool] = []

    class FrozenMeanwhile(FakeEngine):
        def stop_gracefully(
            self, session: ClusterSession, spec: StreamSpec, step: Stop, may_go_on: Callable[[], bool]
        ) -> None:
            asked.append(may_go_on())
            freeze(life)
            asked.append(may_go_on())

    life.use(life.hdfs, FrozenMeanwhile(life.hdfs, life.yarn))
    life.begin()
    life.request_restart()
    told: list[str] = []
    report = Reconciler(life.run, tell=told.append).run(Mode.WATCH)
    assert (report.phase, life.yarn.apps[FIRST].alive, asked) == (Phase.FROZEN, True, [True, False])
    assert any(line.startswith("the stop of generation 1 is left as it is: frozen until") for line in told)


def test_a_freeze_while_a_submission_is_prepared_leaves_no_claim(life: Life) -> None:
    life.engine.at_preflight = lambda: freeze(life)
    assert life.begin().phase is Phase.FROZEN
    assert life.run.folder.names() == frozenset()


def test_a_freeze_while_a_stop_is_prepared_leaves_no_marker(life: Life) -> None:
    life.begin()
    life.request_restart()
    life.engine.at_preflight = lambda: freeze(life)
    assert life.reconcile().phase is Phase.FROZEN
    assert stop_marker(1) not in life.run.folder.names()


def test_a_submission_that_fails_while_frozen_loses_its_fence_and_kills_nothing(life: Life) -> None:
    """The claim was ours and brought nothing, so its fence protects nobody; a kill is a kill."""
    looks: list[str] = []

    def arrives_at_the_second_look(request: str, tag: str) -> None:
        if request == "applications":
            looks.append(tag)
            if len(looks) == 2:
                freeze(life)
                life.yarn.start(frozenset(life.run.id.tags(1)))

    def begin_to_look() -> None:
        life.yarn.at_request = arrives_at_the_second_look

    life.engine.ends, life.engine.at_submit = [SubmitOutcome(1, "it failed")], begin_to_look
    with pytest.raises(SubmissionFailed):
        life.begin()
    assert [app.alive for app in life.yarn.apps.values()] == [True]
    assert not any(name.startswith("fence") for name in life.run.folder.names())


def test_a_claim_that_is_given_up_is_looked_at_again_for_a_freeze(life: Life) -> None:
    claim = life.run.folder.make_claim(ClaimDraft(1, "nonce1", SPEC, WEEK, {}, "test"))
    observation, _ = Reconciler(life.run).plan()
    freeze(life)
    give_up = GiveUp(1, claim.fence, "no application")
    Reconciler(life.run)._carry_out(observation, give_up)
    assert claim.fence in life.run.folder.names()
    brake(life).lift("done")
    Reconciler(life.run)._carry_out(observation, give_up)
    assert claim.fence not in life.run.folder.names()


def test_a_freeze_between_a_look_and_its_kill_keeps_the_application(life: Life) -> None:
    life.begin()
    life.yarn.start(frozenset(life.run.id.tags(1)))
    observation, step = Reconciler(life.run).plan()
    assert isinstance(step, Kill)
    freeze(life)
    Reconciler(life.run)._carry_out(observation, step)
    assert [app.alive for app in life.yarn.apps.values()] == [True, True]
    brake(life).lift("done")
    Reconciler(life.run)._carry_out(observation, step)
    assert [app.alive for app in life.yarn.apps.values()] == [True, False]


def test_a_persons_explicit_word_goes_through_a_freeze(life: Life) -> None:
    life.begin()
    freeze(life)
    life.set_desired(DesiredState.STOPPED)
    assert life.reconcile().phase is Phase.FROZEN
    assert Reconciler(replace(life.run, despite_freeze=True), may_submit=False).run().phase is Phase.STOPPED
    assert not life.yarn.apps[FIRST].alive


def test_a_freeze_begins_and_ends_by_the_clock_of_the_namenode() -> None:
    word = Freeze(1, START + HOUR)
    assert [word.holds(START + wait) for wait in (timedelta(), timedelta(minutes=59), HOUR)] == [True, True, False]


def test_a_claim_of_our_own_is_not_submitted_while_frozen(life: Life) -> None:
    """A lost reply had hidden it from the supervisor that made it."""
    own(life.run, observe(life.run))
    claim = life.run.folder.make_claim(ClaimDraft(1, "nonce1", SPEC, WEEK, {}, "test"))
    reconciler = Reconciler(life.run, tell=lambda line: None)
    reconciler._submitter.unsubmitted[claim.nonce] = claim.generation
    freeze(life)
    reconciler._advance(Mode.ENSURE)
    assert life.yarn.apps == {}
    brake(life).lift("done")
    reconciler._advance(Mode.ENSURE)
    assert len(life.yarn.apps) == 1
