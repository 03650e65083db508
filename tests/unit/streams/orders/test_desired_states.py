"""A person's word is never lost: orders are numbered over all persons, and nobody follows one without having read it.

HDFS is simulated, because the moment between a writer's look and its rename is what is tested.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.authors import OrderFile
from airflow_kstream.model.errors import Conflict, Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.orders.desired import request_restart, set_desired
from tests.simulated.folders import order_path
from tests.simulated.life import Life
from tests.simulated.servers import CLUSTER, SimHdfs, session_of

RUNNING, STOPPED, HELD = DesiredState.RUNNING, DesiredState.STOPPED, DesiredState.HELD


@dataclass
class Interrupted(SimHdfs):
    """Somebody else acts between a writer's look and its rename, or right after the rename."""

    meanwhile: list[Callable[[], object]] = field(default_factory=list)
    afterwards: list[Callable[[], object]] = field(default_factory=list)

    def rename_onto_nothing(self, source: str, target: str) -> None:
        if "/orders." in target and self.meanwhile:
            self.meanwhile.pop()()
        super().rename_onto_nothing(source, target)
        if "/orders." in target and self.afterwards:
            self.afterwards.pop()()


@dataclass
class LosesReplies(SimHdfs):
    """It renames, and the reply is lost: then it is asked again, or nobody answers."""

    said: type[KstreamError] = Conflict

    def rename_onto_nothing(self, source: str, target: str) -> None:
        super().rename_onto_nothing(source, target)
        raise self.said("of the repeated request")


@dataclass
class GrantsAll(Interrupted):
    """It says that it renamed, also where somebody else's file was in the way and stays."""

    def rename_onto_nothing(self, source: str, target: str) -> None:
        with suppress(Conflict):
            super().rename_onto_nothing(source, target)


class Person:
    """Somebody at a terminal, who logs in as the stream's user; others speak as users of their own."""

    def __init__(self, life: Life) -> None:
        self.life = life
        life.begin()

    @property
    def desired(self) -> Desired:
        return desired(self.life.run)

    @property
    def files(self) -> list[str]:
        """Return the paths of all orders and their drafts."""
        return sorted(path for path in self.life.hdfs.files if path.startswith(f"{CLUSTER.state_dir}/orders."))

    def writes(self, state: str, user: str, number: int = 1) -> None:
        """Lay an order as another program of this user would, whether it counts or not."""
        with self.life.hdfs.as_user(user):
            self.life.hdfs.make_folder(self.order(number, user).rpartition("/")[0], "755")
            self.life.hdfs.write(self.order(number, user), json.dumps({"version": 3, "state": state}))

    def order(self, number: int, user: str = "streamer") -> str:
        return order_path(self.life.run.id, number, user)

    def on(self, hdfs: SimHdfs) -> None:
        """Speak to another kind of server, which has the same files."""
        before = self.life.hdfs
        hdfs.files, hdfs.modes, hdfs.owners = before.files, before.modes, before.owners
        self.life.use(hdfs)

    def wants(self, state: DesiredState, reason: str = "", user: str = "") -> None:
        as_user(self.life, user, lambda run: set_desired(run, state, reason))

    def wants_a_restart(self, user: str = "") -> None:
        as_user(self.life, user, lambda run: request_restart(run, "a new jar"))


def desired(run: StreamRun) -> Desired:
    return run.folder.desired(newest(run))


def newest(run: StreamRun) -> OrderFile | None:
    return run.folder.newest_order(run.folder.authored(), run.session.state.look())


def as_user(life: Life, user: str, act: Callable[[StreamRun], object]) -> None:
    """Act as a person with another login than the stream's, if one is named."""
    if not user:
        act(life.run)
        return
    with life.hdfs.as_user(user):
        session = replace(session_of(life.hdfs, life.yarn), identity=Identity(f"{user}@EXAMPLE.COM"))
        act(replace(life.run, session=session))


def name_supervisors(life: Life, *names: str) -> None:
    life.hdfs.write(f"{CLUSTER.state_dir}/supervisors", "\n".join(["# who may speak", *names]), overwrite=True)


@pytest.fixture
def person(life: Life) -> Person:
    return Person(life)


def interrupted(person: Person, *meanwhile: Callable[[], object]) -> None:
    person.on(Interrupted(person.life.clock, meanwhile=list(meanwhile)))


def test_each_word_is_a_file_of_its_own_and_the_highest_counts(person: Person) -> None:
    assert (person.desired, person.files) == (Desired(), [])
    for number, state in enumerate((HELD, RUNNING, STOPPED), start=1):
        person.wants(state, "because")
        assert (person.desired.state, person.desired.reason, person.desired.number) == (state, "because", number)
    assert person.files == [person.order(number) for number in (1, 2, 3)], "and no draft"


@pytest.mark.parametrize("state", [HELD, STOPPED])
def test_who_requests_a_restart_again_after_another_word_hears_that_it_follows(
    person: Person, state: DesiredState
) -> None:
    """The answer to the first request may have been lost, and the word has kept it."""
    person.wants_a_restart()
    person.wants(state)
    with pytest.raises(Conflict, match="a restart of generation 1 is requested already, and follows"):
        person.wants_a_restart()
    assert (person.desired.state, person.desired.restart_up_to) == (state, 1)


@pytest.mark.parametrize("state", [HELD, STOPPED])
@pytest.mark.parametrize("user", ["", "hdfs"])
def test_a_word_during_the_write_of_a_restart_wins(person: Person, state: DesiredState, user: str) -> None:
    interrupted(person, lambda: person.wants(state, user=user))
    with pytest.raises(Conflict, match=f"its desired state is {state}; run `kstream streams start orders` first"):
        person.wants_a_restart()
    assert (person.desired.state, person.desired.restart_up_to) == (state, 0)


@dataclass
class SlowWriter:
    """A supervisor speaks between the look of the stream's user and the draft of his order, and hears yes."""

    person: Person
    state: DesiredState
    deletes: bool = True
    spoken: bool = False

    def __call__(self, request: str, path: str) -> None:
        if request == "write" and "/orders.streamer/" in path and not self.spoken:
            self.spoken = True
            self.person.wants(self.state, user="hdfs")
            self.person.life.clock.ahead += timedelta(seconds=1)
        if request == "delete" and "/orders.streamer/" in path and not self.deletes:
            raise Unavailable("Connection refused", tried=f"delete {path}", server="http://nn1:9870")


@pytest.mark.parametrize("state", [HELD, STOPPED])
def test_a_refused_restart_that_was_written_later_than_the_word_does_not_count(
    person: Person, state: DesiredState
) -> None:
    person.life.hdfs.at_request = SlowWriter(person, state)
    with pytest.raises(Conflict, match=f"its desired state is {state}"):
        person.wants_a_restart()
    assert (person.desired.state, person.desired.author) == (state, "hdfs")
    assert person.files == [person.order(1, "hdfs")]


def test_who_is_refused_hears_what_removes_an_order_that_still_stands(person: Person) -> None:
    person.life.hdfs.at_request = SlowWriter(person, HELD, deletes=False)
    with pytest.raises(Conflict, match="its desired state is held") as refused:
        person.wants_a_restart()
    order = person.order(1)
    assert f"until streamer or HDFS's superuser runs `hdfs dfs -rm {order}`" in refused.value.message
    assert f"delete {order} on http://nn1:9870: Connection refused. Retrying will not help." in str(refused.value)
    assert (person.desired.state, person.desired.restart_up_to) == (RUNNING, 1), "it is obeyed in place of the word"
    person.life.hdfs.at_request = lambda request, path: None
    person.life.hdfs.delete(order)
    assert person.desired.state is HELD


@pytest.mark.parametrize("state", [HELD, RUNNING])
@pytest.mark.parametrize("user", ["", "hdfs"])
def test_a_restart_that_is_requested_during_the_write_of_a_state_stays_requested(
    person: Person, state: DesiredState, user: str
) -> None:
    interrupted(person, lambda: person.wants_a_restart(user))
    person.wants(state)
    assert (person.desired.state, person.desired.restart_up_to) == (state, 1)


def test_who_tells_a_running_stream_to_run_takes_a_requested_restart_back(person: Person) -> None:
    person.wants_a_restart()
    person.wants(HELD)
    person.wants(RUNNING)
    assert person.desired.restart_up_to == 1, "it was only held meanwhile"
    person.wants(RUNNING)
    assert (person.desired.state, person.desired.restart_up_to) == (RUNNING, 0)


@pytest.mark.parametrize("user", ["", "hdfs"])
def test_of_two_persons_at_once_both_are_heard_and_the_slower_one_counts(person: Person, user: str) -> None:
    interrupted(person, lambda: person.wants(STOPPED, user=user))
    person.wants(HELD)
    assert (person.desired.state, person.desired.number) == (HELD, 2)


def test_two_orders_of_one_number_are_followed_by_one_that_read_both(person: Person) -> None:
    """Each lies in a folder of its own, so that no rename is refused."""
    interrupted(person, lambda: person.wants_a_restart("hdfs"))
    person.wants(HELD)
    assert person.files == [person.order(1, "hdfs"), person.order(1), person.order(2)]
    assert (person.desired.state, person.desired.restart_up_to) == (HELD, 1)


def test_an_answer_that_comes_before_the_second_look_is_read(person: Person) -> None:
    person.on(Interrupted(person.life.clock, afterwards=[lambda: person.wants(STOPPED, user="hdfs")]))
    with pytest.raises(Conflict, match="its desired state is stopped"):
        person.wants_a_restart()
    assert (person.desired.state, person.desired.author) == (STOPPED, "hdfs")


def test_numbers_count_over_all_persons_together(person: Person) -> None:
    name_supervisors(person.life, "ann")
    for user in ("ann", "hdfs", "", "ann"):
        person.wants(HELD, user, user=user)
    assert person.files == [
        person.order(1, "ann"),
        person.order(4, "ann"),
        person.order(2, "hdfs"),
        person.order(3),
    ]
    assert (person.desired.number, person.desired.author, person.desired.reason) == (4, "ann", "ann")


def test_the_speaker_is_shown_with_the_user_that_hdfs_proves(person: Person) -> None:
    with person.life.hdfs.as_user("hdfs"):
        session = replace(session_of(person.life.hdfs, person.life.yarn), identity=Identity("hdfs@EXAMPLE.COM"))
        set_desired(replace(person.life.run, session=session, by="jane@edge1"), HELD, "not before Monday")
    assert person.desired.speaker == "jane@edge1 (HDFS user hdfs)"
    assert "held by jane@edge1 (HDFS user hdfs)" in person.life.reconcile().why


def test_an_order_of_who_may_not_speak_is_as_if_it_were_not_there(person: Person) -> None:
    person.wants(RUNNING)
    person.writes("stopped", "mallory", 9)
    assert (person.desired.state, person.desired.number) == (RUNNING, 1)
    assert person.life.reconcile().phase is Phase.RUNNING
    person.wants(HELD)
    assert (person.desired.state, person.desired.number) == (HELD, 2)


@pytest.mark.parametrize("word", ["a state", "a restart"])
def test_who_may_not_speak_is_refused_with_the_line_to_add(person: Person, word: str) -> None:
    with pytest.raises(Denied) as refused:
        person.wants(STOPPED, user="ann") if word == "a state" else person.wants_a_restart("ann")
    assert "orders of ann don't count here, but those of hdfs, streamer and" in refused.value.message
    assert "name ann in a line of /kstream/supervisors" in refused.value.message
    assert person.files == []


def test_a_file_that_a_stranger_put_beside_our_orders_counts_for_nothing(person: Person) -> None:
    """Somebody made the folder group-writable by hand."""
    person.wants(RUNNING)
    folder = person.order(1).rpartition("/")[0]
    person.life.hdfs.modes[folder] = "777"
    with person.life.hdfs.as_user("mallory"):
        person.life.hdfs.write(person.order(2), '{"version": 3, "state": "stopped"}')
    assert (person.desired.state, person.desired.number) == (RUNNING, 1)
    person.wants(HELD)
    assert (person.desired.state, person.desired.number) == (HELD, 3), "his name is passed over"


def test_a_strangers_folder_of_orders_is_not_read(person: Person) -> None:
    asked: list[tuple[str, str]] = []
    person.writes("stopped", "mallory")
    person.life.hdfs.at_request = lambda request, path: asked.append((request, path))
    assert person.life.reconcile().phase is Phase.RUNNING
    assert not [path for _, path in asked if "/orders.mallory" in path]


def test_where_a_stranger_took_the_folders_name_orders_lie_in_the_next_one(person: Person) -> None:
    taken = person.order(1).rpartition("/")[0]
    with person.life.hdfs.as_user("mallory"):
        person.life.hdfs.make_folder(taken, "777")
        person.life.hdfs.write(person.order(1), '{"version": 3, "state": "stopped"}')
    person.wants(HELD)
    assert person.desired.state is HELD
    assert person.files == [f"{taken}.2/{person.order(1).rpartition('/')[2]}", person.order(1)]


def test_a_user_in_the_list_of_supervisors_is_heard_until_the_line_is_gone(person: Person) -> None:
    person.writes("held", "ann")
    assert person.desired.state is RUNNING
    name_supervisors(person.life, "ann", "bob")
    assert (person.desired.state, person.desired.author) == (HELD, "ann")
    name_supervisors(person.life, "bob")
    assert person.desired.state is RUNNING


def test_a_list_of_supervisors_that_a_stranger_wrote_names_nobody(person: Person) -> None:
    with person.life.hdfs.as_user("mallory"):
        person.life.hdfs.modes[CLUSTER.state_dir] = "1777"
        name_supervisors(person.life, "mallory")
    person.writes("stopped", "mallory")
    assert person.desired.state is RUNNING


def test_what_we_make_for_orders_nobody_else_can_write(person: Person) -> None:
    person.wants(HELD)
    assert person.life.hdfs.modes[person.order(1).rpartition("/")[0]] == "755"


def test_a_word_that_does_not_stand_is_written_again_whatever_the_server_said(person: Person) -> None:
    meanwhile = [lambda: person.wants(STOPPED, "ann's")]
    person.on(GrantsAll(person.life.clock, meanwhile=[*meanwhile]))
    person.wants(HELD, "bob's")
    assert (person.desired.number, person.desired.state, person.desired.reason) == (2, HELD, "bob's")


def test_a_writer_whom_others_always_precede_gives_up_and_says_so(person: Person) -> None:
    def another_word() -> None:
        number = person.desired.number + 1
        person.life.hdfs.write(person.order(number), '{"version": 3, "state": "running"}')

    interrupted(person, *[another_word] * 400)
    with pytest.raises(Conflict, match=r"others wrote orders 20 times meanwhile\. Retrying may help"):
        person.wants(HELD)


@pytest.mark.parametrize("said", [Conflict, NotFound, Unavailable, InvalidInput])
def test_a_word_that_stands_is_written_whatever_the_server_said(person: Person, said: type[KstreamError]) -> None:
    person.on(LosesReplies(person.life.clock, said=said))
    person.wants(HELD)
    assert (person.desired.state, person.desired.number) == (HELD, 1)


@pytest.mark.parametrize("said", [Unavailable, InvalidInput])
def test_a_word_that_does_not_stand_is_an_error(person: Person, said: type[KstreamError]) -> None:
    """HttpFS answers 200 and false for whatever reason; a NameNode may be away."""

    class Refusing(SimHdfs):
        def rename_onto_nothing(self, source: str, target: str) -> None:
            raise said("nothing was renamed")

    person.on(Refusing(person.life.clock))
    with pytest.raises(said, match="nothing was renamed"):
        person.wants(HELD)
    assert person.files == []


def test_the_state_of_another_version_holds_until_somebody_says_what_else(person: Person) -> None:
    person.life.hdfs.write(person.order(7), '{"version": 99, "state": "paused"}')
    with pytest.raises(InvalidInput, match="it is of version 99, and this program reads 3") as refused:
        assert person.desired
    assert f"`hdfs dfs -rm -r {person.order(7)}`" in refused.value.message
    with pytest.raises(Conflict, match="its desired state is held; run `kstream streams start orders` first"):
        person.wants_a_restart()
    assert person.files == [person.order(7)]
    person.wants(STOPPED)
    assert (person.desired.state, person.desired.number) == (STOPPED, 8)


def test_a_word_that_may_not_be_read_is_named_with_the_way_out(person: Person) -> None:
    def refused(request: str, path: str) -> None:
        if request == "read" and path == person.order(1):
            raise Denied("Permission denied: user=streamer, access=READ", tried=f"read {path}")

    person.wants(HELD)
    person.on(SimHdfs(person.life.clock, at_request=refused))
    with pytest.raises(InvalidInput, match="can't be understood: Permission denied") as unread:
        assert person.desired
    assert f"`hdfs dfs -rm -r {person.order(1)}`" in unread.value.message


@pytest.mark.parametrize("name", ["desired.json", "desired-000007.json"])
def test_a_state_of_an_earlier_format_in_the_streams_folder_is_not_read(person: Person, name: str) -> None:
    folder = person.life.run.id.folder
    person.life.hdfs.write(f"{folder}/{name}", '{"version": 2, "state": "held"}')
    assert person.desired == Desired()
    assert person.life.reconcile().phase is Phase.RUNNING


def test_old_words_are_forgotten_and_the_newest_never(person: Person) -> None:
    for _ in range(12):
        person.wants(RUNNING)
        person.wants(HELD)
    assert person.life.reconcile().phase is Phase.HELD
    assert person.files == [person.order(number) for number in range(15, 25)]
    assert person.desired.state is HELD


def test_who_speaks_often_forgets_no_order_of_another_person(person: Person) -> None:
    person.wants(HELD, user="hdfs")
    for _ in range(12):
        person.wants(RUNNING)
    assert person.order(1, "hdfs") in person.files
    assert person.desired.number == 13


def test_a_word_that_was_written_behind_forgotten_ones_is_written_again(person: Person) -> None:
    """The writer slept between its look and its rename; meanwhile its number was used and forgotten."""

    def many_words() -> None:
        for _ in range(15):
            person.wants(RUNNING)
        assert person.order(1) not in person.files

    interrupted(person, many_words)
    person.wants(HELD)
    assert person.desired.state is HELD


def test_a_reader_that_slept_until_its_file_was_forgotten_looks_again(person: Person) -> None:
    person.wants(HELD)
    listed = newest(person.life.run)
    another = replace(person.life.run, session=session_of(person.life.hdfs, person.life.yarn))
    for _ in range(15):
        person.wants(RUNNING)
    with pytest.raises(Unavailable, match="deleted after it was listed"):
        another.folder.desired(listed)


@pytest.mark.parametrize("word", [HELD, STOPPED])
def test_a_word_in_another_folder_while_a_submission_is_prepared_is_heard(life: Life, word: DesiredState) -> None:
    life.engine.at_preflight = lambda: Person.wants(Here(life), word, user="hdfs")
    report = life.reconcile(Mode.ENSURE)
    assert (report.phase, life.yarn.apps) == (Phase.HELD if word is HELD else Phase.STOPPED, {})


class Here(Person):
    """A person beside a stream that has not begun."""

    def __init__(self, life: Life) -> None:
        self.life = life
