"""What a NameNode makes of the commands that close a state_dir: who may create afterwards, by its own word."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import timedelta
from getpass import getuser
from pathlib import Path

import pytest
import yaml

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.authors import SUPERVISORS_FILE, FolderKind, folder_name, named_supervisors
from airflow_kstream.model.clusters.hdfs_path import as_word
from airflow_kstream.model.clusters.state_dir_rights import AclEntry
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import ProxyUserCredentials
from airflow_kstream.policy.state_dir import openness
from airflow_kstream.supervise.clusters.copies import copy_name, written_copy
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.doctor.connection import closed_state_dir, told_supervisors
from airflow_kstream.supervise.doctor.state_dir_use import state_dir_rights
from airflow_kstream.supervise.streams.folder.freeze_store import FreezeStore
from tests.live.cli import cluster_file, ran
from tests.live.streams import cluster, rate_stream
from tests.live.token_makers import access_as

PLACE = "/tmp/closed"
US = getuser()


@pytest.fixture
def superuser(minicluster: Minicluster) -> Iterator[Hdfs]:
    with access_as(minicluster, "hdfs") as session:
        yield session.hdfs


@pytest.fixture
def ordinary(minicluster: Minicluster) -> Iterator[Hdfs]:
    with access_as(minicluster, "watcher") as session:
        yield session.hdfs


@pytest.fixture
def gateway(minicluster: Minicluster, superuser: Hdfs, request: pytest.FixtureRequest) -> Iterator[ClusterSession]:
    """A session whose principal may act for others, and owns an open state_dir of this test alone."""
    path = f"{PLACE}/{request.node.name.partition('[')[0]}"
    superuser.make_folder(PLACE, "1777")
    superuser.change_mode(PLACE, "1777")
    with (
        cluster(minicluster, "gateway") as found,
        open_session(replace(found, state_dir=path), found.watcher) as session,
    ):
        session.hdfs.make_folder(path, "777")
        session.hdfs.change_mode(path, "777")
        yield session
        superuser.delete(path, recursive=True)


def keep_copy(session: ClusterSession, user: str, stream: str = "proxied") -> None:
    """Keep a declaration whose stream runs for a proxied user, and give it its folder."""
    spec = rate_stream(stream, ProxyUserCredentials(user))
    place = StreamId(spec.name, session.cluster.state_dir)
    session.hdfs.make_folder(place.folder, "755")
    declared = f"{session.state.path}/{folder_name(FolderKind.DECLARED, 'gateway')}/{place}"
    session.hdfs.make_folder(declared, "755")
    session.hdfs.write(f"{declared}/{copy_name(fingerprint(spec), user)}", written_copy(spec, user), permission="644")


def test_the_check_of_a_connection_makes_it_and_prints_what_is_left(
    minicluster: Minicluster, gateway: ClusterSession, ordinary: Hdfs, tmp_path: Path
) -> None:
    """Another tenant's declaration is at hand, whose user has not been here yet."""
    declaration = tmp_path / "proxied.yaml"
    declaration.write_text(yaml.safe_dump(dict(rate_stream("proxied", ProxyUserCredentials(US)).to_mapping())))
    file = str(cluster_file(minicluster, "gateway", tmp_path, state_dir=gateway.state.path))
    asked = ran("connection", "check", "--cluster", file, str(declaration))
    assert (asked.code, asked.err) == (0, "")
    assert f"  hdfs dfs -setfacl -m user::rwx,group::r-x,other::r-x,user:{US}:rwx {gateway.state.path}" in asked.out
    made = ran("connection", "check", "--cluster", file, str(declaration), "--make", "--json")
    # This connection bounds no declarations, which is a warning of its own.
    assert {step["outcome"] for step in made.data if step["name"] != "allow"} == {"passed"}
    assert not creates(ordinary, gateway.state.path)


def test_a_folder_changes_hands_by_the_printed_commands(
    minicluster: Minicluster, gateway: ClusterSession, tmp_path: Path
) -> None:
    """The third call finds that it has."""
    stream = StreamId("orders", gateway.state.path)
    gateway.hdfs.make_folder(stream.folder, "777")
    gateway.hdfs.change_mode(stream.folder, "777")
    with access_as(minicluster, "watcher") as other:
        other.hdfs.write(f"{stream.folder}/stop-000001", "")
    file = str(cluster_file(minicluster, "gateway", tmp_path, state_dir=gateway.state.path))
    for _ in range(2):
        said = ran("streams", "hand-over", "orders", "--cluster", file, "--to", US)
        assert said.code == 0, said.err
        for command in (line.strip() for line in said.out.splitlines() if line.startswith("  hdfs")):
            carried_out(minicluster, command, "hdfs", tmp_path)
    done = ran("streams", "hand-over", "orders", "--cluster", file, "--to", US).out
    assert f"{stream.folder} belongs to {US}, and nobody else can write in it" in done
    assert gateway.hdfs.names(stream.folder) == frozenset()


def test_a_file_with_the_name_of_a_pattern_goes_alone(
    minicluster: Minicluster, gateway: ClusterSession, tmp_path: Path
) -> None:
    """Hadoop's client reads patterns in what was quoted for a shell."""
    path = gateway.state.path
    for name in ("*", "kept"):
        gateway.hdfs.write(f"{path}/{name}", "")
    carried_out(minicluster, f"hdfs dfs -rm -r {as_word(f'{path}/*')}", "hdfs", tmp_path)
    assert gateway.hdfs.names(path) == {"kept"}


def test_all_who_use_it_can_do_what_they_must_and_no_more(
    minicluster: Minicluster, gateway: ClusterSession, ordinary: Hdfs
) -> None:
    """Three tenants, for whom gateway acts; ada recovers leases, and jane freezes."""
    path, tenants = gateway.state.path, ("sales", "clicks", "prices")

    def as_(user: str) -> AbstractContextManager[ClusterSession]:
        return open_session(gateway.cluster, replace(gateway.identity, do_as=user))

    for tenant in tenants:
        keep_copy(gateway, tenant, stream=tenant)
    with as_("ada") as ada:
        ada.hdfs.make_folder(f"{path}/leases.ada", "755")
    gateway.hdfs.write(f"{path}/{SUPERVISORS_FILE}", "jane\n", permission="644")
    said = closed_state_dir(gateway, make=True)
    assert not said.warns
    for tenant in tenants:
        assert f"{tenant} (runs {tenant}): can create" in said.words
        with as_(tenant) as session:
            session.hdfs.make_folder(f"{path}/{tenant}-0badcafe", "755")
            session.hdfs.write(f"{path}/{tenant}-0badcafe/gen-000001", "")
    with as_("sales") as session, pytest.raises(Denied, match="sticky bit"):
        session.hdfs.delete(f"{path}/clicks-0badcafe", recursive=True)
    with as_("jane") as session:
        FreezeStore(session).freeze(timedelta(hours=1), "a new NameNode")
    assert FreezeStore(gateway).newest().holds(gateway.hdfs.now())
    with as_("ada") as ada:
        ada.hdfs.write(f"{path}/leases.ada/sightings.json", "{}")
        assert not creates(ada.hdfs, path)
    assert not creates(ordinary, path)


def creates(hdfs: Hdfs, path: str) -> bool:
    try:
        hdfs.check_access(path, "-wx")
    except Denied:
        return False
    return True


def carried_out(minicluster: Minicluster, command: str, who: str, tmp_path: Path) -> None:
    """Run a printed command by Hadoop's own client: `hdfs dfs ...`, or what goes into it from `echo`."""
    said, _, hadoop = command.rpartition(" | ")
    words = shlex.split(hadoop)
    assert words[0] == "hdfs"
    line = tmp_path / "line"
    line.write_text(f"{shlex.split(said)[1]}\n" if said else "")
    with ExitStack() as stack:
        stdin = stack.enter_context(line.open())
        done = minicluster.hdfs(*words[1:], as_=who, stdin=stdin.fileno())
    assert done.returncode == 0, done.stderr


def test_one_request_closes_it_for_others_and_keeps_it_open_for_its_users(
    gateway: ClusterSession, ordinary: Hdfs
) -> None:
    path = gateway.state.path
    keep_copy(gateway, US)
    assert creates(ordinary, path)
    said = closed_state_dir(gateway, make=True)
    assert (said.commands, said.warns) == ((), False)
    assert f"{US} (runs proxied): can create" in said.words
    assert not creates(ordinary, path)
    assert creates(gateway.hdfs, path)
    ordinary.list(path)


def test_the_sticky_bit_stays_and_the_mask_stands_in_the_groups_place(gateway: ClusterSession) -> None:
    keep_copy(gateway, US)
    closed_state_dir(gateway, make=True)
    rights = state_dir_rights(gateway.hdfs, gateway.state.path)
    assert rights.permission == "1775"
    assert gateway.hdfs.status(gateway.state.path).acl
    assert rights.of_group == AclEntry("group", "", "r-x")
    assert rights.named == (AclEntry("user", US, "rwx"),)
    assert openness(rights) == ()


def test_an_entry_under_a_mask_gives_no_more_after_the_next_one(gateway: ClusterSession, ordinary: Hdfs) -> None:
    path = gateway.state.path
    gateway.hdfs.change_acl(path, "user::rwx,user:watcher:rwx,group::r-x,other::r-x,mask::r-x")
    assert not creates(ordinary, path)
    assert state_dir_rights(gateway.hdfs, path).named == (AclEntry("user", "watcher", "r-x"),)
    keep_copy(gateway, US)
    closed_state_dir(gateway, make=True)
    assert not creates(ordinary, path)


def test_what_is_printed_works_as_it_is_with_hadoops_own_client(
    minicluster: Minicluster, gateway: ClusterSession, ordinary: Hdfs, tmp_path: Path
) -> None:
    keep_copy(gateway, US)
    commands = closed_state_dir(gateway).commands
    assert len(commands) == 2
    for command in commands:
        carried_out(minicluster, command, "hdfs", tmp_path)
    assert not closed_state_dir(gateway).commands
    assert not creates(ordinary, gateway.state.path)


def test_a_new_supervisor_is_named_by_the_line_that_is_printed(
    minicluster: Minicluster, gateway: ClusterSession, tmp_path: Path
) -> None:
    with access_as(minicluster, "watcher", state_dir=gateway.state.path) as session:
        for command in told_supervisors(session).commands:
            carried_out(minicluster, command, "gateway", tmp_path)
        assert named_supervisors(session.hdfs.read(f"{gateway.state.path}/{SUPERVISORS_FILE}")) == {"watcher"}
        assert not told_supervisors(session).warns
        assert "watcher" in session.state.look().supervisors


def test_a_folder_has_the_group_of_the_one_above(gateway: ClusterSession) -> None:
    """So a group-writable state_dir with that group was opened by nobody's choice."""
    rights = state_dir_rights(gateway.hdfs, gateway.state.path)
    assert rights.group == rights.parents_group
    assert not rights.group_is_chosen


def test_a_folder_without_an_acl_has_no_entries(gateway: ClusterSession) -> None:
    assert gateway.hdfs.acl(gateway.state.path) == ()


def test_its_owner_alone_can_close_it_and_others_get_the_commands(
    minicluster: Minicluster, gateway: ClusterSession
) -> None:
    with (
        access_as(minicluster, "watcher", state_dir=gateway.state.path) as session,
        pytest.raises(Denied, match=r"Its owner, or HDFS's superuser, runs: `hdfs dfs -chmod \+t"),
    ):
        closed_state_dir(session, make=True)
    assert gateway.hdfs.status(gateway.state.path).permission == "777"


def test_a_missing_one_is_made_closed(minicluster: Minicluster, superuser: Hdfs, ordinary: Hdfs) -> None:
    superuser.make_folder(PLACE, "1777")
    superuser.change_mode(PLACE, "1777")
    path = f"{PLACE}/missing/state"
    with access_as(minicluster, "gateway", state_dir=path) as session:
        said = closed_state_dir(session, make=True)
        assert not said.warns
        assert session.hdfs.status(path).permission == "1755"
    assert not creates(ordinary, path)
    superuser.delete(f"{PLACE}/missing", recursive=True)
