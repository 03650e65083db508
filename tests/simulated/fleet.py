"""Streams that Airflow watches: the real operator, trigger, poller, watch and reconcile, in virtual time.

Simulated are the servers, because an hour without a ResourceManager has to take no hour, and Airflow between the
operator and its trigger: a worker that resumes a task at once, and a triggerer that runs all triggers in one loop.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import TaskDeferred
from airflow.sdk.observability import stats
from airflow.triggers.base import TriggerEvent

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.streams.generation import Position, StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.notifications import ledgers, outbox, tasks
from airflow_kstream.operators import (
    cluster_doctor,
    declared_stream,
    fleet_look,
    housekeeping,
    policy_edits,
    stream_control,
    vanished_streams,
)
from airflow_kstream.operators import streams as operators
from airflow_kstream.operators.cluster_doctor import ClusterDoctorOperator
from airflow_kstream.operators.fleet_look import FleetLookOperator, TokenLookOperator
from airflow_kstream.operators.housekeeping import HousekeepingOperator
from airflow_kstream.operators.policy_edits import PolicyEditsOperator
from airflow_kstream.operators.stream_control import StreamControlOperator
from airflow_kstream.operators.streams import ClaimedStreamOperator, SparkStreamOperator
from airflow_kstream.operators.vanished_streams import VanishedStreamsOperator
from airflow_kstream.sensors import progress as progress_sensor
from airflow_kstream.states import recorder
from airflow_kstream.states import tasks as reports
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.declared_copies import keep_copy
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.look.progress import ProgressWatch
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.supervise.streams.orders import desired
from airflow_kstream.supervise.streams.restart import undeclared
from airflow_kstream.supervise.tokens import expiry
from airflow_kstream.triggers import notes, notifying, progress
from airflow_kstream.triggers import poller as polling
from airflow_kstream.triggers import streams as triggers
from airflow_kstream.triggers.streams import StreamTrigger
from tests.simulated.engine import FakeEngine
from tests.simulated.life import SPEC
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.virtual_time import VirtualLoop, at_once, run
from tests.simulated.yarn import WEEK

_TASKS = (
    StreamTrigger,
    SparkStreamOperator,
    VanishedStreamsOperator,
    StreamControlOperator,
    FleetLookOperator,
    PolicyEditsOperator,
    HousekeepingOperator,
    TokenLookOperator,
    ClusterDoctorOperator,
    progress.StreamProgressTrigger,
    progress_sensor.StreamProgressSensor,
)
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
class Hdfs(SimHdfs):
    refuses_writes: bool = False

    def write(self, *of: Any, **more: Any) -> Any:
        if self.refuses_writes:
            raise Unavailable("connection refused", tried="write", server="http://nn:9870")
        return super().write(*of, **more)


@dataclass
class Waking:
    """A worker's slot that was taken for a stream, so many seconds after the begin, and the words why."""

    stream: str
    at: float
    why: str


class _Restarted(Exception):
    """The end of a trigger whose triggerer restarts."""


class Fleet:
    """Streams of one cluster, each with its deferred task."""

    def __init__(self, patch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        self.loop = VirtualLoop()
        self.clock = LoopClock(loop=self.loop)
        self.hdfs, self.yarn = Hdfs(self.clock), Yarn(self.clock)
        self.engine = self.watchers_engine = FakeEngine(self.hdfs, self.yarn)
        self.specs: dict[str, StreamSpec] = {}
        self.wakings: list[Waking] = []
        self.ended: dict[str, object] = {}
        self.gauges: dict[str, list[float]] = defaultdict(list)
        self.refused: set[str] = set()
        # Which no folder declares.
        self.of_own_dags: set[str] = set()
        # What becomes of a session as a stream's own user, who is not the connection's.
        self.refusal: KstreamError | None = None
        self.opening: Callable[[], None] = lambda: None
        # Airflow's asset state store: it outlives triggerers and tasks. The writes that count are those of events.
        self.store: dict[tuple[str, str], Any] = {}
        self.store_writes = 0
        # By their keys.
        self.store_reads: Counter[str] = Counter()
        self.store_fails: Exception | None = None
        # Addresses of assets whose rows alone it takes from no triggerer.
        self.store_refuses: set[str] = set()
        # Seconds that each reading takes.
        self.store_slow = 0.0
        # They get the key before a triggerer reads or writes it, and what a task writes: they can wait, and raise.
        self.at_read: Callable[[str], Awaitable[object]] = _nothing
        self.at_write: Callable[[str], Awaitable[object]] = _nothing
        self.at_tasks_write: Callable[[str], object] = lambda uri: None
        self.notifiers_hang = False
        # Whether a triggerer serves the deferred task of a stream, and the DAGs whose task is not deferred.
        self.served: dict[str, asyncio.Event] = defaultdict(_set_event)
        self.not_deferred: set[str] = set()
        # DAGs that are on: a task of each watches. And Airflow's Variables.
        self.on: set[str] = set()
        self.variables: dict[str, str] = {}
        # By stream: its servers have no configuration that a doctor could read.
        self.foretold: dict[str, tuple[str, ...]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._triggers: set[asyncio.Task[TriggerEvent]] = set()
        self._caplog = caplog
        caplog.set_level(logging.INFO)
        patch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps({"conn_type": "kstream", "extra": FIELDS}))
        for part, name, simulated in self._parts():
            # Airflow makes operators and triggers of plain data, in processes of their own: they find their servers,
            # clocks and stores by the names of modules.
            patch.setattr(part, name, simulated)

    def _parts(self) -> Iterator[tuple[Any, str, Any]]:
        """Yield what is simulated: the module or class, the name in it, and what stands for it."""
        workers = operators, declared_stream, vanished_streams, policy_edits, stream_control, fleet_look, housekeeping
        clock = self._host_clock()
        yield tickets, "acquire", lambda identity, cache: timedelta(hours=10)
        yield time, "sleep", self.clock.sleep
        yield time, "monotonic", lambda: (self.clock.now() - START).total_seconds()
        yield from (
            (polling, f"_{known}", {}) for known in ("clusters", "environments", "turns", "together", "tellers")
        )
        yield ledgers, "get", self._read_store
        yield ledgers, "put", self._write_store
        yield tasks, "get", lambda uri, key: self.store.get((uri, key))
        yield tasks, "put", self._write_as_task
        yield vanished_streams, "is_watched", lambda dag: dag in self.on
        yield vanished_streams, "Variable", self._variables()
        yield fleet_look, "is_deferred", lambda by: by.dag not in self.not_deferred
        yield outbox, "in_thread", self._notifiers_thread
        yield from ((module, "open_session", self._triggerers_session) for module in (polling, notes, progress))
        yield from (
            (module, "open_session", self.workers_session)
            for module in (*workers, cluster_doctor, desired, tasks, undeclared, progress_sensor)
        )
        for module in (polling, operators, undeclared, desired, fleet_look):
            yield module, "Watch", lambda session, *_, **more: Watch(session, self.watchers_engine_of, **more)
        for module in (progress, progress_sensor):
            yield (
                module,
                "ProgressWatch",
                lambda session, **more: ProgressWatch(session, self.watchers_engine_of, **more),
            )
        for module in (operators, vanished_streams, stream_control):
            yield module, "engine_of", lambda spec, spark=None: self.engine_of(spec)
        yield operators, "foretell", lambda session, stream="": self.foretold
        for module in (operators, policy_edits, reports, triggers, notifying, polling, expiry, fleet_look):
            yield module, "datetime", clock
        yield stats, "gauge", lambda name, value, tags=None: self.gauges[name].append(value)
        # Airflow's own loggers bypass pytest's.
        yield from ((task, "log", logging.getLogger("task")) for task in _TASKS)

    def declare(self, *names: str, like: Any = SPEC, **changed: Any) -> None:
        """Let these streams run, their first generation claimed and committed."""
        for name in names:
            spec = replace(like, **{"name": name, "checkpoints": (f"/data/{name}",), **changed})
            self.specs[name] = spec
            stream = StreamId(name, CLUSTER.state_dir)
            positions = {path: Position(None, -1, -1) for path in spec.checkpoints}
            draft = ClaimDraft(1, f"nonce{name}", spec, WEEK, positions, "test")
            keep_copy(self.run_of(name))
            StreamFolder(self.session, stream, acting=True).make_claim(draft)
            self.yarn.start(frozenset(stream.tags(1)))
            self.engine.complete_epoch(spec)

    def live(self, story: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Let the tasks defer, tell the story beside them, and end."""

        async def told() -> None:
            self._tasks = {name: asyncio.create_task(self._task(spec)) for name, spec in self.specs.items()}
            await story()
            tasks = list(self._tasks.values())
            for task in tasks:
                if task.done():
                    task.result()
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert not self.told("Task was destroyed"), "a poller was closed and goes on"

        run(told(), self.loop)

    def clear(self, name: str) -> None:
        """Let a stream's task begin anew, as after a clear in Airflow's UI."""
        self._tasks[name].cancel()
        self._tasks[name] = asyncio.create_task(self._task(self.specs[name]))

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
            event = await self._triggered(json.dumps(carried(fields)))
            payload, more = carried(event.payload), deferred.kwargs or {}
            self.wakings.append(Waking(spec.name, self.loop.time(), payload["why"]))
            # The worker reads its copy of the declaration as it is now.
            operator = self._operator(self.specs.get(spec.name, spec))
            deferred = self._worked(spec.name, lambda: operator.resume(context(), payload, **more))  # noqa: B023

    async def _triggered(self, fields: str) -> TriggerEvent:
        """Let a trigger run until its first event, and a new one in its place when the triggerer restarts."""

        async def first_event() -> TriggerEvent:
            events = cast("AsyncGenerator[TriggerEvent]", StreamTrigger(**json.loads(fields)).run())
            async with aclosing(events):
                return await anext(events)

        while True:
            await self.served[json.loads(fields)["stream"]].wait()
            running = asyncio.create_task(first_event())
            self._triggers.add(running)
            with suppress(_Restarted):
                try:
                    return await running
                except asyncio.CancelledError:
                    if running in self._triggers:
                        raise
                    raise _Restarted from None
                finally:
                    self._triggers.discard(running)

    def restart_triggerer(self) -> None:
        """End all triggers and forget what their process knew; each begins as Airflow's database keeps it."""
        ended, self._triggers = self._triggers, set()
        for trigger in ended:
            trigger.cancel()
        for known in (polling._clusters, polling._environments, polling._turns, polling._together, polling._tellers):
            cast("dict[str, object]", known).clear()
        self._end_what_tells()
        recorder._process = recorder._Process()

    def _end_what_tells(self) -> None:
        """Lose what was about to be told or noted."""
        killed, notifying._process = notifying._process, notifying._Process()
        if killed.loop is self.loop:
            under_way = [killed.outbox._rounds, *killed.outbox._leaving]
            under_way += [task for each in killed._notes.values() for task in (each._reader, each._writer)]
            for task in under_way:
                if task is not None:
                    task.cancel()

    def _operator(self, spec: StreamSpec) -> SparkStreamOperator:
        if spec.name in self.refused:
            return ClaimedStreamOperator(
                task_id="keep",
                name=spec.name,
                refusal="it is not YAML",
                cluster_conn_id=CONNECTION,
                follows_edits=True,
            )
        follows = spec.name not in self.of_own_dags
        return SparkStreamOperator(task_id="keep", cluster_conn_id=CONNECTION, stream=spec, follows_edits=follows)

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
    def workers_session(self, cluster: Cluster, identity: object) -> Iterator[ClusterSession]:
        if self.refusal is not None and identity != cluster.watcher:
            raise self.refusal
        yield self.session

    async def _read_store(self, uri: str, key: str) -> Any:
        self.store_reads[key] += 1
        await asyncio.sleep(self.store_slow)
        await self.at_read(key)
        if self.store_fails:
            raise self.store_fails
        return json.loads(json.dumps(self.store.get((uri, key))))

    def _write_as_task(self, uri: str, key: str, value: Any) -> None:
        self.at_tasks_write(uri)
        self.store[uri, key] = carried(value)

    async def _write_store(self, uri: str, key: str, value: Any) -> None:
        await self.at_write(key)
        if self.store_fails:
            raise self.store_fails
        if uri in self.store_refuses:
            raise OSError(f"the database refuses {uri}")
        self.store_writes += key == ledgers.KEY
        self.store[uri, key] = carried(value)

    def _notifiers_thread(self, work: Callable[[], None]) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future() if self.notifiers_hang else at_once(work)

    def _variables(self) -> SimpleNamespace:
        return SimpleNamespace(
            get=lambda key, default: self.variables.get(key, default),
            set=lambda key, value, description: self.variables.update({key: value}),
            delete=lambda key: self.variables.pop(key),
        )

    def _host_clock(self) -> type[datetime]:
        clock = self.clock

        class HostClock(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return clock.now()

        return HostClock


def carried(value: Any) -> Any:
    """Return plain data as it comes through Airflow's channels, and through PostgreSQL, whose JSON takes no NUL.

    Raises UnicodeEncodeError, OverflowError, AssertionError: for what ends a triggerer, or fails a task.
    """
    msgspec.msgpack.encode(value)
    text = json.dumps(value, allow_nan=False)
    assert "\\u0000" not in text, "PostgreSQL refuses NUL"
    return json.loads(text)


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


async def _nothing(key: str) -> None:
    """Let the store answer at once."""


def context() -> Context:
    class TaskInstance:
        def xcom_push(self, key: str, value: object) -> None:
            carried(value)

    run = SimpleNamespace(run_id="scheduled", run_type="scheduled", triggering_user_name=None)
    return cast("Context", {"ti": TaskInstance(), "dag_run": run})
