"""A driver whose tokens are dead looks healthy until it connects anew: on a cluster whose tokens die soon."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from tests.live.faults.cluster import faulty_cluster
from tests.live.faults.kept import Clock, Kept, brisk_stream, kept
from tests.live.faults.proxies import Proxies
from tests.live.faults.table import Tell
from tests.live.streams import await_that

pytestmark = pytest.mark.faults
LIFE = timedelta(minutes=3)


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Kept]:
    with faulty_cluster(tmp_path / "mortal", realm="MORTAL.TEST", token_life=LIFE) as cluster:
        proxies = Proxies(cluster)
        with kept(cluster, proxies, tmp_path, brisk_stream("mortal")) as stream:
            yield stream
        proxies.close()


def test_a_namenode_failover_after_the_death_of_its_tokens_ends_a_driver(mortal: Kept, tell: Tell) -> None:
    """No supervisor was there to restart it in time; the next one does."""
    before = mortal.recover()
    await_that(lambda: outlives_its_tokens(mortal), "its tokens are dead")
    mortal.await_a_further_commit()
    mortal.minicluster.failover()
    clock = Clock()
    await_that(lambda: not mortal.application(before).alive, "its driver dies of a dead token")
    died = clock.seconds
    mortal.supervisors.begin().succeed()
    assert mortal.await_commits(before + 1) == before + 1
    seen = f"it committed past its horizon, died {died:.0f} s after the failover, generation {before + 1} follows"
    mortal.conclude(tell, "NameNode failover after token death", seen, clock.seconds)


def outlives_its_tokens(stream: Kept) -> bool:
    """Tell whether its tokens are surely dead: its client had them before YARN accepted it, which is after the claim.

    The horizon comes earlier, by as long as the client took.
    """
    seen = stream.look()
    app, ends = seen.current, horizon_of(stream.spec, seen)
    if app is None or app.started is None or seen.now < app.started + LIFE + timedelta(seconds=5):
        return False
    assert ends is not None
    assert ends.passed(seen.now)
    return True
