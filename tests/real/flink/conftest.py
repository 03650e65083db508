"""A cluster with both Flinks and Kafka, whose delegation tokens need a renewal every two minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_kstream.demo.flink_job import build_job
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import FLINKS, Feature
from airflow_kstream.supervise.clusters.session import ClusterSession
from tests.live.brief_clusters import brief_cluster
from tests.live.flink import FlinkRun
from tests.live.token_makers import access_as

NewRun = Callable[..., FlinkRun]


@pytest.fixture(scope="package")
def flinks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    folder, renewal, life = tmp_path_factory.mktemp("flinks"), timedelta(minutes=2), timedelta(hours=1)
    # This process may know the realm of another minicluster, too.
    with brief_cluster(folder, renewal, life, frozenset({*FLINKS, Feature.KAFKA}), "FLINK.TEST") as up:
        yield up


@pytest.fixture(scope="package")
def session(flinks: Minicluster) -> Iterator[ClusterSession]:
    with access_as(flinks, "streamer") as opened:
        yield opened


# Both do the same here, so the newer one is left to `--slow`.
@pytest.fixture(
    scope="package", params=[Feature.FLINK, pytest.param(Feature.FLINK_2, marks=pytest.mark.compatibility)], ids=str
)
def feature(request: pytest.FixtureRequest) -> Feature:
    return Feature(request.param)


@pytest.fixture(scope="package")
def new_run(flinks: Minicluster, feature: Feature, tmp_path_factory: pytest.TempPathFactory) -> NewRun:
    """What makes a generation of the demonstration's job, of a stream with this name."""
    jar = build_job(feature, tmp_path_factory.mktemp("jar") / "rows.jar")

    def made(name: str, number: int = 1) -> FlinkRun:
        folder: Path = tmp_path_factory.mktemp(f"{name}-{number}") / "conf"
        return FlinkRun(flinks, feature, jar, folder, f"{name}-{feature}", number)

    return made
