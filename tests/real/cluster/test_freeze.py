"""A freeze on the real cluster: after one command no supervisor restarts, starts or stops anything until it ends."""

from __future__ import annotations

from collections.abc import Iterator
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.authors import ALL_STREAMS
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.policy.streams.restart.reconcile import Mode
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.orders.desired import request_restart
from tests.live.cli import Ran, cluster_file, ran
from tests.live.streams import await_commits, rate_stream, reconciler

NAME = "frozen"


@pytest.fixture
def cluster(minicluster: Minicluster, tmp_path: Path) -> Iterator[str]:
    """The file of the cluster, which nobody leaves frozen for the tests to come."""
    file = str(cluster_file(minicluster, "streamer", tmp_path))
    yield file
    assert ran("streams", "unfreeze", "--cluster", file).code == 0


def test_a_frozen_cluster_changes_nothing_until_it_is_lifted(minicluster: Minicluster, cluster: str) -> None:
    def kstream(*words: str) -> Ran:
        return ran("streams", *words, "--cluster", cluster)

    spec = rate_stream(NAME, TicketCredentials())
    with reconciler(minicluster, spec) as supervisor:
        first = supervisor.run()
        await_commits(supervisor.session, spec)
        frozen = kstream("freeze", "--reason", "a new NameNode", "--for", "1h")
        assert frozen.code == 0
        assert "is frozen until" in frozen.words
        # Two words, so that the second is the one that counts.
        assert kstream("freeze", "--reason", "a newer NameNode", "--for", "20m").code == 0
        order = supervisor.session.orders.newest(ALL_STREAMS, (), supervisor.session.state.look())
        assert order is not None
        assert (order.author, order.number >= 2) == (getuser(), True)

        request_restart(supervisor.subject, "a new jar")
        report = supervisor.run(Mode.WATCH)
        assert (report.phase, report.job.application, report.done) == (Phase.FROZEN, first.job.application, ())
        assert "a newer NameNode" in report.freeze
        verdict = Watch(supervisor.session).round([NAME])[NAME]
        assert not verdict.calls_for_action
        assert "a newer NameNode" in kstream("status", "--json").data[NAME]["freeze"]
        refused = kstream("stop", NAME)
        assert refused.code == 1
        assert "--despite-freeze" in refused.err
        assert supervisor.session.yarn.application(first.job.application or "").alive

        stopped = kstream("stop", NAME, "--despite-freeze")
        assert stopped.code == 0, stopped.err
        assert not supervisor.session.yarn.application(first.job.application or "").alive
        assert kstream("start", NAME).code == 0
        assert supervisor.run(Mode.WATCH).phase is Phase.FROZEN
        assert kstream("unfreeze").code == 0
        assert Watch(supervisor.session).round([NAME])[NAME].calls_for_action
        assert kstream("stop", NAME).code == 0
