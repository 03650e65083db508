"""How a state_dir is made closed: the commands, and who may create in it before and after them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_kstream.model.clusters.state_dir_rights import StateDirRights, StateDirUse, StateDirUser, acl_entries
from airflow_kstream.policy.state_dir import closing, openness

OPEN = StateDirRights("/kstream", "supervisor", "supergroup", "1777", parents_group="supergroup")
ETL = StateDirUser("etl", ("runs orders",), creates=True, folders=("orders-0badcafe", "orders.etl"))
LEASES = StateDirUser("jane", ("owns leases.jane",))


def use(rights: StateDirRights, *users: StateDirUser, **can_create: bool) -> StateDirUse:
    return StateDirUse(rights, "hdfs", users, can_create)


def test_a_folder_that_everybody_may_write_is_open() -> None:
    assert openness(OPEN) == ("everybody may create in it",)
    assert openness(replace(OPEN, permission="1755")) == ()


def test_a_group_makes_it_open_unless_somebody_chose_it() -> None:
    inherited = replace(OPEN, permission="1775")
    assert openness(inherited) == (
        "the members of supergroup may create in it, a group that it has from the folder above: nobody chose them",
    )
    assert openness(replace(inherited, group="kstream")) == ()


def test_without_the_sticky_bit_its_users_could_delete_each_others_folders() -> None:
    assert openness(replace(OPEN, permission="775", group="kstream")) == (
        "who may create in it may also delete and rename what is another's: it has no sticky bit",
    )
    assert openness(replace(OPEN, permission="755")) == ()


def test_the_mask_of_an_acl_is_no_right_of_the_group() -> None:
    entries = acl_entries(["user:etl:rwx", "group::r-x", "default:user:etl:rwx"])
    assert openness(replace(OPEN, permission="1775", entries=entries)) == ()


def test_its_owner_alone_uses_it() -> None:
    plan = closing(use(OPEN, StateDirUser("supervisor", ("owns it",), creates=True)))
    assert plan.commands == ("hdfs dfs -chmod 1755 /kstream",)


def test_who_uses_it_gets_an_entry_in_the_same_command_that_closes_it() -> None:
    """At no moment are they locked out."""
    plan = closing(use(OPEN, ETL, LEASES))
    assert plan.commands == ("hdfs dfs -setfacl -m user::rwx,group::r-x,other::r-x,user:etl:rwx /kstream",)


def test_a_folder_without_the_sticky_bit_gets_it_first() -> None:
    plan = closing(use(replace(OPEN, permission="777"), ETL))
    assert plan.commands[0] == "hdfs dfs -chmod +t /kstream"


def test_a_group_that_somebody_chose_keeps_its_right() -> None:
    rights = replace(OPEN, group="kstream", permission="1777")
    plan = closing(use(rights, ETL))
    assert plan.commands == ("hdfs dfs -setfacl -m user::rwx,group::rwx,other::r-x,user:etl:rwx /kstream",)
    assert closing(use(replace(rights, permission="1775"), ETL, etl=True)).commands == ()


def test_who_was_refused_by_a_closed_folder_gets_an_entry() -> None:
    rights = replace(OPEN, group="kstream", permission="1770")
    plan = closing(use(rights, ETL, LEASES, etl=False))
    entries = "user::rwx,group::rwx,other::---,user:etl:rwx,user:jane:r-x"
    assert plan.commands == (f"hdfs dfs -setfacl -m {entries} /kstream",)


def test_a_closed_folder_is_left_alone_where_nobody_can_be_asked() -> None:
    """A member of the group can create, and no one can tell who is one."""
    assert closing(use(replace(OPEN, group="kstream", permission="1770"), ETL, LEASES)).commands == ()


def test_an_entry_that_a_mask_held_back_gives_no_more_than_before() -> None:
    """HDFS makes a new mask of all entries."""
    masked = acl_entries(["user:mallory:rwx", "group::rwx"])
    plan = closing(use(replace(OPEN, permission="1757", entries=masked), ETL))
    assert "user:mallory:r-x" in plan.commands[0]


def test_without_acls_the_superuser_makes_the_folders() -> None:
    plan = closing(use(replace(OPEN, keeps_acls=False), ETL))
    assert plan.commands == (
        "hdfs dfs -mkdir -p /kstream/orders-0badcafe /kstream/orders.etl",
        "hdfs dfs -chmod 755 /kstream/orders-0badcafe /kstream/orders.etl",
        "hdfs dfs -chown etl /kstream/orders-0badcafe /kstream/orders.etl",
        "hdfs dfs -chmod 1755 /kstream",
    )
    assert plan.folders == {"etl": ("orders-0badcafe", "orders.etl")}


def test_once_they_are_there_nothing_more_is_to_be_done() -> None:
    closed = replace(OPEN, permission="1755", keeps_acls=False)
    assert closing(use(closed, replace(ETL, folders=()), etl=False)).commands == ()


def test_names_that_a_shell_would_read_are_quoted() -> None:
    rights = replace(OPEN, path="/k stream; rm")
    assert closing(use(rights)).commands == ("hdfs dfs -chmod 1755 '/k stream; rm'",)


@pytest.mark.parametrize("permission", ["1755", "1750", "755"])
def test_a_closed_folder_whose_users_can_create_needs_nothing(permission: str) -> None:
    rights = replace(OPEN, permission=permission)
    assert closing(use(rights, StateDirUser("supervisor", ("owns it",), creates=True))).commands == ()


def test_a_new_one_lets_in_who_will_use_it() -> None:
    new = replace(OPEN, permission="755", exists=False)
    assert closing(use(new, ETL, etl=False)).commands == (
        "hdfs dfs -mkdir -p /kstream",
        "hdfs dfs -chown supervisor /kstream",
        "hdfs dfs -chmod +t /kstream",
        "hdfs dfs -setfacl -m user::rwx,group::r-x,other::r-x,user:etl:rwx /kstream",
    )
