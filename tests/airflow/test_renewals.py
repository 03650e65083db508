"""Drivers that stop making tokens, watched by Airflow: they are replaced in time, and the others are left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.streams.horizon import TokenRound
from airflow_kstream.model.streams.stream import KeytabCredentials
from airflow_kstream.model.streams.stream_policies import WatchPolicy
from airflow_kstream.policy.streams.spark.spark_tokens import rounds_in
from airflow_kstream.supervise.streams.look.renewals import Renewals
from tests.simulated.driver_logs import good, never
from tests.simulated.engine import FakeEngine
from tests.simulated.fleet import Fleet

HOUR = 3600.0
DAY, ROUND = timedelta(days=1), timedelta(hours=18)
PATIENT = WatchPolicy(every=timedelta(minutes=10), look_every=timedelta(minutes=1))


class RenewingEngine(FakeEngine):
    def token_rounds(self, log: str) -> tuple[TokenRound, ...]:
        return rounds_in(log)


class Renewing(Fleet):
    """A fleet whose drivers log their rounds. `failed` are the containers whose first round after the start failed."""

    def __init__(self, patch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, keytab: Path) -> None:
        super().__init__(patch, caplog)
        self.engine = self.watchers_engine = RenewingEngine(self.hdfs, self.yarn)
        self.credentials = KeytabCredentials("streamer@EXAMPLE.COM", str(keytab))
        self.failed: set[str] = set()
        self.read: list[float] = []
        # No simulated server keeps logs: a driver that starts begins one, and its end is read from there.
        patch.setattr(self.yarn, "start", self._with_log(self.yarn.start))
        patch.setattr(Renewals, "_end_of_log", lambda _, container, name: self._log(container))

    def of(self, name: str) -> str:
        """Return the container of the stream's newest driver."""
        _, app = max(self.generations(name), key=lambda pair: pair[0])
        return app.logs_url.split("/")[-2]

    def fail(self, *names: str) -> None:
        self.failed.update(self.of(name) for name in names)

    def restarts(self, name: str) -> int:
        return max(number for number, _ in self.generations(name)) - 1

    def started(self, name: str, generation: int) -> datetime:
        (app,) = [app for number, app in self.generations(name) if number == generation]
        assert app.started is not None
        return app.started

    def keep(self, *names: str) -> None:
        self.declare(*names, credentials=self.credentials, watch=PATIENT)

    async def commits(self, hours: float) -> None:
        for _ in range(int(hours * 6)):
            await asyncio.sleep(HOUR / 6)
            for spec in self.specs.values():
                self.engine.complete_epoch(spec)

    def _with_log(self, start: Callable[..., Application]) -> Callable[..., Application]:
        def started(*of: Any, **more: Any) -> Application:
            app = start(*of, **more)
            container = f"container_{app.id.removeprefix('application_')}_01_000001"
            app = replace(app, logs_url=f"http://node1:8042/node/containerlogs/{container}/streamer")
            self.yarn.apps[app.id] = app
            return app

        return started

    def _log(self, container: LoggedContainer) -> str:
        self.read.append(self.loop.time())
        started = self.yarn.apps[container.application].started
        assert started is not None
        rounds = (self.clock.now() - started) // ROUND
        if container.id in self.failed and rounds:
            return good(started) + never(started + ROUND)
        return good(started + rounds * ROUND)


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> Iterator[Renewing]:
    keytab = tmp_path / "streamer.keytab"
    keytab.touch()
    fleet = Renewing(monkeypatch, caplog, keytab)
    yield fleet
    fleet.loop.close()


def test_drivers_that_make_no_more_tokens_are_replaced_one_after_the_other_in_time(fleet: Renewing) -> None:
    """SPARK-37787: both failed in one round, six hours are left, and nothing but their logs tells."""
    failed, sound = ["stream-1", "stream-2"], "stream-3"
    fleet.keep(*failed, sound)
    fleet.fail(*failed)

    async def story() -> None:
        await fleet.commits(19)
        assert fleet.woken() == []
        await fleet.commits(6)

    fleet.live(story)
    assert {name: fleet.restarts(name) for name in (*failed, sound)} == {"stream-1": 1, "stream-2": 1, sound: 0}
    assert all(ROUND < fleet.started(name, 2) - fleet.started(name, 1) < DAY for name in failed)
    assert len({fleet.started(name, 2) for name in failed}) == 2
    assert sorted(fleet.woken()) == failed
    # Each of two rounds of each of three drivers, the task's own looks, and the readings of a fleet's begin.
    assert len(fleet.read) < 20
