"""What tests of recoveries share: the cluster as the user that owns the files, and a folder for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_kstream.minicluster import Minicluster
from tests.live.recovering import Scene, new_folder, scene


@pytest.fixture
def streamer(minicluster: Minicluster) -> Iterator[Scene]:
    with scene(minicluster) as found:
        yield found


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> str:
    return new_folder(request.node.originalname)
