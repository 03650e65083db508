"""A person's brake on a cluster: while it holds, no supervisor changes anything, and everybody says so.

Servers are simulated, because the moments between a look, a word and a step are what is tested; that words lie as
files on a real HDFS is the business of tests/contract/hdfs/test_namenode_files.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.authors import ALL_STREAMS
from airflow_kstream.model.errors import Conflict, Denied, KstreamError, NotFound, SubmissionFailed, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.contract import ended_file, stop_marker
from airflow_kstream.model.streams.freeze import Freeze
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.plan import GiveUp, Kill, Phase, Refuse, Settled, Step, Stop, Submit
from airflow_kstream.model.streams.stream import FlinkStreamSpec, StreamSpec, TicketCredentials
from airflow_kstream.model.streams.submission import SubmitOutcome
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.checkpoint.ownership import own
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.engine import FakeEngine
from tests.simulated.folders import order_path
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER, SimHdfs, session_of
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


SITUATIONS = pytest.mark.parametrize(
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


@SITUATIONS
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


@SITUATIONS
def test_nothing_acts_on_a_stream_that_its_engine_only_lets_be_watched(
    situation: Callable[[SimulatedYarn], None], kind: type[Step]
) -> None:
    yarn = SimulatedYarn()
    situation(yarn)
    watched_only = FlinkStreamSpec("orders", TicketCredentials(), "/jobs/orders.jar", TICKET_SPEC.checkpoints)
    seen = yarn.look()
    due = next_step(TICKET_SPEC, seen, watched(seen), Mode.ENSURE)
    assert isinstance(due, kind)
    left = next_step(watched_only, seen, watched(seen), Mode.ENSURE)
    assert isinstance(left, Settled if seen.any_alive else Refuse)
    assert due.why in left.why
    assert watched_only.watch_only in left.why


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


UNREAD = {
    "no JSON": "it is not JSON",
    '{"version": 99, "until": "2000-01-01T00:00:00+00:00"}': "is of version 99",
    '{"version": 3, "until": "tomorrow"}': "does not tell until when it holds",
}


@pytest.mark.parametrize("text", UNREAD)
def test_a_word_that_cannot_be_read_is_a_freeze_until_somebody_lifts_it(life: Life, text: str) -> None:
    life.begin()
    life.request_restart()
    life.hdfs.write(order_path(ALL_STREAMS, 3), text)
    report = life.reconcile()
    assert report.phase is Phase.FROZEN
    assert UNREAD[text] in report.freeze
    assert brake(life).lift("it was nonsense").number == 4
    assert life.reconcile().generation == 2


def may_not_be_read(life: Life, place: str) -> None:
    def refused(request: str, path: str) -> None:
        if request == "read" and place in path:
            raise Denied("Permission denied: user=streamer, access=READ", tried=f"read {path}")

    life.hdfs.at_request = refused


def test_a_word_that_may_not_be_read_is_a_freeze_and_no_longer_than_another(life: Life) -> None:
    """A supervisor laid it by hand, with a umask that hides it."""
    life.begin()
    path = order_path(ALL_STREAMS, 3)
    life.hdfs.write(path, "hidden")
    may_not_be_read(life, path)
    life.request_restart()
    report = life.reconcile()
    assert report.phase is Phase.FROZEN
    assert f"{path} of streamer can't be understood: Permission denied" in report.freeze
    life.clock.ahead += timedelta(days=7, minutes=1)
    assert life.reconcile().generation == 2


@pytest.mark.parametrize("text", [*UNREAD, '{"version": 3, "until": "9999-12-31T00:00:00+00:00"}'])
def test_no_word_holds_for_longer_than_seven_days_from_its_own_time(life: Life, text: str) -> None:
    life.begin()
    life.hdfs.write(order_path(ALL_STREAMS, 3), text)
    given = life.hdfs.now()
    life.clock.ahead += timedelta(days=6, hours=23)
    life.request_restart()
    assert life.reconcile().phase is Phase.FROZEN, "and looking renews nothing"
    assert abs(brake(life).newest().until - given - WEEK_LONG) < timedelta(minutes=1)
    life.clock.ahead += timedelta(hours=2)
    assert life.reconcile().generation == 2


@pytest.mark.parametrize("text", [*UNREAD, '{"version": 3, "until": "9999-12-31T00:00:00+00:00"}'])
def test_a_word_whose_time_lies_ahead_counts_from_when_it_was_laid_there(life: Life, text: str) -> None:
    """Anybody can set the time of a file of his; the NameNode sets that of its folder. Looking renews nothing, in
    whatever process."""
    path = order_path(ALL_STREAMS, 3)
    life.hdfs.files[path] = (text, life.hdfs.now() + timedelta(days=300))
    laid = life.hdfs.now()

    def newest() -> Freeze:
        listing = life.run.session.state.look()
        name = path.split("/")[2]
        entries = {name: replace(listing.entries[name], modified=laid)}
        return brake(life).newest(replace(listing, entries=entries))

    for days in (0, 6):
        life.clock.ahead = timedelta(days=days)
        assert newest().holds(life.hdfs.now())
        assert abs(newest().until - laid - WEEK_LONG) < timedelta(minutes=1)
    life.clock.ahead = timedelta(days=7, minutes=1)
    assert not newest().holds(life.hdfs.now())


def test_where_even_the_folders_time_lies_ahead_a_word_counts_from_the_first_look(life: Life) -> None:
    """The NameNode's clock was wrong when it was laid there."""
    life.hdfs.files[order_path(ALL_STREAMS, 3)] = ("no JSON", life.hdfs.now() + timedelta(days=300))
    kept, seen = brake(life), life.hdfs.now()
    assert abs(kept.newest().until - seen - WEEK_LONG) < timedelta(minutes=1)
    life.clock.ahead += timedelta(days=7, minutes=1)
    assert not kept.newest().holds(life.hdfs.now())


class TestWhoMaySpeak:
    @pytest.mark.parametrize("user", ["hdfs", "ann"])
    def test_every_supervisor_freezes_and_lifts_what_another_one_froze(self, life: Life, user: str) -> None:
        life.hdfs.write(f"{CLUSTER.state_dir}/supervisors", "ann # of the night shift\n")
        life.begin()
        life.request_restart()
        with life.hdfs.as_user(user):
            brake(life, user).freeze(HOUR, "a new NameNode")
        report = life.reconcile()
        assert report.phase is Phase.FROZEN
        assert f"(HDFS user {user})" in report.freeze
        assert brake(life).lift("done").number == 2
        assert life.reconcile().generation == 2
        freeze(life)
        with life.hdfs.as_user(user):
            assert brake(life, user).lift("done").number == 4

    @pytest.mark.parametrize("word", ["freeze", "lift"])
    def test_anybody_else_is_refused_with_the_line_to_add(self, life: Life, word: str) -> None:
        life.begin()
        files = {*life.hdfs.files}
        theirs = brake(life, "ann")
        say = {"freeze": lambda: theirs.freeze(HOUR, "why not"), "lift": lambda: theirs.lift("why not")}
        with life.hdfs.as_user("ann"), pytest.raises(Denied) as refused:
            say[word]()
        assert "the streams of /kstream obey hdfs, streamer, and ann is none of them" in refused.value.message
        assert "name ann in a line of /kstream/supervisors" in refused.value.message
        assert {*life.hdfs.files} == files

    @pytest.mark.parametrize("text", [*UNREAD, '{"version": 3, "until": "9999-12-31T00:00:00+00:00"}'])
    def test_the_word_of_a_stranger_is_as_if_it_were_not_there(self, life: Life, text: str) -> None:
        life.begin()
        life.request_restart()
        with life.hdfs.as_user("mallory"):
            life.hdfs.make_folder(f"{CLUSTER.state_dir}/orders.mallory", "755")
            life.hdfs.write(order_path(ALL_STREAMS, 9, "mallory"), text)
        report = life.reconcile()
        assert (report.freeze, report.generation) == ("", 2)
        assert freeze(life).number == 1
        assert brake(life).lift("done").number == 2

    def test_a_stranger_who_takes_the_name_of_our_folder_keeps_nobody_from_freezing(self, life: Life) -> None:
        with life.hdfs.as_user("mallory"):
            life.hdfs.make_folder(f"{CLUSTER.state_dir}/orders.streamer", "755")
            life.hdfs.write(order_path(ALL_STREAMS, 9), "no JSON")
        assert freeze(life).number == 1
        assert life.begin().phase is Phase.FROZEN

    @pytest.mark.parametrize("name", ["freeze/freeze-000001.json", "freeze.json"])
    def test_a_freeze_of_an_earlier_format_is_not_read(self, life: Life, name: str) -> None:
        life.hdfs.write(f"{CLUSTER.state_dir}/{name}", '{"version": 2, "until": "9999-12-31T00:00:00+00:00"}')
        assert life.begin().phase is Phase.RUNNING


def test_a_supervisor_that_cannot_read_the_freeze_does_nothing(life: Life) -> None:
    @dataclass
    class HidesTheBrake(SimHdfs):
        def list(self, path: str) -> tuple[FileStatus, ...]:
            if "/orders." in path:
                raise Unavailable("no NameNode answers")
            return super().list(path)

    life.begin()
    life.request_restart()
    life.use(HidesTheBrake(life.clock, life.hdfs.files))
    with pytest.raises(Unavailable, match="no NameNode answers"):
        Reconciler(life.run, tell=lambda line: None, patient=False).run(Mode.WATCH)
    assert life.yarn.apps[FIRST].alive
    assert life.watch().step is None


class TestAHorizonThatFallsIntoTheFreeze:
    @pytest.fixture
    def due(self, life: Life) -> Life:
        """A stream whose restart is planned 5 days and 6 hours after its claim; its credentials end after 7 days."""
        life.begin()
        return life

    def test_its_task_says_that_its_restart_waits(self, due: Life) -> None:
        due.clock.ahead += timedelta(days=5, hours=1)
        freeze(due, FOUR_HOURS)
        assert due.watch().people.freeze_warning == ""
        freeze(due, timedelta(hours=6))
        assert due.watch().people.freeze_warning.startswith("its restart is due in 5h")
        assert "its restart is due in 5h" in due.reconcile().freeze

    def test_its_task_says_that_it_will_die(self, due: Life) -> None:
        due.clock.ahead += timedelta(days=6, hours=22)
        freeze(due, FOUR_HOURS)
        verdict = due.watch()
        assert verdict.people.freeze_warning.startswith("its credentials end in 2h")
        assert "lift the freeze before, or it dies" in verdict.people.freeze_warning
        assert "lift the freeze before, or it dies" in due.reconcile().freeze

    @pytest.mark.parametrize("state", [DesiredState.HELD, DesiredState.STOPPED])
    def test_a_stream_that_nobody_wants_to_run_is_no_warning(self, due: Life, state: DesiredState) -> None:
        due.set_desired(state)
        freeze(due, timedelta(days=7))
        assert due.watch().people.freeze_warning == ""


@dataclass
class Interrupted(SimHdfs):
    """Somebody else acts between a writer's look and its rename, or the reply to the rename is lost."""

    meanwhile: list[Callable[[], object]] = field(default_factory=list)
    reply: type[KstreamError] | None = None

    def rename_onto_nothing(self, source: str, target: str) -> None:
        if self.meanwhile:
            self.meanwhile.pop()()
        super().rename_onto_nothing(source, target)
        if self.reply:
            raise self.reply("of the repeated request")


def test_of_two_persons_at_once_both_are_heard_and_the_slower_one_counts(life: Life) -> None:
    other = brake(life)
    life.use(Interrupted(life.clock, life.hdfs.files, meanwhile=[lambda: other.freeze(HOUR, "the slow disk")]))
    assert freeze(life).number == 2
    assert brake(life).newest().reason == "a new NameNode"


@pytest.mark.parametrize("reply", [Conflict, NotFound, Unavailable])
def test_a_word_that_stands_counts_whatever_the_server_replied(life: Life, reply: type[KstreamError]) -> None:
    life.use(Interrupted(life.clock, life.hdfs.files, reply=reply))
    assert freeze(life).number == 1
    assert brake(life).newest().reason == "a new NameNode"


def test_old_words_are_forgotten_and_the_newest_never(life: Life) -> None:
    for _ in range(13):
        freeze(life)
    assert sorted(path for path in life.hdfs.files if "/orders." in path) == [
        order_path(ALL_STREAMS, number) for number in range(4, 14)
    ]
    assert brake(life).newest().number == 13


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
