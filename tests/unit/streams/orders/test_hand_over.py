"""A stream's folder goes to another user: what the superuser does, in which order, and what holds afterwards.

HDFS and YARN are simulated; the chown itself, and what the next generation makes of it, is the business of tests/real.
"""

from __future__ import annotations

import pytest

from airflow_kstream.model.errors import Denied, InvalidInput, NotFound
from airflow_kstream.policy.streams.restart.hand_over import HandOver, hand_over
from airflow_kstream.supervise.streams.orders.hand_over import hand_over_facts, user_named
from tests.simulated.life import SPEC, Life

NEXT = "etl"


@pytest.fixture
def ran(life: Life) -> Life:
    """A stream whose first generation runs as `streamer`."""
    life.begin()
    return life


def handed(life: Life, to: str = NEXT) -> HandOver:
    return hand_over(hand_over_facts(life.run.session, SPEC.name, to))


def add(life: Life, name: str, owner: str) -> None:
    path = f"{life.run.id.folder}/{name}"
    life.hdfs.files[path], life.hdfs.owners[path] = ("", life.hdfs.now()), owner


def test_a_closed_folder_needs_the_superusers_chown_alone(ran: Life) -> None:
    step = handed(ran)
    assert step.commands == (f"hdfs dfs -chown etl {ran.run.id.folder}",)
    assert not step.done
    assert "Without -R" in step.words[0]


def test_afterwards_former_claims_count_and_the_running_job_comes_first(ran: Life) -> None:
    ran.hdfs.owners[ran.run.id.folder] = NEXT
    step = handed(ran)
    assert (step.done, step.commands) == (True, ())
    assert "nobody else can write in it: what others wrote before etl's first claim counts" in step.words[0]
    assert step.words[1:] == (
        "generation 1 was claimed by streamer",
        "application_1_0001 still runs, as streamer: generation 2 follows once it is proven dead",
    )


def test_without_a_living_application_the_next_generation_follows(ran: Life) -> None:
    ran.hdfs.owners[ran.run.id.folder] = NEXT
    ran.yarn.end("application_1_0001")
    assert handed(ran).words[-1].startswith("YARN has no living application of it: generation 2 follows")


@pytest.mark.parametrize("owner", ["streamer", NEXT])
def test_an_open_folder_is_closed_first_while_nobody_acts(ran: Life, owner: str) -> None:
    """Also where it was handed over too early: what the former user wrote counts in a closed folder alone."""
    folder = ran.run.id.folder
    ran.hdfs.modes[folder], ran.hdfs.owners[folder] = "1777", owner
    add(ran, "gen-000009", "mallory")
    step = handed(ran)
    assert step.commands == (
        "kstream streams hold orders --reason 'hand-over to etl'",
        f"hdfs dfs -chmod 755 {folder}",
        f"hdfs dfs -rm -r {folder}/gen-000009",
    )
    assert step.words[1] == "strangers' files: gen-000009 (mallory)"


def test_an_acl_is_taken_away_before_the_mode_is_set(ran: Life) -> None:
    """The mode of a folder with an ACL is its mask."""
    ran.hdfs.acls.add(ran.run.id.folder)
    assert [command.split()[2] for command in handed(ran).commands] == ["hold", "-setfacl", "-chmod"]


def test_strangers_files_go_before_a_closed_folder_changes_hands(ran: Life) -> None:
    """They came while it was open, and would count afterwards."""
    add(ran, "stop-000001", "mallory")
    step = handed(ran)
    assert step.commands == (f"hdfs dfs -rm -r {ran.run.id.folder}/stop-000001",)
    assert "would count as soon as etl has it" in step.words[0]


def test_a_strangers_file_with_the_name_of_a_pattern_takes_no_other_along(ran: Life) -> None:
    """Hadoop's client reads patterns that are quoted for the shell."""
    add(ran, "*", "mallory")
    assert handed(ran).commands == (f"hdfs dfs -rm -r '{ran.run.id.folder}/\\*'",)


def test_no_more_than_twenty_strangers_files_are_named_at_once(ran: Life) -> None:
    for number in range(25):
        add(ran, f"junk-{number:02d}", "mallory")
    step = handed(ran)
    assert step.words[1].endswith(" and 5 more")
    assert len(step.commands[0].split()) == 4 + 20


def test_names_are_quoted_for_the_shell(ran: Life) -> None:
    add(ran, "a; rm -rf ~", "mallory")
    assert handed(ran).commands == (f"hdfs dfs -rm -r '{ran.run.id.folder}/a; rm -rf ~'",)


def test_what_supervisors_wrote_is_no_strangers(ran: Life) -> None:
    add(ran, "stop-000001", "hdfs")
    assert handed(ran).commands == (f"hdfs dfs -chown etl {ran.run.id.folder}",)


def test_a_stream_without_a_folder_has_nothing_to_hand_over(life: Life) -> None:
    with pytest.raises(NotFound, match="its first start makes it"):
        handed(life)


def test_a_user_is_named_by_its_short_name_or_as_the_connections_own_principal(life: Life) -> None:
    session = life.run.session
    assert user_named(session, "etl") == "etl"
    assert user_named(session, session.identity.principal) == "streamer"


@pytest.mark.parametrize("to", ["etl@EXAMPLE.COM", "etl/host@EXAMPLE.COM", "", "-R", "two words", "a/b"])
def test_a_principals_text_proves_nobody(life: Life, to: str) -> None:
    with pytest.raises(InvalidInput, match="can't be told from its text"):
        user_named(life.run.session, to)


def test_a_folder_with_claims_is_never_advised_to_be_deleted(ran: Life) -> None:
    """What the running generation goes by lies in it: that the chown is missing is all that is wrong."""
    ran.hdfs.owners[ran.run.id.folder] = NEXT
    with pytest.raises(Denied, match=r"belongs to etl, who submitted the stream so far.*hand-over") as refused:
        ran.run.folder.put_once("gen-000001", "another text")
    assert "-rm" not in str(refused.value)


def test_a_strangers_folder_without_a_claim_makes_way_for_the_first_start(life: Life) -> None:
    life.hdfs.make_folder(life.run.id.folder, "755")
    life.hdfs.owners[life.run.id.folder] = "mallory"
    with pytest.raises(Denied, match=f"hdfs dfs -rm -r {life.run.id.folder}` the name is free again"):
        life.begin()
