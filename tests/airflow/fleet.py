"""Streams that Airflow watches: the real operator, trigger, poller, watch and reconcile, in virtual time.

Simulated are the servers, because an hour without a ResourceManager has to take no hour, and Airflow between the
operator and its trigger: a worker that resumes a task at once, and a triggerer that runs all triggers in one loop.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import TaskDeferred

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.application import Application
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.operators import claimed_streams, vanished_streams
from airflow_kstream.operators import streams as operators
from airflow_kstream.operators.claimed_streams import ClaimedStreamOperator
from airflow_kstream.operators.streams import SparkStreamOperator
from airflow_kstream.operators.vanished_streams import VanishedStreamsOperator
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.engine import Engine
from airflow_kstream.supervise.streams.formats import ClaimDraft
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.state_folder import StreamFolder
from airflow_kstream.supervise.streams.watch import Watch
from airflow_kstream.triggers import poller as polling
from airflow_kstream.triggers import streams as triggers
from airflow_kstream.triggers.streams import StreamTrigger
from tests.airflow.virtual_time import VirtualLoop, run
from tests.unit.simulated_yarn import WEEK
from tests.unit.streams.fake_engine import FakeEngine
from tests.unit.streams.life import SPEC
from tests.unit.streams.simulated_servers import CLUSTER, SimClock, SimHdfs, SimYarn, session_of

CONNECTION = "simulated"
START = datetime(2026, 3, 1, tzinfo=UTC)
FIELDS = {
    "resourcemanagers": "http://rm:8088",
    "namenodes": "http://nn:9870",
    "default_fs": "hdfs://simulated",
    "principal": "streamer@EXAMPLE.COM",
    "keytab_path": "/nonexistent",
    "state_dir": "/kstream",
}


@dataclass
class LoopClock(SimClock):
    """The clock of the servers and of all hosts: the loop's; a sleep outside of the loop moves it, too."""

    loop: VirtualLoop = field(default_factory=VirtualLoop)

    def now(self) -> datetime:
        return START + timedelta(seconds=self.loop.time()) + self.ahead


@dataclass
class Yarn(SimYarn):
    away: bool = False

    def applications(self, tag: str) -> tuple[Application, ...]:
        if self.away:
            raise Unavailable("connection refused", tried="list applications", server="http://rm:8088")
        return super().applications(tag)


@dataclass
class Waking:
    """A worker's slot that was taken for a stream, so many seconds after the begin, and the words why."""

    stream: str
    at: float
    why: str


class Fleet:
    """Streams of one cluster, each with its deferred task."""

    def __init__(self, patch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        self.loop = VirtualLoop()
        self.clock = LoopClock(loop=self.loop)
        self.hdfs, self.yarn = SimHdfs(self.clock), Yarn(self.clock)
        self.engine = self.watchers_engine = FakeEngine(self.hdfs, self.yarn)
        self.specs: dict[str, StreamSpec] = {}
        self.wakings: list[Waking] = []
        self.ended: dict[str, object] = {}
        self.gauges: dict[str, list[float]] = defaultdict(list)
        self.refused: set[str] = set()
        self.opening: Callable[[], None] = lambda: None
        self._caplog = caplog
        caplog.set_level(logging.INFO)
        patch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps({"conn_type": "kstream", "extra": FIELDS}))
        patch.setattr(tickets, "acquire", lambda identity, cache: timedelta(hours=10))
        patch.setattr(time, "sleep", self.clock.sleep)
        patch.setattr(time, "monotonic", lambda: (self.clock.now() - START).total_seconds())
        patch.setattr(polling, "_clusters", {})
        patch.setattr(polling, "open_session", self._triggerers_session)
        patch.setattr(
            polling, "Watch", lambda session: Watch(session, lambda spec: cast("Engine", self.watchers_engine))
        )
        patch.setattr(operators, "open_session", self._workers_session)
        for module in (claimed_streams, vanished_streams):
            patch.setattr(module, "open_session", self._workers_session)
        patch.setattr(vanished_streams, "engine_of", lambda spec, spark=None: self.engine_of(spec))
        patch.setattr(operators, "engine_of", lambda spec, spark: self.engine_of(spec))
        patch.setattr(operators, "datetime", self._host_clock())
        patch.setattr(triggers, "datetime", self._host_clock())
        patch.setattr(
            "airflow_kstream.metrics.stats.gauge", lambda name, value, tags=None: self.gauges[name].append(value)
        )
        for task in (StreamTrigger, SparkStreamOperator, VanishedStreamsOperator):
            # Airflow's own loggers bypass pytest's.
            patch.setattr(task, "log", logging.getLogger("task"))

    def declare(self, *names: str, **changed: Any) -> None:
        """Let these streams run, their first generation claimed and committed."""
        for name in names:
            spec = replace(SPEC, name=name, checkpoints=(f"/data/{name}",), **changed)
            self.specs[name] = spec
            stream = StreamId(name, CLUSTER.state_dir)
            StreamFolder(self.session.hdfs, stream).make_claim(ClaimDraft(1, f"nonce{name}", spec, WEEK, {}, "test"))
            self.yarn.start(frozenset(stream.tags(1)))
            self.engine.complete_epoch(spec)

    def live(self, story: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Let the tasks defer, tell the story beside them, and end."""

        async def told() -> None:
            tasks = [asyncio.create_task(self._task(spec)) for spec in self.specs.values()]
            await story()
            for task in tasks:
                if task.done():
                    task.result()
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert not self.told("Task was destroyed"), "a poller was closed and goes on"

        run(told(), self.loop)

    def generations(self, name: str) -> list[tuple[int, Application]]:
        stream = StreamId(name, CLUSTER.state_dir)
        numbered = [(stream.generation_of(app.tags), app) for app in self.yarn.apps.values()]
        return [(number, app) for number, app in numbered if number is not None]

    def run_of(self, name: str) -> StreamRun:
        return StreamRun(self.session, self.specs[name], self.engine)

    def engine_of(self, spec: StreamSpec) -> Engine:
        return cast("Engine", self.engine)

    def watchers_engine_of(self, spec: StreamSpec) -> Engine:
        return cast("Engine", self.watchers_engine)

    @property
    def session(self) -> ClusterSession:
        return session_of(self.hdfs, self.yarn)

    def told(self, words: str) -> int:
        """Return in how many log lines these words are, of a task or of the triggerer."""
        return sum(words in record.getMessage() for record in self._caplog.records)

    def woken(self) -> list[str]:
        return [waking.stream for waking in self.wakings]

    async def _task(self, spec: StreamSpec) -> None:
        operator = self._operator(spec)
        deferred = self._worked(spec.name, lambda: operator.execute(context()))
        while deferred is not None:
            # As Airflow's database keeps it: the triggerer makes its own.
            name, fields = cast("StreamTrigger", deferred.trigger).serialize()
            assert name == "airflow_kstream.triggers.streams.StreamTrigger"
            trigger = StreamTrigger(**json.loads(json.dumps(fields)))
            async for event in trigger.run():
                payload, more = json.loads(json.dumps(event.payload)), deferred.kwargs or {}
                self.wakings.append(Waking(spec.name, self.loop.time(), payload["why"]))
                deferred = self._worked(spec.name, lambda: operator.resume(context(), payload, **more))  # noqa: B023
                break

    def _operator(self, spec: StreamSpec) -> SparkStreamOperator:
        if spec.name in self.refused:
            return ClaimedStreamOperator(
                task_id="keep", name=spec.name, refusal="it is not YAML", cluster_conn_id=CONNECTION
            )
        return SparkStreamOperator(task_id="keep", cluster_conn_id=CONNECTION, stream=spec)

    def _worked(self, name: str, work: Callable[[], object]) -> TaskDeferred | None:
        try:
            self.ended[name] = work()
        except TaskDeferred as deferred:
            return deferred
        except Exception as error:
            self.ended[name] = error
        return None

    @contextmanager
    def _triggerers_session(self, cluster: Cluster, identity: object) -> Iterator[ClusterSession]:
        self.opening()
        yield self.session

    @contextmanager
    def _workers_session(self, cluster: Cluster, identity: object) -> Iterator[ClusterSession]:
        yield self.session

    def _host_clock(self) -> type[datetime]:
        clock = self.clock

        class HostClock(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return clock.now()

        return HostClock


def context() -> Context:
    class TaskInstance:
        def xcom_push(self, key: str, value: object) -> None:
            json.dumps(value)

    return cast("Context", {"ti": TaskInstance()})
