"""The words of persons that freeze a cluster: which count, from when on, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.clusters.authors import ALL_STREAMS
from airflow_kstream.model.errors import Conflict, Denied, KstreamError, NotFound, Unavailable
from airflow_kstream.model.streams.freeze import Freeze
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.folders import order_path
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER, SimHdfs
from tests.unit.streams.restart.test_freeze import FIRST, FOUR_HOURS, HOUR, WEEK_LONG, brake, freeze

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
