"""Who may say what in a state_dir: the law itself, by owners alone."""

from __future__ import annotations

import pytest

from airflow_kstream.model.clusters.authors import (
    CLOSING,
    AuthoredFiles,
    Ground,
    Standing,
    Supervisors,
    is_closed,
    named_supervisors,
)
from airflow_kstream.policy.authors import (
    may_declare,
    may_freeze,
    may_order,
    may_remember,
    needs_ground,
    sorted_by_author,
    standing,
)

# HDFS's superuser, the owner of the state_dir, and who is named in its file.
SUPERVISORS = Supervisors("hdfs", "airflow", frozenset({"backup"}))
BILLING = frozenset({"billing"})
NOBODY: frozenset[str] = frozenset()
OPEN, CLOSED = Ground("billing", closed=False), Ground("billing", closed=True)


def sort(owners: dict[str, str], ground: Ground | None = OPEN, users: frozenset[str] = BILLING) -> AuthoredFiles:
    return sorted_by_author(owners, SUPERVISORS, ground, users)


@pytest.mark.parametrize("author", ["hdfs", "airflow", "backup", "billing"])
def test_supervisors_and_the_streams_user_may_speak_in_its_folder(author: str) -> None:
    assert standing(author, SUPERVISORS, OPEN, BILLING) is Standing.MAY


def test_anybody_else_is_a_stranger_in_an_open_folder() -> None:
    assert standing("mallory", SUPERVISORS, OPEN, BILLING) is Standing.STRANGER
    assert standing("mallory", SUPERVISORS, None, BILLING) is Standing.STRANGER


def test_where_the_streams_user_is_not_proven_nobody_is_called_a_stranger() -> None:
    assert standing("mallory", SUPERVISORS, OPEN, NOBODY) is Standing.NOT_PROVEN
    files = {"gen-000001": "billing", "gen-000002": "mallory"}
    assert sort(files, users=NOBODY).strangers == {}


def test_where_it_is_not_proven_the_folders_owner_passes_for_it() -> None:
    files = {"gen-000001": "billing", "gen-000002": "mallory", "stop-000001": "airflow"}
    authored = sort(files, users=NOBODY)
    assert set(authored.counted) == {"gen-000001", "stop-000001"}
    assert authored.speakers == {"billing"}


@pytest.mark.parametrize("users", [BILLING, NOBODY])
def test_in_a_closed_folder_of_the_streams_user_all_files_count(users: frozenset[str]) -> None:
    """HDFS's superuser handed it over by a chown: the claims stay the former user's."""
    files = {"gen-000001": "orders", "gen-000002": "billing"}
    assert sort(files, CLOSED, users) == AuthoredFiles(files, {}, users, "billing")


def test_a_closed_folder_of_a_supervisor_is_as_good() -> None:
    assert standing("orders", SUPERVISORS, Ground("airflow", closed=True), BILLING) is Standing.FORMER


def test_what_a_stranger_left_counts_for_nothing_in_a_folder_closed_by_hand() -> None:
    """Only what is older than each claim of those who may speak can be a former user's."""
    honest = {"gen-000002": "billing", "started-000002": "billing", "ended-000001": "orders", "gen-000001": "orders"}
    left = {"gen-000003": "mallory", "stop-000002": "mallory", "cleaned-application_1_0001": "mallory"}
    authored = sort(honest | left, CLOSED)
    assert (authored.counted, authored.strangers) == (honest, left)


def test_a_closed_folder_of_a_stranger_makes_nobody_believed() -> None:
    assert standing("mallory", SUPERVISORS, Ground("mallory", closed=True), BILLING) is Standing.STRANGER


def test_a_folder_that_is_being_closed_counts_as_open() -> None:
    """What strangers left there is not deleted yet."""
    authored = sort({"gen-000001": "mallory", "gen-000002": "billing", CLOSING: "billing"}, CLOSED)
    assert authored.strangers == {"gen-000001": "mallory"}
    assert set(authored.counted) == {"gen-000002", CLOSING}


def test_a_closing_marker_counts_only_from_the_streams_user() -> None:
    """A stranger's would make strangers of all whose files the superuser handed over."""
    files = {"gen-000001": "orders", CLOSING: "mallory"}
    assert sort(files, CLOSED).strangers == {}


def test_a_supervisor_at_home_in_the_folder_is_the_streams_user() -> None:
    files = {"gen-000001": "airflow", "gen-000002": "mallory"}
    authored = sort(files, Ground("airflow", closed=False), NOBODY)
    assert authored.strangers == {"gen-000002": "mallory"}
    assert authored.users == {"airflow"}


@pytest.mark.parametrize("mode", ["755", "700", "0", "711", "1755", "744", "2755"])
def test_a_folder_is_closed_when_its_owner_alone_may_write(mode: str) -> None:
    assert is_closed(mode, acl=False)
    assert not is_closed(mode, acl=True), "who may write by an ACL, its bit doesn't tell"


@pytest.mark.parametrize("mode", ["775", "777", "1777", "757", "733", "722", "20", "2", "1770"])
def test_a_folder_in_which_a_group_or_others_may_write_is_open(mode: str) -> None:
    assert not is_closed(mode, acl=False)


@pytest.mark.parametrize("ground", [None, OPEN, CLOSED])
@pytest.mark.parametrize("users", [BILLING, NOBODY])
def test_files_of_a_server_that_names_no_owners_count(ground: Ground | None, users: frozenset[str]) -> None:
    assert sort({"gen-000001": ""}, ground, users).counted == {"gen-000001": ""}


def test_nobody_without_a_name_is_a_supervisor() -> None:
    assert "" not in Supervisors("", "")
    assert "mallory" not in SUPERVISORS


def test_the_folder_is_looked_at_only_where_somebody_else_wrote() -> None:
    honest = {"gen-000001": "billing", "fence-000001": "airflow", "started-000001": ""}
    assert not needs_ground(honest, SUPERVISORS, BILLING)
    assert needs_ground({**honest, "x": "mallory"}, SUPERVISORS, BILLING)


def test_orders_on_one_stream_are_its_users_and_orders_on_all_the_supervisors_alone() -> None:
    authors = ("hdfs", "airflow", "backup", "billing", "mallory", "")
    assert [author for author in authors if may_order(author, SUPERVISORS, BILLING)] == [*authors[:4]]
    assert [author for author in authors if may_freeze(author, SUPERVISORS)] == [*authors[:3]]
    assert [author for author in authors if may_declare(author, SUPERVISORS)] == [*authors[:3]]


def test_of_leases_and_of_what_was_told_each_user_remembers_for_itself() -> None:
    assert may_remember("airflow", "airflow")
    assert may_remember("", "airflow"), "a server that names no owners"
    assert not may_remember("hdfs", "airflow")


def test_the_file_of_supervisors_has_one_name_in_a_line_and_remarks() -> None:
    text = "# who is on duty\nbackup\n\n  ann   # until June\n#bob\n"
    assert named_supervisors(text) == {"backup", "ann"}
