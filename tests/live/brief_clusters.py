"""A minicluster of a test's own, whose tokens live for seconds or minutes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_kstream.minicluster import Minicluster, MiniclusterConfig
from airflow_kstream.minicluster.config import Feature
from tests.live.bring_up import bring_up


@contextmanager
def brief_cluster(
    folder: Path,
    renewal: timedelta,
    life: timedelta,
    features: frozenset[Feature] = frozenset(),
    realm: str = MiniclusterConfig.realm,
) -> Iterator[Minicluster]:
    """Start one, and let this process use its realm; a token must be renewed after `renewal`, and ends after `life`."""
    up = bring_up(MiniclusterConfig(folder, features, renewal, life, realm=realm))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KRB5_CONFIG", str(up.krb5_conf))
            yield up
    finally:
        up.down()
