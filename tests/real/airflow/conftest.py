"""One Airflow for all tests of this folder, on top of the shared minicluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_kstream.minicluster import Minicluster
from tests.live.airflow import LiveAirflow, live_airflow


@pytest.fixture(scope="session")
def live(minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAirflow]:
    with live_airflow(minicluster, tmp_path_factory.mktemp("airflow")) as airflow:
        yield airflow


@pytest.fixture(scope="module")
def airflow(live: LiveAirflow) -> LiveAirflow:
    return live
