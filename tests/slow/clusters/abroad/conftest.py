"""A second cluster: another realm and KDC, another NameNode, and none but protected messages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_kstream.minicluster import Minicluster, MiniclusterConfig
from tests.live.bring_up import bring_up


@pytest.fixture(scope="package")
def abroad(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    plan = MiniclusterConfig(
        tmp_path_factory.mktemp("abroad"), frozenset(), realm="ABROAD.TEST", rpc_protection="integrity,privacy"
    )
    minicluster = bring_up(plan)
    try:
        yield minicluster
    finally:
        minicluster.down()
