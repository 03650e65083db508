"""A person's word is never lost: desired states are numbered, and nobody overwrites one without having read it.

HDFS is simulated, because the moment between a writer's look and its rename is what is tested.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from airflow_kstream.model.contract import desired_file, is_draft, newest_desired
from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.generation import Desired, DesiredState
from airflow_kstream.model.plan import Phase
from airflow_kstream.supervise.streams.desired import request_restart, set_desired
from tests.simulated.life import Life
from tests.simulated.servers import SimHdfs

RUNNING, STOPPED, HELD = DesiredState.RUNNING, DesiredState.STOPPED, DesiredState.HELD


@dataclass
class Interrupted(SimHdfs):
    """Somebody else acts between a writer's look and its rename."""

    meanwhile: list[Callable[[], object]] = field(default_factory=list)

    def rename_onto_nothing(self, source: str, target: str) -> None:
        if "/desired-" in target and self.meanwhile:
            self.meanwhile.pop()()
        super().rename_onto_nothing(source, target)


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
    """Somebody at a terminal, with the folder of the stream that runs."""

    def __init__(self, life: Life) -> None:
        self.life = life
        life.begin()

    @property
    def desired(self) -> Desired:
        return self.life.run.folder.desired(self.names)

    @property
    def names(self) -> frozenset[str]:
        return self.life.run.folder.names()

    def on(self, hdfs: SimHdfs) -> None:
        """Speak to another kind of server, which has the same files."""
        self.life.use(hdfs)

    def wants(self, state: DesiredState, reason: str = "") -> None:
        set_desired(self.life.run, state, reason)

    def wants_a_restart(self) -> None:
        request_restart(self.life.run, "a new jar")


@pytest.fixture
def person(life: Life) -> Person:
    return Person(life)


def interrupted(person: Person, *meanwhile: Callable[[], object]) -> None:
    person.on(Interrupted(person.life.clock, person.life.hdfs.files, meanwhile=list(meanwhile)))


def test_each_word_is_a_file_of_its_own_and_the_highest_counts(person: Person) -> None:
    assert newest_desired(person.names) is None
    for number, state in enumerate((HELD, RUNNING, STOPPED), start=1):
        person.wants(state, "because")
        assert (person.desired.state, person.desired.reason) == (state, "because")
        assert newest_desired(person.names) == number
    assert not any(is_draft(name) for name in person.names)


@pytest.mark.parametrize("state", [HELD, STOPPED])
def test_a_word_during_the_write_of_a_restart_wins(person: Person, state: DesiredState) -> None:
    interrupted(person, lambda: person.wants(state))
    with pytest.raises(Conflict, match=f"its desired state is {state}; run `kstream streams start orders` first"):
        person.wants_a_restart()
    assert (person.desired.state, person.desired.restart_up_to) == (state, 0)


@pytest.mark.parametrize("state", [HELD, RUNNING])
def test_a_restart_that_is_requested_during_the_write_of_a_state_stays_requested(
    person: Person, state: DesiredState
) -> None:
    interrupted(person, person.wants_a_restart)
    person.wants(state)
    assert (person.desired.state, person.desired.restart_up_to) == (state, 1)


def test_of_two_persons_at_once_both_are_heard_and_the_slower_one_counts(person: Person) -> None:
    interrupted(person, lambda: person.wants(STOPPED))
    person.wants(HELD)
    words = [person.life.hdfs.read(f"{person.life.run.id.folder}/{desired_file(number)}") for number in (1, 2)]
    assert [json.loads(word)["state"] for word in words] == ["stopped", "held"]


def test_a_word_that_does_not_stand_is_written_again_whatever_the_server_said(person: Person) -> None:
    meanwhile = [lambda: person.wants(STOPPED, "ann's")]
    person.on(GrantsAll(person.life.clock, person.life.hdfs.files, meanwhile=[*meanwhile]))
    person.wants(HELD, "bob's")
    assert (newest_desired(person.names), person.desired.state, person.desired.reason) == (2, HELD, "bob's")


def test_a_writer_whom_others_always_precede_gives_up_and_says_so(person: Person) -> None:
    def another_word() -> None:
        number = (newest_desired(person.names) or 0) + 1
        person.life.hdfs.write(f"{person.life.run.id.folder}/{desired_file(number)}", '{"wish": "running"}')

    interrupted(person, *[another_word] * 400)
    with pytest.raises(Conflict, match=r"others wrote it 20 times meanwhile\. Retrying may help"):
        person.wants(HELD)


@pytest.mark.parametrize("said", [Conflict, NotFound, Unavailable, InvalidInput])
def test_a_word_that_stands_is_written_whatever_the_server_said(person: Person, said: type[KstreamError]) -> None:
    person.on(LosesReplies(person.life.clock, person.life.hdfs.files, said=said))
    person.wants(HELD)
    assert person.desired.state is HELD
    assert newest_desired(person.names) == 1


@pytest.mark.parametrize("said", [Unavailable, InvalidInput])
def test_a_word_that_does_not_stand_is_an_error(person: Person, said: type[KstreamError]) -> None:
    """HttpFS answers 200 and false for whatever reason; a NameNode may be away."""

    class Refusing(SimHdfs):
        def rename_onto_nothing(self, source: str, target: str) -> None:
            raise said("nothing was renamed")

    person.on(Refusing(person.life.clock, person.life.hdfs.files))
    with pytest.raises(said, match="nothing was renamed"):
        person.wants(HELD)
    assert not any(is_draft(name) for name in person.names)


def test_the_state_of_an_earlier_version_is_read_until_somebody_says_more(person: Person) -> None:
    folder = person.life.run.id.folder
    person.life.hdfs.write(f"{folder}/desired.json", '{"wish": "held", "restart_through": 3, "by": "ann"}')
    assert (person.desired.state, person.desired.restart_up_to, person.desired.by) == (HELD, 3, "ann")
    person.wants(RUNNING)
    assert (person.desired.state, person.desired.restart_up_to) == (RUNNING, 3)
    assert newest_desired(person.names) == 1


def test_the_state_of_a_newer_version_is_left_alone(person: Person) -> None:
    name = f"{person.life.run.id.folder}/{desired_file(7)}"
    person.life.hdfs.write(name, '{"version": 99, "state": "paused"}')
    for word in (lambda: person.wants(RUNNING), person.wants_a_restart, lambda: person.desired):
        with pytest.raises(InvalidInput, match="it is of version 99"):
            word()
    assert newest_desired(person.names) == 7


def test_old_words_are_forgotten_and_the_newest_never(person: Person) -> None:
    person.life.hdfs.write(f"{person.life.run.id.folder}/desired.json", '{"wish": "running"}')
    for _ in range(12):
        person.wants(RUNNING)
        person.wants(HELD)
    assert person.life.reconcile().phase is Phase.HELD
    kept = {name for name in person.names if name.startswith("desired")}
    assert kept == {desired_file(number) for number in range(15, 25)}
    assert person.desired.state is HELD


def test_a_word_that_was_written_behind_forgotten_ones_is_written_again(person: Person) -> None:
    """The writer slept between its look and its rename; meanwhile its number was used and forgotten."""

    def many_words() -> None:
        for _ in range(15):
            person.wants(RUNNING)
        person.life.reconcile()
        assert desired_file(1) not in person.names

    interrupted(person, many_words)
    person.wants(HELD)
    assert person.desired.state is HELD


def test_a_reader_that_slept_until_its_file_was_forgotten_looks_again(person: Person) -> None:
    person.wants(HELD)
    listed = person.names
    for _ in range(15):
        person.wants(RUNNING)
    person.life.reconcile()
    with pytest.raises(Unavailable, match="deleted after it was listed"):
        person.life.run.folder.desired(listed)
