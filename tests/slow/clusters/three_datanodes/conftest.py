"""A cluster of three DataNodes with a KMS and two NameNodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_kstream.minicluster import Feature, Minicluster, MiniclusterConfig
from tests.live.bring_up import bring_up
from tests.live.realms import using

_SITE = "hdfs-site.xml"
SETTINGS = (
    (_SITE, "dfs.namenode.snapshot.capture.openfiles", "true"),
    # Its NameNode does not name the holder of a file to those who ask for another DataNode.
    (_SITE, "dfs.client.block.write.replace-datanode-on-failure.enable", "false"),
    # A dead DataNode counts as dead after 12 s, and not after ten minutes.
    (_SITE, "dfs.namenode.heartbeat.recheck-interval", "1000"),
)
KEY = "orders"


@pytest.fixture(scope="package")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    """The cluster, with a key for encryption zones; libkrb5 in this process knows its realm."""
    root, features = tmp_path_factory.mktemp("three"), frozenset({Feature.HA, Feature.KMS})
    plan = MiniclusterConfig(root, features, realm="THREE.TEST", datanodes=3, daemon_settings=SETTINGS)
    minicluster = bring_up(plan)
    try:
        with using(str(minicluster.krb5_conf)):
            made = minicluster.hadoop_main("org.apache.hadoop.crypto.key.KeyShell", "create", KEY)
            assert made.returncode == 0, made.stderr
            yield minicluster
    finally:
        minicluster.down()
