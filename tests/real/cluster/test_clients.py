"""The clients against the real servers: permissions, and the words of each refusal."""

from __future__ import annotations

import shutil
import stat
from base64 import b64encode
from dataclasses import replace
from datetime import timedelta
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.cluster import Cluster, Tls
from airflow_kstream.model.errors import Conflict, CredentialError, Denied, NotFound, Unavailable
from airflow_kstream.model.identity import Identity
from airflow_kstream.supervise.clusters.connection import cluster_of
from airflow_kstream.supervise.clusters.exclusive_renames import require_exclusive_renames
from airflow_kstream.supervise.clusters.token_lifetimes import learn_lifetimes
from airflow_kstream.supervise.doctor.connection import check_connection
from tests.live.streams import cluster, fields


@pytest.fixture
def edge(minicluster: Minicluster) -> Identity:
    name = "streamer/edge.kstream.test"
    return Identity(minicluster.principal(name), keytab=str(minicluster.keytab(name)))


@pytest.fixture
def hdfs(minicluster: Minicluster, edge: Identity) -> Hdfs:
    return Hdfs(minicluster.namenodes, edge, Tls())


@pytest.fixture
def yarn(minicluster: Minicluster, edge: Identity) -> ResourceManager:
    return ResourceManager(minicluster.resourcemanagers, edge, Tls())


@pytest.fixture
def playground(hdfs: Hdfs, request: pytest.FixtureRequest) -> str:
    folder = f"/user/{getuser()}/{request.node.name}"
    hdfs.make_folder(folder)
    return folder


def test_every_step_of_a_good_connection_passes(minicluster: Minicluster) -> None:
    with cluster(minicluster) as found:
        steps = list(check_connection(found))
    assert [step.name for step in steps if not step.passed] == []
    assert len(steps) == 8


def test_a_connection_with_a_wrong_keytab_fails_step_by_step_and_in_words(minicluster: Minicluster) -> None:
    with cluster(minicluster) as found:
        wrong = replace(
            found, watcher=Identity(minicluster.principal("streamer"), keytab=str(minicluster.keytab("watcher")))
        )
        steps = {step.name: step for step in check_connection(wrong)}
    assert steps["resolve"].passed
    assert not steps["ticket"].passed
    assert str(minicluster.keytab("watcher")) in steps["ticket"].detail
    assert not steps["active NameNode"].passed


def test_the_lifetimes_are_those_that_the_namenode_grants(minicluster: Minicluster, hdfs: Hdfs, edge: Identity) -> None:
    found = learn_lifetimes(hdfs, edge)
    assert found.max_lifetime == minicluster.plan.max_lifetime
    assert abs(found.renew_interval - minicluster.plan.renew_interval) < timedelta(minutes=1)


def test_of_two_renames_onto_one_name_the_namenode_grants_one(hdfs: Hdfs, playground: str) -> None:
    for rival in ("ours", "theirs"):
        hdfs.write(f"{playground}/{rival}", rival)
    hdfs.rename_onto_nothing(f"{playground}/ours", f"{playground}/claim")
    with pytest.raises(Conflict):
        hdfs.rename_onto_nothing(f"{playground}/theirs", f"{playground}/claim")
    assert hdfs.read(f"{playground}/claim") == "ours"


def test_the_namenodes_pass_the_check_of_their_renames_and_nothing_is_left(hdfs: Hdfs, playground: str) -> None:
    require_exclusive_renames(hdfs, playground)
    assert hdfs.list(playground) == ()


def test_a_folder_is_made_with_the_sticky_bit_and_says_so(hdfs: Hdfs, playground: str) -> None:
    """A stream that is held before its first claim has a folder with the rights of its state_dir."""
    hdfs.make_folder(f"{playground}/shared", "1777")
    assert hdfs.status(f"{playground}/shared").permission == "1777"


def test_the_active_namenode_is_found_before_and_after_a_failover(
    minicluster: Minicluster, hdfs: Hdfs, playground: str
) -> None:
    hdfs.write(f"{playground}/before", "1")
    minicluster.failover()
    hdfs.write(f"{playground}/after", "2")
    assert {file.name for file in hdfs.list(playground)} == {"before", "after"}


def test_what_a_principal_may_not_read_is_denied_with_its_name(
    minicluster: Minicluster, hdfs: Hdfs, playground: str
) -> None:
    hdfs.write(f"{playground}/own", "private", permission="600")
    other = Hdfs(
        minicluster.namenodes,
        Identity(minicluster.principal("watcher"), keytab=str(minicluster.keytab("watcher"))),
        Tls(),
    )
    with pytest.raises(Denied, match=minicluster.principal("watcher")):
        other.read(f"{playground}/own")


def test_what_is_not_there_is_not_found(hdfs: Hdfs, yarn: ResourceManager, playground: str) -> None:
    with pytest.raises(NotFound):
        hdfs.read(f"{playground}/nothing")
    with pytest.raises(NotFound):
        yarn.application("application_1_0001")
    assert hdfs.list(f"{playground}/nothing") == ()
    assert yarn.applications("kstream-stream-nobody") == ()


def test_a_server_that_is_away_is_named_and_a_retry_is_advised(edge: Identity) -> None:
    with pytest.raises(Unavailable, match=r"http://localhost:1.*Retrying may help"):
        ResourceManager(("http://localhost:1",), edge, Tls()).applications("kstream")
    with pytest.raises(Unavailable, match="http://localhost:1"):
        Hdfs(("http://localhost:1",), edge, Tls()).list("/")


def test_one_process_speaks_as_two_principals(minicluster: Minicluster, hdfs: Hdfs) -> None:
    superuser = Hdfs(
        minicluster.namenodes, Identity(minicluster.principal("hdfs"), keytab=str(minicluster.keytab("hdfs"))), Tls()
    )
    superuser.make_folder("/only-hdfs", "700")
    superuser.write("/only-hdfs/file", "x")
    with pytest.raises(Denied):
        hdfs.list("/only-hdfs")
    assert [file.name for file in superuser.list("/only-hdfs")] == ["file"]


def test_a_ticket_is_written_whole_private_and_for_the_right_principal(edge: Identity, tmp_path: Path) -> None:
    cache = tmp_path / "tickets"
    left = tickets.acquire(edge, cache)
    assert left > timedelta(minutes=1)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["tickets"]
    copied = tmp_path / "copy"
    assert tickets.acquire(Identity(edge.principal, ticket_cache=str(cache)), copied) > timedelta(minutes=1)
    assert tickets.inspect(str(copied)).granting == tickets.inspect(str(cache)).granting


def test_a_failed_login_leaves_the_old_ticket_as_it_was(
    minicluster: Minicluster, edge: Identity, tmp_path: Path
) -> None:
    cache = tmp_path / "tickets"
    tickets.acquire(edge, cache)
    before = cache.read_bytes()
    with pytest.raises(CredentialError, match="there is no such file"):
        tickets.acquire(replace(edge, keytab=str(tmp_path / "gone.keytab")), cache)
    with pytest.raises(CredentialError, match=r"nobody@KSTREAM\.TEST"):
        tickets.acquire(Identity(minicluster.principal("nobody"), keytab=edge.keytab), cache)
    assert cache.read_bytes() == before


def test_a_login_with_a_rotated_keytab_explains_what_most_likely_happened(
    minicluster: Minicluster, tmp_path: Path
) -> None:
    minicluster.add_principal("rotated")
    old = shutil.copy(minicluster.keytab("rotated"), tmp_path / "old.keytab")
    minicluster.rotate("rotated")
    behind = Identity(minicluster.principal("rotated"), keytab=str(old))
    with pytest.raises(CredentialError, match="newer key than the keytab"):
        Hdfs(minicluster.namenodes, behind, Tls()).status("/")
    with pytest.raises(CredentialError, match="newer key than the keytab"):
        tickets.acquire(behind, tmp_path / "cache")


def test_a_private_folder_is_closed_to_others_and_gone_afterwards() -> None:
    with private_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()


def test_a_cluster_is_described_by_its_hadoop_conf_folder(minicluster: Minicluster) -> None:
    with cluster(minicluster) as found:
        described: Cluster = found
    assert described.namenodes == minicluster.namenodes
    assert described.resourcemanagers == minicluster.resourcemanagers
    assert described.default_fs == minicluster.default_fs


def test_a_keytab_in_a_connection_is_private_in_use_and_gone_afterwards(
    minicluster: Minicluster,
) -> None:
    content = minicluster.keytab("streamer").read_bytes()
    held = fields(minicluster, keytab_path=None, keytab=b64encode(content).decode())
    assert b64encode(content).decode() not in repr(held)
    with cluster_of("held", held) as found:
        keytab = Path(found.watcher.keytab or "")
        assert stat.S_IMODE(keytab.stat().st_mode) == 0o600
        assert stat.S_IMODE(keytab.parent.stat().st_mode) == 0o700
        assert [step.name for step in check_connection(found) if not step.passed] == []
    assert not keytab.parent.exists()


def test_names_that_begin_alike_are_found_among_others(hdfs: Hdfs, playground: str) -> None:
    others = [f"{playground}/{name}" for name in ("^before", "_", "part-0", "é")]
    for path in (*others, *(f"{playground}/_{number}" for number in range(3))):
        hdfs.write(path, "")
    assert hdfs.names_beginning(playground, "_") == {"_", "_0", "_1", "_2"}
    assert hdfs.names_beginning(f"{playground}/nowhere", "_") == frozenset()
