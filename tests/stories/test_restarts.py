"""A stream with nothing but a ticket is restarted, at its horizon and under a fault, and no row is lost or doubled.

Its supervisors are processes of their own, whose requests to the NameNodes go through proxies.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.faults.kept import Clock, Kept, brisk_stream, claims, kept
from tests.live.faults.proxies import Moment, Proxies
from tests.live.faults.table import Tell


@pytest.fixture(scope="module")
def only(minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """One stream for both: a restart costs less than a stream."""
    with (
        closing(Proxies(minicluster)) as proxies,
        kept(minicluster, proxies, tmp_path_factory.mktemp("kept"), brisk_stream("kept")) as stream,
    ):
        yield stream


@pytest.fixture
def stream(only: Kept) -> Kept:
    """The stream, past a commit, whatever the other test left."""
    only.recover()
    return only


def test_a_stream_is_restarted_at_its_horizon_and_loses_and_doubles_no_row(stream: Kept, tell: Tell) -> None:
    before = stream.look()
    assert before.claim is not None
    assert before.current is not None
    # Its tokens end in a week. Planned at half of the time that has passed, the restart is due for certain: clocks
    # tell whole seconds.
    passed = (before.now - before.claim.claimed_at) / stream.minicluster.plan.max_lifetime
    due = replace(stream.spec, restart=replace(stream.spec.restart, plan_ratio=passed / 2))
    hasty = Reconciler(replace(stream.subject, spec=due), tell=lambda line: None)
    clock = Clock()
    report = hasty.run(Mode.WATCH)
    assert report.generation == before.generation + 1
    stream.follow(before.generation + 1)
    assert "its driver stopped at the marker" in " ".join(done.what for done in report.done)
    first = stream.application(before.generation)
    assert first.finished is not None
    after = stream.look()
    assert after.claim is not None
    assert first.finished <= after.claim.claimed_at
    assert after.checkpoints[0].query == before.checkpoints[0].query
    stream.conclude(tell, "none: a planned restart", f"generation {report.generation} went on", clock.seconds)


def test_a_claim_whose_answer_is_lost_in_a_namenode_failover_is_gone_on_with(stream: Kept, tell: Tell) -> None:
    """The NameNode granted the claim and is the standby before it could say so; the other NameNode finds it taken."""
    with stream.restart(Moment.ANSWERED, claims) as restart:
        clock = Clock()
        active = stream.minicluster.failover()
        restart.gate.open(lose=True)
    stream.follow(restart.after, restart.supervisor)
    seen = f"{active} took over; the supervisor found its own claim and submitted it"
    stream.conclude(tell, "NameNode failover during a claim, its answer lost", seen, clock.seconds)
