"""What the tests of HDFS share: sessions of two principals, a client of Hadoop's own, and a dead client's files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from getpass import getuser

import pytest

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.hdfs.namenode import NameNodeRpc
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.supervise.leases.session import LeaseSession
from tests.live.odd_names import ODD_NAMES
from tests.live.recovering import lease_session, standby_first
from tests.live.writers import Writer, leave_open, native_writer, writer

HOME = f"/user/{getuser()}/contract"
LEAKED = f"{HOME}/leaked"
FOLDER = f"{HOME}/opened"
# More than the NameNode returns at a time (dfs.namenode.list.openfiles.num.responses).
MANY = [f"{FOLDER}/many/{number}" for number in range(1100)]
ODD = [f"{FOLDER}/odd/{name}" for name in ODD_NAMES]


@contextmanager
def impatient(minicluster: Minicluster, session: LeaseSession, seconds: float = 5) -> Iterator[NameNodeRpc]:
    """Ask the standby first, and count a NameNode as frozen after seconds instead of half a minute."""
    conf = HadoopConf(str(minicluster.conf_dir))
    addresses = standby_first(minicluster, conf.namenode_rpcs())
    with closing(NameNodeRpc(addresses, conf.namenode_principal, session.identity, seconds=(3, seconds))) as namenode:
        yield namenode


@pytest.fixture(scope="package")
def abandoned(minicluster: Minicluster) -> tuple[str, str]:
    """Two files of a writer that was killed before any test begins: for a minute the NameNode takes it to be alive."""
    paths = (f"{HOME}/abandoned/one", f"{HOME}/abandoned/two")
    leave_open(minicluster, paths, 1000)
    return paths


@pytest.fixture(scope="package")
def owner(minicluster: Minicluster, abandoned: tuple[str, str]) -> Iterator[LeaseSession]:
    """The cluster as the user that owns the files, and is not a superuser."""
    with lease_session(minicluster, "streamer") as session:
        yield session


@pytest.fixture(scope="package")
def superuser(minicluster: Minicluster) -> Iterator[LeaseSession]:
    with lease_session(minicluster, "hdfs") as session:
        yield session


@pytest.fixture(scope="package")
def client(minicluster: Minicluster) -> Iterator[Writer]:
    """Hadoop's own client, alive to the end; it leaked a file at its beginning."""
    with writer(minicluster) as client:
        client.leave(LEAKED, 100)
        client.abandon(LEAKED)
        yield client


@pytest.fixture
def folder(owner: LeaseSession, request: pytest.FixtureRequest) -> str:
    """A folder of this test alone."""
    place = f"{HOME}/{request.node.originalname}"
    owner.base.hdfs.make_folder(place)
    return place


@pytest.fixture(scope="package")
def everything(superuser: LeaseSession) -> NameNodeRpc:
    """The NameNode for a superuser."""
    assert superuser.rpc
    return superuser.rpc


@pytest.fixture(scope="package")
def namenode(owner: LeaseSession) -> NameNodeRpc:
    """The NameNode for an ordinary user."""
    assert owner.rpc
    return owner.rpc


@pytest.fixture(scope="package")
def opened(minicluster: Minicluster, owner: LeaseSession) -> Iterator[None]:
    """A writer's open files, many of them empty and some of odd names with bytes in them; and closed ones."""
    owner.base.hdfs.write(f"{FOLDER}/closed", "closed", overwrite=True)
    # Another folder, whose name begins the same.
    owner.base.hdfs.write(f"{FOLDER}-beside/private", "private", overwrite=True, permission="000")
    with native_writer(minicluster, MANY, 0), native_writer(minicluster, ODD, 5000):
        yield
