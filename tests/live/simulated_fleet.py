"""Three hundred watched streams in a real triggerer, without a cluster: imported by Airflow, from a DAG file of a test.

Each trigger is an asset's watcher and not a deferred task: to defer three hundred tasks takes as many starts of a
worker, a quarter of an hour on two cores. What it runs is the trigger of a deferred task.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.formats import ClaimDraft
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.look.watch import Watch
from airflow_kstream.triggers import poller
from airflow_kstream.triggers.streams import StreamTrigger
from tests.simulated.engine import FakeEngine
from tests.simulated.life import SPEC
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.yarn import WEEK

CONNECTION = "simulated"
NAMES = tuple(f"stream-{number}" for number in range(300))


@cache
def _servers() -> tuple[ClusterSession, FakeEngine]:
    """Make the cluster of this process; its successor has the same streams."""
    clock = SimClock()
    hdfs, yarn = SimHdfs(clock), SimYarn(clock)
    engine, session = FakeEngine(hdfs, yarn), session_of(hdfs, yarn)
    for name in NAMES:
        stream = StreamId(name, CLUSTER.state_dir)
        spec = SPEC.from_mapping(SPEC.to_mapping() | {"name": name, "checkpoints": [f"/data/{name}"]})
        folder = StreamFolder(session, stream, acting=True)
        folder.make_claim(ClaimDraft(1, f"nonce{name}", spec, WEEK, {}, "test"))
        yarn.start(frozenset(stream.tags(1)))
        engine.complete_epoch(spec)
    return session, engine


@contextmanager
def _simulated(*of: object) -> Iterator[ClusterSession]:
    yield _servers()[0]


class Watching(BaseEventTrigger):
    """The trigger of a stream's deferred task, as an asset's watcher."""

    def __init__(self, stream: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.stream = stream

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {"stream": self.stream}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        vars(poller).update(open_session=_simulated, Watch=partial(Watch, engine_of=lambda spec: _servers()[1]))
        async for event in StreamTrigger(CONNECTION, self.stream, every_seconds=15.0).run():
            yield event
