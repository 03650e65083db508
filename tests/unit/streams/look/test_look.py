"""What one look at a stream sees while somebody else acts.

The servers are simulated, because what is tested happens between two of their replies.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_kstream.clients.hdfs.webhdfs import FileStatus
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.look.observe import Prefetched, observe
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.simulated.life import SPEC, Life
from tests.simulated.servers import SimHdfs


@dataclass
class Interrupted(SimHdfs):
    """Just before the stream's folder is listed for the first time, another supervisor brings the stream up."""

    other: Reconciler | None = None

    def list(self, path: str) -> tuple[FileStatus, ...]:
        other, self.other = self.other, None
        if other is not None:
            other.run(Mode.ENSURE)
        return super().list(path)


def test_a_claim_that_is_seen_is_seen_with_the_application_that_it_had_then(life: Life) -> None:
    """The folder is read first: read last, it would show a claim whose application the earlier listing lacks."""
    hdfs = Interrupted(life.clock)
    life.use(hdfs)
    hdfs.other = Reconciler(life.run, tell=lambda line: None)
    seen = observe(life.run)
    assert seen.claim is not None
    assert seen.current is not None
    assert (seen.claim.generation, seen.current.alive) == (1, True)


def test_a_generation_that_a_common_listing_lacks_is_looked_up_by_its_tag(life: Life) -> None:
    """A listing of all streams was made before the look: its predecessor, which it has, must not stand for it."""
    life.begin()
    life.engine.complete_epoch(SPEC)
    before = life.yarn.applications(ALL_STREAMS_TAG)
    life.request_restart()
    assert life.reconcile().generation == 2
    seen = observe(life.run, Prefetched(listed=before))
    assert seen.current is not None
    assert (seen.current.id, seen.current.alive) == ("application_1_0002", True)
