"""A process that is a triggerer and its workers, for an incident in the time that its parent lets pass.

The tasks, the triggers, the poller and the metrics are the package's, and Airflow's StatsD client sends. The cluster is
simulated, because a horizon is a week away: each line that arrives is a word of the incident, and each is answered
when it is done. The heartbeat alone has the time of this host, which Prometheus compares with its own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics.stats_utils import get_stats_factory

from airflow_kstream import metrics
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from airflow_kstream.triggers import poller as polling
from tests.simulated.fleet import CONNECTION, Fleet
from tests.simulated.servers import ONE_WEEK

MINUTE = 60.0
CAUSE = "User class threw exception: java.lang.ArithmeticException: / by zero"


class Incident:
    """A cluster with the streams `orders` and `clicks`, and what happens to them. The methods are the words."""

    def __init__(self) -> None:
        stats.initialize(factory=get_stats_factory(), export_legacy_names=True)
        send = stats.gauge
        patch = pytest.MonkeyPatch()
        self.fleet = Fleet(patch, cast("Any", SimpleNamespace(records=[], set_level=lambda level: None)))
        # The fleet keeps metrics to itself, and its poller has the fleet's clock: Prometheus gets both for real.
        patch.setattr(stats, "gauge", send)
        patch.setattr(polling, "datetime", datetime)
        self.fleet.declare("orders", "clicks", watch=WatchPolicy(every=timedelta(minutes=1)))
        self.clicks_fails = False
        self._runs: list[asyncio.Task[None]] = []

    async def minute(self) -> None:
        """Let a minute pass in which the streams that can work do."""
        await self._pass(1)

    async def _pass(self, minutes: int) -> None:
        for _ in range(minutes):
            await asyncio.sleep(MINUTE)
            for name, spec in self.fleet.specs.items():
                if not (name == "clicks" and self.clicks_fails) and self._lives(name):
                    self._commit(spec)
                if self.fleet.ended.pop(name, None) is not None:
                    # The schedule's next run.
                    self._runs.append(asyncio.create_task(self.fleet._task(spec)))

    async def clicks_breaks(self) -> None:
        """Let each generation of `clicks` end of one error, for two hours and a half."""
        self.clicks_fails = True
        for _ in range(25):
            for _, app in self.fleet.generations("clicks"):
                if app.alive:
                    self.fleet.yarn.end(app.id, ApplicationState.FAILED, CAUSE)
            await self._pass(6)

    async def clicks_is_repaired(self) -> None:
        self.clicks_fails = False
        await self._pass(180)

    async def claims_are_refused(self) -> None:
        """Let the restart window begin when no restart can be claimed."""
        self.fleet.hdfs.refuses_writes = True
        self.fleet.clock.ahead += 0.85 * ONE_WEEK

    async def horizon_passes(self) -> None:
        self.fleet.clock.ahead += 0.16 * ONE_WEEK

    async def claims_are_taken(self) -> None:
        self.fleet.hdfs.refuses_writes = False
        await self._pass(20)

    async def cluster_goes(self) -> None:
        self.fleet.yarn.away = True
        await self._pass(20)

    async def cluster_returns(self) -> None:
        self.fleet.yarn.away = False
        await self._pass(2)

    async def tasks_run(self) -> None:
        """Send what tasks on a schedule send, and the watcher of a stream whose tokens are pushed.

        What they find has tests of its own, and neither `orders` nor `clicks` is refreshed.
        """
        metrics.ticket_gauge("remaining", 36000.0, CONNECTION, "etl@EXAMPLE.COM")
        metrics.ticket_gauge("alert", 0.0, CONNECTION, "etl@EXAMPLE.COM")
        metrics.keytab_gauge("unusable", 0.0, CONNECTION, "etl@EXAMPLE.COM")
        metrics.lease_gauge("stuck_files_left_alone", 0.0, CONNECTION, "/data/in")
        metrics.cluster_gauge("undeclared_streams", 0.0, CONNECTION)
        metrics.cluster_gauge("environment_ended", 0.0, CONNECTION)
        metrics.cluster_count("notifications", 1, CONNECTION)
        metrics.gauge("push_due_seconds", 36000.0, CONNECTION, "orders")
        metrics.cluster_count("notifications_dropped", 1, CONNECTION)

    async def told(self) -> None:
        """Do each word as it arrives, until there are no more."""
        for line in sys.stdin:
            word: Callable[[], Any] = getattr(self, line.strip())
            await word()
            print("done", flush=True)

    def _commit(self, spec: StreamSpec) -> None:
        """Complete an epoch: what its supervisor may not write concerns no job."""
        refuses, self.fleet.hdfs.refuses_writes = self.fleet.hdfs.refuses_writes, False
        self.fleet.engine.complete_epoch(spec)
        self.fleet.hdfs.refuses_writes = refuses

    def _lives(self, name: str) -> bool:
        return any(app.alive for _, app in self.fleet.generations(name))


if __name__ == "__main__":
    incident = Incident()
    incident.fleet.live(incident.told)
