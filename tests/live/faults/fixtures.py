"""One cluster for all faults that a worker tries, and one stream, whose requests go through proxies. A plugin, because
tests/real/faults and tests/slow/faults share them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_kstream.demo.flink_job import build_job
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.model.streams.stream import EngineName, StreamSpec
from tests.live.faults.cluster import faulty_cluster
from tests.live.faults.kept import Kept, brisk_flink_stream, brisk_stream, kept
from tests.live.faults.proxies import Proxies


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    with faulty_cluster(tmp_path_factory.mktemp("faulty"), more=frozenset({Feature.FLINK})) as minicluster:
        yield minicluster


@pytest.fixture(scope="session")
def proxies(faulty: Minicluster) -> Iterator[Proxies]:
    opened = Proxies(faulty)
    yield opened
    opened.close()


@pytest.fixture(scope="session", params=[EngineName.SPARK], ids=str)
def only(
    request: pytest.FixtureRequest, faulty: Minicluster, proxies: Proxies, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kept]:
    """One stream for all tests of its engine: a restart costs less than a stream."""
    folder = tmp_path_factory.mktemp("kept")
    with kept(faulty, proxies, folder, _spec(request.param, faulty, folder)) as stream:
        yield stream
        # What another engine's needs of the queue.
        stream.stop()


def _spec(engine: EngineName, minicluster: Minicluster, folder: Path) -> StreamSpec:
    if engine is EngineName.SPARK:
        return brisk_stream("kept")
    return brisk_flink_stream(minicluster, build_job(Feature.FLINK, folder / "rows.jar"), "kept")


@pytest.fixture
def stream(only: Kept) -> Kept:
    """The stream, running, whatever the last test left: no test needs another one to have passed."""
    only.recover()
    return only
