"""The cluster that the fault suite breaks: two NameNodes, two ResourceManagers, and short patience with the lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from airflow_kstream.minicluster import Feature, Minicluster, MiniclusterConfig

FEATURES = frozenset({Feature.HA, Feature.RM_HA})
# Long enough for a busy machine, and for a failover of the ResourceManagers.
EXPIRY = timedelta(seconds=30)


@contextmanager
def faulty_cluster(root: Path) -> Iterator[Minicluster]:
    minicluster = Minicluster.up(MiniclusterConfig(root, FEATURES, realm="FAULTS.TEST", expiry=EXPIRY))
    try:
        yield minicluster
    finally:
        minicluster.down()
