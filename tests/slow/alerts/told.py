"""What a notifier on a real Airflow told, and after how many seconds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.processes import Identity, below
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.streams.event import EventKind
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import StreamSpec
from tests.live.airflow import LiveAirflow
from tests.live.streams import await_commits, await_that, look, reconciler
from tests.tables import Row

_ENDS = 600


@dataclass
class Alerts:
    """A real Airflow on a minicluster, whose notifier writes to the file `told`."""

    minicluster: Minicluster
    airflow: LiveAirflow
    told: Path
    row: Row
    declared: dict[str, StreamSpec] = field(default_factory=dict)

    def declare(self, spec: StreamSpec) -> StreamSpec:
        """Let Airflow keep the stream, and wait for its first commit."""
        self.declared[spec.name] = spec
        self.airflow.await_state(self.airflow.declare(spec), "deferred")
        with reconciler(self.minicluster, spec) as own:
            await_commits(own.session, spec)
        return spec

    def application(self, spec: StreamSpec) -> Application:
        with reconciler(self.minicluster, spec) as own:
            app = look(own.session, spec).current
        assert app is not None
        return app

    def executors(self, spec: StreamSpec) -> list[Identity]:
        """Return the processes of its first executor."""
        app = self.application(spec).id
        found = f"data/containers/usercache/*/appcache/{app}/container_*_01_000002"
        return below(*self.minicluster.root.glob(found))

    def dfs(self, *words: str, as_: str = "hdfs") -> None:
        done = self.minicluster.hdfs("dfs", *words, as_=as_)
        assert done.returncode == 0, done.stderr

    def folder(self, spec: StreamSpec) -> str:
        return StreamId(spec.name, str(self.minicluster.connection("streamer")["state_dir"])).folder

    def run(self, dag_id: str, form: dict[str, object] | None = None) -> str:
        return self.airflow.end(dag_id, self.airflow.start(dag_id, form))

    @contextmanager
    def cause(self, kind: EventKind, how: str, undo: Callable[[], object], within: float = _ENDS) -> Iterator[None]:
        """Make a cause in the block; wait until it is told, undo it, wait for its end, and put both into the table."""
        began = time.time()
        yield
        begin = self._await(kind, began, ended=False, within=within)
        undone = time.time()
        undo()
        end = self._await(kind, undone, ended=True)
        self.row(kind.value, how, f"{begin:.0f}", f"{end:.0f}")

    def wait_for_begin(self, kind: EventKind, since: float, within: float = _ENDS) -> float:
        return self._await(kind, since, ended=False, within=within)

    def wait_for_end(self, kind: EventKind, since: float) -> float:
        return self._await(kind, since, ended=True)

    def _await(self, kind: EventKind, since: float, *, ended: bool, within: float = _ENDS) -> float:
        """Return after how many seconds it was told."""

        def times() -> list[float]:
            lines = map(json.loads, self.told.read_text().splitlines())
            return [line["at"] for line in lines if (line["kind"], line["ended"]) == (kind, ended)]

        def after() -> list[float]:
            return [at for at in times() if at > since]

        await_that(lambda: bool(after()), f"{kind} {'ends' if ended else 'begins'}", within)
        # Once: what is told twice is not an event.
        assert len(after()) == 1
        return after()[0] - since
