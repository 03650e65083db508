"""A stream under faults: its supervisors, its generations, and its rows, which are counted at the end of each fault."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.processes import Identity, below
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.stream import (
    EngineName,
    FlinkStreamSpec,
    KeytabCredentials,
    StreamSpec,
    TicketCredentials,
)
from airflow_kstream.model.streams.stream_policies import FailurePolicy, SubmitPolicy
from airflow_kstream.policy.streams.pulse.heartbeat import verified
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.orders.desired import request_restart, set_desired, start_from
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.faults.cluster import EXPIRY
from tests.live.faults.proxies import Gate, Moment, Proxies, Request
from tests.live.faults.rows import Rows, counted_rows, rows_of
from tests.live.faults.supervisors import Supervisor, Supervisors
from tests.live.faults.table import Tell
from tests.live.flink_streams import flink_stream, rows_folder
from tests.live.streams import BRISK_STOP, await_that, fields, look, rate_stream, reconciler

# Whether a request is the wanted one of a restart: of the generation that is replaced, and of the request.
Wanted = Callable[[int, Request], bool]


@dataclass(frozen=True)
class Kind:
    """What differs between the engines' jobs: how rows are counted, and which containers can write."""

    rows: Callable[[Kept], Rows]
    writers: str


def _rate_rows(stream: Kept) -> Rows:
    return rows_of(stream.minicluster, stream.session.hdfs, stream.data, stream.folder / "rows")


def _counted_rows(stream: Kept) -> Rows:
    # What its newest checkpoint completed is surely there once there is a further one.
    stream.await_a_further_commit()
    assert isinstance(stream.spec, FlinkStreamSpec)
    return counted_rows(stream.minicluster, stream.session.hdfs, rows_folder(stream.spec), stream.folder / "rows")


# Spark's executors end with their driver, Flink's TaskManagers write on without a JobManager for a while.
KINDS = {EngineName.SPARK: Kind(_rate_rows, "01_000001"), EngineName.FLINK: Kind(_counted_rows, "01_*")}


@dataclass(frozen=True)
class Restart:
    """A restart of generation `before` that waits at a request of its supervisor."""

    before: int
    supervisor: Supervisor
    gate: Gate

    @property
    def after(self) -> int:
        return self.before + 1


@dataclass
class Kept:
    """A stream on the cluster, its supervisors behind proxies, and a session of our own that goes past them."""

    minicluster: Minicluster
    reconciler: Reconciler
    supervisors: Supervisors
    proxies: Proxies
    folder: Path
    counts: list[Rows] = field(default_factory=list)

    @property
    def spec(self) -> StreamSpec:
        return self.reconciler.spec

    @property
    def session(self) -> ClusterSession:
        return self.reconciler.session

    @property
    def subject(self) -> StreamRun:
        return self.reconciler.subject

    @property
    def kind(self) -> Kind:
        return KINDS[self.spec.engine]

    @property
    def data(self) -> str:
        return self.spec.arguments[0]

    def look(self) -> Observation:
        return look(self.session, self.spec)

    def recover(self) -> int:
        """Bring it up, whatever the last test left; return its generation, past its first commit."""
        seen = self.look()
        if seen.claim is None and self.spec.engine is EngineName.FLINK:
            start_from(self.subject, "a test", fresh=True)
        elif seen.desired.state is not DesiredState.RUNNING:
            set_desired(self.subject, DesiredState.RUNNING, "a test")
        self.reconciler.run()
        return self.await_commits()

    def stop(self) -> None:
        set_desired(self.subject, DesiredState.STOPPED, "its tests are over")
        self.reconciler.run()

    def await_commits(self, generation: int = 0, seconds: float = 300) -> int:
        """Wait for a new commit of the newest generation, which has at least this number; return its number."""
        seen: list[Observation] = []

        def committed() -> bool:
            seen[:] = [self.look()]
            claim = seen[0].claim
            return claim is not None and claim.generation >= generation and verified(seen[0])

        await_that(committed, f"generation {generation} or a later one of {self.spec.name} commits", seconds)
        return seen[0].generation

    def keep(self, generation: int) -> int:
        """Let supervisors look, one after the other as woken tasks do, until this generation or a later one commits.

        Returns how many it took.
        """
        looks = itertools.count(1)
        taken = [0]

        def committed() -> bool:
            taken[0] = next(looks)
            self.supervisors.begin().end()
            seen = self.look()
            return seen.generation >= generation and verified(seen)

        await_that(committed, f"generation {generation} or a later one of {self.spec.name} commits")
        return taken[0]

    def await_a_further_commit(self) -> None:
        before = self.commit()
        await_that(lambda: self.commit() > before, "a further commit")

    def commit(self) -> int:
        """Return the number of the last committed batch, or of the newest complete checkpoint."""
        (point,) = self.look().checkpoints
        return point.position.commit

    def ask_for_restart(self) -> int:
        """Ask for a restart; return the generation that is to be replaced."""
        before = self.look().generation
        request_restart(self.subject, "a test")
        return before

    @contextmanager
    def restart(self, moment: Moment, wanted: Wanted) -> Iterator[Restart]:
        """Let a supervisor restart it, and hold that supervisor's first wanted request until the block's end."""
        before = self.ask_for_restart()
        with self.proxies.gate(moment, partial(wanted, before)) as gate:
            supervisor = self.supervisors.begin()
            gate.await_request()
            yield Restart(before, supervisor, gate)

    def follow(self, generation: int, supervisor: Supervisor | None = None) -> None:
        """Let this supervisor, or a new one, succeed; generation `generation` must be the newest, and commit."""
        (supervisor or self.supervisors.begin()).succeed()
        assert self.await_commits(generation) == generation

    def impatient(self) -> Supervisor:
        """Begin a supervisor that gives up a claim without an application long before a slow client could end."""
        submit = replace(self.spec.submit, ttl=timedelta(seconds=10))
        declaration = write_declaration(replace(self.spec, submit=submit), self.folder / "impatient")
        return self.supervisors.begin(declaration)

    def truthful(self) -> Supervisor:
        """Begin a supervisor that is told the cluster's own expiry of an ApplicationMaster, not a brisk one."""
        stop = replace(self.spec.stop, am_expiry=EXPIRY)
        return self.supervisors.begin(write_declaration(replace(self.spec, stop=stop), self.folder / "truthful"))

    def application(self, generation: int) -> Application:
        """Return the only application that this generation ever had."""
        (app,) = (app for number, app in self.look().applications if number == generation)
        return app

    def writers(self, generation: int) -> list[Identity]:
        """Return the processes of the generation that can write: each one's shell, its JVM and its Python."""
        return self._processes(generation, self.kind.writers)

    def leader(self, generation: int) -> list[Identity]:
        """Return the processes of the generation's first container."""
        return self._processes(generation, "01_000001")

    def _processes(self, generation: int, containers: str) -> list[Identity]:
        app = self.application(generation).id
        return below(
            *self.minicluster.root.glob(f"data/containers/usercache/*/appcache/{app}/container_*_{containers}")
        )

    def files(self) -> frozenset[str]:
        return self.subject.folder.names()

    def conclude(self, tell: Tell, fault: str, seen: str, recovery: float) -> None:
        """Put the fault into the table; fail unless generations followed one another and each row is there once."""
        rows = self.kind.rows(self)
        before = self.counts[-1] if self.counts else Rows(0, 0, 0)
        self.counts.append(rows)
        lost, doubled = rows.lost - before.lost, rows.doubled - before.doubled
        tell(f"{self.spec.engine}: {fault}", seen, recovery, Rows(rows.produced, lost, doubled))
        assert rows.produced > before.produced
        assert (lost, doubled) == (0, 0)
        assert overlaps(self.look()) == []


def overlaps(observation: Observation) -> list[str]:
    """Return a sentence for each application that started before an earlier one had ended, by YARN's list."""
    apps = sorted((app for _, app in observation.applications), key=lambda app: app.id)
    return [f"{later.id} started before {app.id} had ended" for app, later in pairwise(apps) if _beside(app, later)]


def _beside(app: Application, later: Application) -> bool:
    return app.finished is None or later.started is None or later.started < app.finished


def begins_stop(before: int, request: Request) -> bool:
    return request.renames_to(f"stop-{before:06d}")


def claims(before: int, request: Request) -> bool:
    return request.renames_to(f"gen-{before + 1:06d}")


def lists_applications(request: Request) -> bool:
    return request.target.endswith("/ws/v1/cluster/apps")


# Let a test have a stream of Spark's and one of Flink's, Flink's alone, or Flink's in `--slow` alone.
_LATER = pytest.param(EngineName.FLINK, marks=pytest.mark.faults)
of_each_engine = pytest.mark.parametrize("only", [*EngineName], indirect=True, ids=str)
of_flink = pytest.mark.parametrize("only", [EngineName.FLINK], indirect=True, ids=str)
of_flink_later = pytest.mark.parametrize("only", [EngineName.SPARK, _LATER], indirect=True, ids=str)


class Clock:
    """The seconds since it was made, by the monotonic clock."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def pass_until(self, seconds: float) -> None:
        """Let so many seconds pass since it was made: the length of a fault, never a wait for anything."""
        time.sleep(max(0.0, seconds - self.seconds))


@contextmanager
def kept(minicluster: Minicluster, proxies: Proxies, folder: Path, spec: StreamSpec) -> Iterator[Kept]:
    """A stream with supervisors behind the proxies; nothing is submitted yet, and nothing is stopped at the end."""
    connection = folder / "cluster.yaml"
    write_connection(minicluster, connection, **proxies.addresses)
    supervisors = Supervisors(connection, write_declaration(spec, folder), folder)
    try:
        with reconciler(minicluster, spec) as own:
            yield Kept(minicluster, own, supervisors, proxies, folder)
    finally:
        supervisors.close()


def brisk_stream(name: str, **more: object) -> StreamSpec:
    """A cheap stream; its policies wait for seconds where the defaults wait for minutes.

    Its client may take minutes: spark-submit does on a busy machine.
    """
    return rate_stream(name, TicketCredentials(), **{**_policies(), **more})


def brisk_flink_stream(minicluster: Minicluster, jar: Path, name: str, **more: Any) -> FlinkStreamSpec:
    """The same of Flink's, with a keytab, which outlives what happens to tokens."""
    keytab = KeytabCredentials(minicluster.principal("streamer"), str(minicluster.keytab("streamer")))
    spec = flink_stream(minicluster, Feature.FLINK, str(jar), keytab, name)
    # Where nobody can be asked whether it is dead, it has to be silent for four times that long.
    conf = {**spec.conf, "execution.checkpointing.timeout": "10s"}
    return replace(spec, **{"conf": conf, "outputs": (rows_folder(spec),), **_policies(), **more})


def _policies() -> dict[str, Any]:
    return {
        "submit": SubmitPolicy(timeout=timedelta(minutes=4), ttl=timedelta(minutes=4)),
        "stop": replace(BRISK_STOP, am_expiry=timedelta(seconds=10)),
        "failure": FailurePolicy(backoff=timedelta(seconds=1), longest_backoff=timedelta(seconds=2), per_day=1000),
    }


def write_declaration(spec: StreamSpec, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / f"{spec.name}.yaml"
    file.write_text(yaml.safe_dump(spec.to_mapping()))
    return file


def write_connection(minicluster: Minicluster, file: Path, **more: str) -> None:
    """Write the file for `--cluster`, as its streamer."""
    given = asdict(fields(minicluster, **more))
    file.write_text(yaml.safe_dump({name: value for name, value in given.items() if value}))
