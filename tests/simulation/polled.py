"""Keepers that are Airflow's: the operator on a worker, its trigger with the poller in a triggerer's event loop.

Both run on one host and end with it. Airflow itself, which takes a task from the one to the other, is a second or a
few: the scheduler, the database and the API server are the business of tests/airflow.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from airflow.sdk import Context
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.exceptions import TaskDeferred
from airflow.sdk.observability import stats
from airflow.triggers.base import TriggerEvent

from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.submission import SparkDefaults
from airflow_kstream.notifications import ledgers, tasks
from airflow_kstream.operators.streams import SparkStreamOperator
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.triggers import lanes, poller, shared
from airflow_kstream.triggers.memory import Memory
from airflow_kstream.triggers.streams import StreamTrigger
from tests.simulation.checks import DEFECT
from tests.simulation.loops import KEPT, Loop, Pool
from tests.simulation.people import NEXT_RUN, RETRY, Keeper
from tests.simulation.virtual import Program, current
from tests.simulation.world import World, client_of

# Seconds until a worker takes a task that was scheduled, at most.
_SCHEDULED = 6.0


@dataclass
class Waiting:
    """A task that is deferred: `fields` are its trigger's, as Airflow's database keeps them."""

    fields: str
    since: float
    payload: dict[str, Any] | None = None

    @property
    def memory(self) -> Memory:
        return Memory.from_json(json.loads(self.fields)["memory"])


@dataclass
class PolledKeeper(Keeper):
    """SparkStreamOperator and StreamTrigger in the place of the keeper's own loop."""

    process: Program | None = field(default=None, init=False)
    waiting: Waiting | None = field(default=None, init=False)
    _loop: Loop | None = field(default=None, init=False)

    def restart_triggerer(self) -> None:
        """End the triggerer; another one begins with what the database keeps."""
        if self.process is None or self.process.over or self._loop is None:
            return
        self._loop.end()
        self._loop = self._triggerer(self.process)
        if self.waiting is not None and self.waiting.payload is None:
            self._loop.call_soon(self._begin, self._loop, self.waiting)

    def _main(self) -> None:
        process = current()
        assert process is not None
        self.process, self.waiting = process, None
        self._loop = self._triggerer(process)
        while True:
            time.sleep(self._run(process))

    def _run(self, process: Program) -> float:
        """Run the task until it ends, and return the pause before the next run."""
        try:
            deferred = _deferred(lambda: self._operator().execute(_context()))
            while deferred is not None:
                payload, more = self._event(process, deferred), deferred.kwargs or {}
                self._tell(f"its trigger fires: {payload['why']}")
                time.sleep(process.rng.uniform(1.0, _SCHEDULED))
                deferred = _deferred(lambda: self._operator().resume(_context(), payload, **more))  # noqa: B023
        except KstreamError as error:
            self._tell(f"its task fails: {error}")
            return RETRY
        except Exception as error:
            self._defect("".join(traceback.format_exception(error)))
            raise
        return NEXT_RUN

    def _event(self, process: Program, deferred: TaskDeferred) -> dict[str, Any]:
        """Wait, as a deferred task does, for the first event of its trigger."""
        assert self._loop is not None
        _, fields = cast("StreamTrigger", deferred.trigger).serialize()
        self.waiting = waiting = Waiting(json.dumps(fields), self.world.now)
        self._loop.call_soon_threadsafe(self._begin, self._loop, waiting)
        while waiting.payload is None:
            process.listen()
        self.world.wakings.woke(self, waiting.payload["why"])
        self.waiting = None
        return waiting.payload

    def _begin(self, loop: Loop, waiting: Waiting) -> None:
        def fired(task: asyncio.Task[TriggerEvent]) -> None:
            waiting.payload = json.loads(json.dumps(task.result().payload))
            assert self.process is not None
            self.process.alert()

        loop.create_task(_first_event(waiting.fields)).add_done_callback(fired)

    def _triggerer(self, process: Program) -> Loop:
        loop = Loop(process, self._defect)
        loop.start()
        return loop

    def _operator(self) -> SparkStreamOperator:
        client = str(client_of(Path(self.cluster.hadoop_conf_dir or "")))
        stream, conn_id = self.spec, self.world.connection(self.cluster.state_dir)
        return _Operator(task_id="keep", cluster_conn_id=conn_id, stream=stream, client=client)

    def _defect(self, what: str) -> None:
        self.world.checks.broken(DEFECT, what)


class _Operator(SparkStreamOperator):
    """The operator, on a host whose Spark client is `client`."""

    def __init__(self, *, client: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._client = client

    def _engine(self, spec: StreamSpec) -> Engine:
        return engine_of(spec, SparkDefaults, self._client)

    def _foretold(self, reconciler: Reconciler) -> tuple[str, ...]:
        """Return nothing: the doctor asks in threads that virtual time does not schedule, and decides nothing."""
        return ()


class _Log:
    """A log whose lines are told in the history; one of an error that nobody expected is a defect."""

    def __init__(self, world: World) -> None:
        self._world = world

    def info(self, words: str, *of: object) -> None:
        program = current()
        self._world.checks.tell(program.name if program else "a host", words % of)

    warning = info

    def error(self, words: str, *of: object, exc_info: BaseException | None = None) -> None:
        self.info(words, *of)
        if exc_info is not None:
            self._world.checks.broken(DEFECT, "".join(traceback.format_exception(exc_info)))

    def exception(self, words: str, *of: object) -> None:
        self.info(words, *of)
        self._world.checks.broken(DEFECT, traceback.format_exc())


@contextmanager
def airflow(world: World) -> Iterator[None]:
    """Put what Airflow gives to operators and triggers into this world."""
    store: dict[str, dict[tuple[str, str], Any]] = defaultdict(dict)

    def get(uri: str, key: str) -> Any:
        return json.loads(json.dumps(store[_home()].get((uri, key))))

    def put(uri: str, key: str, value: Any) -> None:
        store[_home()][uri, key] = json.loads(json.dumps(value))

    async def aget(uri: str, key: str) -> Any:
        return get(uri, key)

    async def aput(uri: str, key: str, value: Any) -> None:
        put(uri, key, value)

    log = _Log(world)
    with ExitStack() as stack:
        # Airflow writes each line of a client's, which takes as long as its request here.
        logging.disable(logging.INFO)
        stack.callback(logging.disable, logging.NOTSET)
        stores = ((ledgers, aget, aput), (tasks, get, put))
        for module, name, value in (
            *((module, name, getattr(module, name)) for module, name in KEPT),
            *((logger, "log", log) for logger in (poller, lanes, StreamTrigger, SparkStreamOperator)),
            *((module, "get", reads) for module, reads, _ in stores),
            *((module, "put", writes) for module, _, writes in stores),
            (shared, "ThreadPoolExecutor", Pool),
            (stats, "gauge", lambda *of, **tags: None),
            # There is no task runner of Airflow's.
            (ExecutorSafeguard, "test_mode", True),
        ):
            # An operator and a trigger get all of this from the Airflow that runs them, and none runs here.
            stack.enter_context(patch.object(module, name, value))
        stack.enter_context(world.connections.stored())
        yield


def _home() -> str:
    """Return whose Airflow's database it is."""
    program = current()
    assert program is not None
    return program.keeper


async def _first_event(fields: str) -> TriggerEvent:
    events = cast("AsyncGenerator[TriggerEvent]", StreamTrigger(**json.loads(fields)).run())
    async with aclosing(events):
        return await anext(events)


def _deferred(work: Callable[[], object]) -> TaskDeferred | None:
    try:
        work()
    except TaskDeferred as deferred:
        return deferred
    return None


def _context() -> Context:
    class TaskInstance:
        def xcom_push(self, key: str, value: object) -> None:
            json.dumps(value)

    return cast("Context", {"ti": TaskInstance()})
