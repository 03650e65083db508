"""Every server of a secured cluster answers to Kerberos alone, and knows who may act for others."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import closing
from getpass import getuser

import pytest
import requests

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.http import kerberos_session
from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Denied
from airflow_kstream.model.kerberos.identity import Identity
from tests.live.token_makers import identity

PAGES = {
    "nn1": "/jmx",
    "nn2": "/conf",
    "datanode": "/jmx",
    "journalnode": "/jmx",
    "resourcemanager": "/ws/v1/cluster/info",
    "nodemanager": "/ws/v1/node/info",
}
LISTING = "import sys; from hdfs_native import Client; list(Client(sys.argv[1]).list_status('/'))"


@pytest.mark.parametrize("daemon", PAGES)
def test_every_web_endpoint_answers_to_kerberos_and_to_nothing_else(minicluster: Minicluster, daemon: str) -> None:
    ports = json.loads((minicluster.root / "minicluster.json").read_text())["ports"]
    url = f"http://localhost:{ports[f'{daemon}-web']}{PAGES[daemon]}"
    anonymous = requests.get(url, timeout=60)
    claimed = requests.get(url, params={"user.name": "hdfs"}, timeout=60)
    assert (anonymous.status_code, claimed.status_code) == (401, 401)
    assert anonymous.headers["WWW-Authenticate"] == "Negotiate"
    with kerberos_session(identity(minicluster, "streamer"), Tls()) as streamer:
        assert streamer.get(url, timeout=60).status_code == 200


def test_rpc_refuses_a_client_without_a_ticket(minicluster: Minicluster) -> None:
    environment = minicluster.client_env("watcher") | {"KRB5CCNAME": "FILE:/nonexistent"}
    command = [sys.executable, "-c", LISTING, minicluster.default_fs]
    refused = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "GSS" in refused.stderr or "SASL" in refused.stderr


def test_kafka_talks_to_no_client_without_a_login(minicluster: Minicluster) -> None:
    """A metadata request (key 3) before the login closes the connection; after a login it is an ordinary one."""
    host, port = minicluster.bootstrap_servers.split(":")
    metadata = bytes.fromhex("0003 0000 00000001 ffff 00000000")
    with socket.create_connection((host, int(port)), 5) as connection:
        connection.sendall(len(metadata).to_bytes(4, "big") + metadata)
        assert connection.recv(1) == b""


def test_only_a_principal_that_the_servers_trust_acts_for_others(minicluster: Minicluster) -> None:
    def as_(name: str, user: str) -> tuple[Hdfs, ResourceManager]:
        who = Identity(minicluster.principal(name), str(minicluster.keytab(name)), do_as=user)
        return Hdfs(minicluster.namenodes, who, Tls()), ResourceManager(minicluster.resourcemanagers, who, Tls())

    hdfs, yarn = as_("gateway", getuser())
    with closing(hdfs), closing(yarn):
        hdfs.write(f"/user/{getuser()}/for-others", "", overwrite=True, permission="600")
        hdfs.check_access(f"/user/{getuser()}/for-others", "r--")
        assert yarn.applications("contract-nothing") == ()
    hdfs, yarn = as_("watcher", getuser())
    with closing(hdfs), closing(yarn):
        with pytest.raises(Denied, match="not allowed to impersonate"):
            hdfs.list("/")
        with pytest.raises(Denied, match="not allowed to impersonate"):
            yarn.applications("contract-nothing")


def test_a_principal_with_an_instance_is_known_by_a_short_name(minicluster: Minicluster) -> None:
    edge = identity(minicluster, "streamer/edge.kstream.test")
    with closing(ResourceManager(minicluster.resourcemanagers, edge, Tls())) as yarn:
        assert yarn.user() == getuser()
    with closing(Hdfs(minicluster.namenodes, edge, Tls())) as hdfs:
        assert hdfs.user() == getuser()
        hdfs.write(f"/user/{getuser()}/of-edge", "", overwrite=True)
        assert hdfs.status(f"/user/{getuser()}/of-edge").owner == getuser()


def test_the_namenode_tells_of_a_right_without_its_being_used(minicluster: Minicluster) -> None:
    secret = f"/user/{getuser()}/secret-job.py"
    with closing(Hdfs(minicluster.namenodes, identity(minicluster, "streamer"), Tls())) as owner:
        owner.write(secret, "", overwrite=True, permission="600")
        owner.check_access(secret, "r--")
    with closing(Hdfs(minicluster.namenodes, identity(minicluster, "gateway"), Tls())) as other:
        with pytest.raises(Denied, match="Permission denied"):
            other.check_access(secret, "r--")
        other.check_access("/", "r-x")
