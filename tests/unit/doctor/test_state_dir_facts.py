"""What the doctor makes of a state_dir: strangers in it are named, and nobody honest is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from airflow_kstream.model.clusters.authors import (
    ALL_STREAMS,
    SUPERVISORS_FILE,
    FolderKind,
    Supervisors,
    folder_name,
    order_name,
)
from airflow_kstream.model.clusters.cluster_facts import StateDirFacts
from airflow_kstream.model.finding import Finding
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.policy.doctor.checks import CHECKS, examine
from airflow_kstream.policy.state_dir import strange_entries
from airflow_kstream.supervise.clusters.copies import copy_name, written_copy
from airflow_kstream.supervise.doctor.state_dir_use import state_dir_facts
from airflow_kstream.supervise.streams.folder.registry import newest_claims
from airflow_kstream.supervise.streams.orders.desired import set_desired
from tests.simulated.doctor_facts import IN_ORDER
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import CLUSTER

STATE_DIR = CLUSTER.state_dir
WE = Supervisors("hdfs", "supervisor", frozenset({"jane"}))
ORDERS = "orders-0badcafe"


def strange(owners: Mapping[str, str], **users: str) -> Mapping[str, str]:
    """Return the strangers' entries; `users` are the proven ones of `orders`, nobody's if it says so."""
    return strange_entries(owners, WE, {ORDERS: frozenset(users.values())})


HONEST = {
    SUPERVISORS_FILE: "supervisor",
    ORDERS: "etl",
    "orders.etl": "etl",
    "orders.jane": "jane",
    "declared.supervisor": "supervisor",
    "leases.ada": "ada",
    ".order-0badcafe": "etl",
}


def test_nobody_who_has_business_there_is_a_stranger() -> None:
    assert strange(HONEST, user="etl") == {}


def test_where_the_streams_user_is_not_proven_nobody_is_called_a_stranger_for_it() -> None:
    assert strange(HONEST) == {}


def test_files_of_a_server_that_names_no_owners_are_nobodys() -> None:
    assert strange(dict.fromkeys(HONEST, ""), user="etl") == {}


@pytest.mark.parametrize("name", ["orders.mallory", "declared.supervisor.2", "leases.etl", "junk", "prices-0badcafe"])
def test_what_others_left_is_a_strangers(name: str) -> None:
    assert strange({**HONEST, name: "mallory"}, user="etl") == {name: "mallory"}


def test_a_streams_folder_of_another_than_its_proven_user_is_a_strangers() -> None:
    assert strange({**HONEST, ORDERS: "mallory"}, user="etl") == {ORDERS: "mallory"}


def facts_of(life: Life) -> StateDirFacts:
    session = life.run.session
    session.state.look()
    return state_dir_facts(session, list(newest_claims(session)))


def findings(facts: StateDirFacts) -> Mapping[str, Finding]:
    report = examine(replace(IN_ORDER, state_dir=facts, user="streamer"), CHECKS)
    return {finding.check: finding for finding in report.findings}


def runs_as(life: Life, user: str) -> None:
    """Let the stream have run as another user than its supervisor's, who kept a copy that says so."""
    life.begin()
    for path in [path for path in (*life.hdfs.files, *life.hdfs.modes) if path.startswith(life.run.id.folder)]:
        life.hdfs.owners[path] = user
    place = f"{STATE_DIR}/{folder_name(FolderKind.DECLARED, 'streamer')}/{life.run.id}"
    copy = f"{place}/{copy_name(fingerprint(SPEC), user)}"
    life.hdfs.files[copy], life.hdfs.owners[copy] = (written_copy(SPEC, user), life.hdfs.now()), "streamer"
    life.hdfs.modes[STATE_DIR] = "1755"
    life.run.session.copies.look_again(life.run.id)


def test_a_closed_one_with_a_stream_of_its_own_user_has_no_findings(life: Life) -> None:
    runs_as(life, "etl")
    assert findings(facts_of(life)) == {}


def test_a_stream_that_runs_as_a_supervisors_user_is_named(life: Life) -> None:
    life.begin()
    finding = findings(facts_of(life))["supervisors-stream"]
    assert "can say everything that a supervisor can, for all streams" in finding.words
    assert [concern.sentence for concern in finding.concerns] == ["it speaks for all streams, as streamer"]
    assert finding.streams == ("orders",)


def test_strangers_are_named_with_their_owners_and_no_more_than_five(life: Life) -> None:
    runs_as(life, "etl")
    for number in range(7):
        path = f"{STATE_DIR}/junk-{number}"
        life.hdfs.files[path], life.hdfs.owners[path] = ("", life.hdfs.now()), "mallory"
    finding = findings(facts_of(life))["state-dir-strangers"]
    assert "/kstream/junk-0 (mallory)" in finding.words
    assert "junk-5" not in finding.words
    assert " and 2 more" in finding.words


def test_a_strangers_file_with_the_name_of_a_pattern_is_removed_alone(life: Life) -> None:
    runs_as(life, "etl")
    life.hdfs.files[f"{STATE_DIR}/*"], life.hdfs.owners[f"{STATE_DIR}/*"] = ("", life.hdfs.now()), "mallory"
    assert "hdfs dfs -rm -r '/kstream/\\*'; or" in findings(facts_of(life))["state-dir-strangers"].fix


def test_a_folder_that_others_can_write_is_named_with_what_strangers_left_in_it(life: Life) -> None:
    runs_as(life, "etl")
    life.hdfs.modes[life.run.id.folder] = "1777"
    path = f"{life.run.id.folder}/gen-000009"
    life.hdfs.files[path], life.hdfs.owners[path] = ("", life.hdfs.now()), "mallory"
    found = findings(facts_of(life))
    assert found["stream-folder-open"].streams == found["state-dir-strangers"].streams == ("orders",)
    assert "gen-000009 (mallory)" in found["state-dir-strangers"].words


def test_a_folder_of_a_stranger_under_a_declared_streams_name_is_named(life: Life) -> None:
    runs_as(life, "etl")
    for path in [path for path in (*life.hdfs.files, *life.hdfs.modes) if path.startswith(life.run.id.folder)]:
        life.hdfs.owners[path] = "mallory"
    assert f"{life.run.id.folder} (mallory)" in findings(facts_of(life))["state-dir-strangers"].words


def test_wrong_lines_and_a_closed_mode_of_the_file_of_supervisors_are_found(life: Life) -> None:
    runs_as(life, "etl")
    file = f"{STATE_DIR}/{SUPERVISORS_FILE}"
    life.hdfs.files[file], life.hdfs.owners[file] = ("ann\nbob@EXAMPLE.COM\n", life.hdfs.now()), "streamer"
    assert "are not a short name of a user: 'bob@EXAMPLE.COM'" in findings(facts_of(life))["supervisors-file"].words
    life.hdfs.modes[file] = "640"
    facts = facts_of(life)
    assert (facts.names_mode, "ann" in facts.supervisors) == ("640", True)


def order(life: Life, user: str, subject: str) -> None:
    """Let a user give the first order of theirs."""
    folder = f"{STATE_DIR}/{folder_name(FolderKind.ORDERS, user)}"
    path = f"{folder}/{order_name(subject, 7)}"
    life.hdfs.modes[folder], life.hdfs.owners[folder] = "755", user
    life.hdfs.files[path], life.hdfs.owners[path] = ("what it says is not read", life.hdfs.now()), user


def named(life: Life, user: str) -> None:
    file = f"{STATE_DIR}/{SUPERVISORS_FILE}"
    life.hdfs.files[file], life.hdfs.owners[file] = (f"{user}\n", life.hdfs.now()), "streamer"


def test_an_order_of_one_who_lost_the_right_is_named_with_the_way_to_repeat_it(life: Life) -> None:
    runs_as(life, "etl")
    named(life, "ops")
    order(life, "ops", str(life.run.id))
    assert facts_of(life).void_orders == ()
    named(life, "others")
    finding = findings(facts_of(life))["void-orders"]
    assert "one on orders by ops of " in finding.words
    assert "`kstream streams stop orders` (or hold) repeats it" in finding.fix
    assert finding.streams == ("orders",)


def test_a_freeze_of_one_who_lost_the_right_is_named_as_long_as_it_would_hold(life: Life) -> None:
    runs_as(life, "etl")
    order(life, "ops", ALL_STREAMS)
    assert "on all streams, a freeze or its end, by ops" in findings(facts_of(life))["void-orders"].words
    life.clock.sleep(8 * 24 * 3600)
    assert facts_of(life).void_orders == ()


def test_an_order_that_a_later_one_replaced_is_no_finding(life: Life) -> None:
    """It may have the higher number: numbers are counted over those who may speak."""
    runs_as(life, "etl")
    order(life, "ops", str(life.run.id))
    life.clock.sleep(60)
    set_desired(life.run, DesiredState.STOPPED, "again")
    assert facts_of(life).void_orders == ()


def test_orders_of_a_streams_own_user_are_no_finding(life: Life) -> None:
    runs_as(life, "etl")
    order(life, "etl", str(life.run.id))
    assert facts_of(life).void_orders == ()


def test_orders_of_a_former_user_are_named_once_the_next_one_has_claimed(life: Life) -> None:
    runs_as(life, "etl")
    order(life, "etl", str(life.run.id))
    for path in [path for path in (*life.hdfs.files, *life.hdfs.modes) if path.startswith(life.run.id.folder)]:
        life.hdfs.owners[path] = "next"
    assert [each.author for each in facts_of(life).void_orders] == ["etl"]


def test_a_flood_is_a_finding(life: Life) -> None:
    runs_as(life, "etl")
    life.hdfs.most_rows = 20
    for number in range(40):
        path = f"{STATE_DIR}/junk-{number}"
        life.hdfs.files[path], life.hdfs.owners[path] = ("", life.hdfs.now()), "mallory"
    assert "of mallory" in findings(facts_of(life))["long-listings"].proof
