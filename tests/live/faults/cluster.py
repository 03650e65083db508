"""The cluster that the fault suite breaks: two NameNodes, two ResourceManagers, and short patience with the lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from airflow_kstream.minicluster import Feature, Minicluster, MiniclusterConfig
from tests.live.bring_up import bring_up

FEATURES = frozenset({Feature.HA, Feature.RM_HA})
# Long enough for a busy machine, and for a failover of the ResourceManagers.
EXPIRY = timedelta(minutes=1)


@contextmanager
def faulty_cluster(
    root: Path,
    realm: str = "FAULTS.TEST",
    token_life: timedelta = timedelta(days=7),
    renew_interval: timedelta = timedelta(days=1),
    more: frozenset[Feature] = frozenset(),
) -> Iterator[Minicluster]:
    """A cluster of this realm: a process may know those of several. Nobody can renew a token past its `token_life`."""
    plan = MiniclusterConfig(
        root,
        FEATURES | more,
        renew_interval=min(token_life, renew_interval),
        max_lifetime=token_life,
        realm=realm,
        expiry=EXPIRY,
    )
    minicluster = bring_up(plan)
    try:
        yield minicluster
    finally:
        minicluster.down()
