"""One cluster for all faults that a worker tries, and one stream, whose requests go through proxies. A plugin, because
tests/real/faults and tests/slow/faults share them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_kstream.minicluster import Minicluster
from tests.live.faults.cluster import faulty_cluster
from tests.live.faults.kept import Kept, brisk_stream, kept
from tests.live.faults.proxies import Proxies


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    with faulty_cluster(tmp_path_factory.mktemp("faulty")) as minicluster:
        yield minicluster


@pytest.fixture(scope="session")
def proxies(faulty: Minicluster) -> Iterator[Proxies]:
    opened = Proxies(faulty)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def only(faulty: Minicluster, proxies: Proxies, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """One stream for all tests: a restart costs less than a stream."""
    with kept(faulty, proxies, tmp_path_factory.mktemp("kept"), brisk_stream("kept")) as stream:
        yield stream


@pytest.fixture
def stream(only: Kept) -> Kept:
    """The stream, running, whatever the last test left: no test needs another one to have passed."""
    only.recover()
    return only
