"""The last block of an open file as its writer and its DataNodes' disks have it: committed, damaged, or removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.rpc.connection import RemoteError, Terms
from airflow_kstream.clients.rpc.failover import ActiveServer
from airflow_kstream.clients.rpc.sasl import protections
from airflow_kstream.minicluster import Minicluster, record
from airflow_kstream.model.formats.protobuf import encode
from airflow_kstream.model.kerberos.identity import Identity
from tests.live.writers.hadoop_says import located

_PROTOCOL = "org.apache.hadoop.hdfs.protocol.ClientProtocol"


@contextmanager
def namenode_of(minicluster: Minicluster, who: str) -> Iterator[ActiveServer]:
    """The active NameNode for calls that no client of ours has."""
    conf = HadoopConf(str(minicluster.conf_dir))
    identity = Identity(minicluster.principal(who), keytab=str(minicluster.keytab(who)))
    terms = Terms(_PROTOCOL, conf.namenode_principal, protections(conf.rpc_protection), 5, 30)
    with closing(ActiveServer(conf.namenode_rpcs(), identity, terms)) as namenode:
        yield namenode


def commit(minicluster: Minicluster, path: str, holder: str, length: int) -> None:
    """Say as its holder that the last block is complete, as a writer does that closes the file.

    No DataNode has reported a finished replica, so the block is COMMITTED and the file stays open
    (FSDirWriteFileOp.completeFileInternal).
    """
    block = located(minicluster, path)["lastLocatedBlock"]["block"]
    name = encode({1: block["blockPoolId"], 2: block["blockId"], 3: block["generationStamp"], 4: length})
    with namenode_of(minicluster, "streamer") as namenode:
        (answer,) = namenode.call("close a file", "complete", [encode({1: path, 2: holder, 3: name})])
    assert not isinstance(answer, RemoteError)
    assert not answer.number(1), "it is closed"


def replicas(minicluster: Minicluster, path: str) -> dict[str, tuple[Path, Path]]:
    """Return the files of the last block's replicas, with and without the checksums, by the name of their DataNode."""
    site = record.read_site(minicluster.root)
    last = located(minicluster, path)["lastLocatedBlock"]
    ports = {node["xferPort"] for node in last["locations"]}
    names = [name for name in site.datanodes if site.ports[f"{name}-data"] in ports]
    found = {name: sorted(site.folders.blocks(name).rglob(f"blk_{last['block']['blockId']}*")) for name in names}
    return {name: (data, checksums) for name, (data, checksums) in found.items()}


def restart_datanode(minicluster: Minicluster, path: str, between: Callable[[Path], object] = Path.exists) -> None:
    """Kill the DataNode of the only replica, do something to the replica's files, and start it again."""
    ((name, files),) = replicas(minicluster, path).items()
    minicluster.kill(name)
    for file in files:
        between(file)
    minicluster.start(name)


def remove_only_replica(minicluster: Minicluster, path: str) -> None:
    """Let its DataNode come back without it, as after the loss of a disk."""
    restart_datanode(minicluster, path, Path.unlink)
