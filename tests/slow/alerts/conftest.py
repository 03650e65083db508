"""One cluster and one Airflow for all alerts, and one stream that most causes concern."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_kstream.dags.ids import fleet_id
from airflow_kstream.minicluster import Feature, Minicluster, MiniclusterConfig
from airflow_kstream.model.streams.stream import StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy, RestartPolicy
from tests.live.airflow import CONNECTION, LiveAirflow, live_airflow
from tests.live.airflow_api import TaskRef
from tests.live.bring_up import bring_up
from tests.live.streams import BRISK_WATCH, at_pace, await_commits, rate_stream, reconciler
from tests.slow.alerts.notifier import FILE
from tests.slow.alerts.told import Alerts
from tests.tables import Row

ROOT = Path(__file__).parents[3]
# YARN gives nobody up while a test freezes it.
PATIENT = timedelta(minutes=10)
# Seconds between two batches.
_PACE = 4
SETTINGS = {
    "fleet_every": "1m",
    "notifier": "tests.slow.alerts.notifier.ToFile",
    "notifier_kwargs": json.dumps(
        {"kind": "{{ event.kind }}", "ended": "{{ event.ended }}", "words": "{{ event.words }}"}
    ),
}


@dataclass(frozen=True)
class Running:
    """An Airflow on a minicluster, and the file that its notifier writes to."""

    minicluster: Minicluster
    airflow: LiveAirflow
    told: Path


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    root = tmp_path_factory.mktemp("alerts")
    told = root / "told"
    told.touch()
    features = frozenset({Feature.HA, Feature.RM_HA})
    minicluster = bring_up(MiniclusterConfig(root / "cluster", features, realm="ALERTS.TEST", expiry=PATIENT))
    try:
        environment = {FILE: str(told), "PYTHONPATH": str(ROOT)}
        with live_airflow(minicluster, root / "airflow", SETTINGS, environment) as airflow:
            yield Running(minicluster, airflow, told)
    finally:
        minicluster.down()


@dataclass(frozen=True)
class Forgotten:
    """A stream that has no watcher since then, in seconds since 1970."""

    task: TaskRef
    since: float


@pytest.fixture(scope="module", autouse=True)
def forgotten(running: Running) -> Forgotten:
    """A stream whose restart is soon due, and whose watcher has ended.

    Looks at the fleet over twenty minutes show that, so it is made before all others.
    """
    soon = RestartPolicy(plan_ratio=0.5, jitter_ratio=0.0, max_age=timedelta(minutes=5))
    spec, airflow = brisk("forgotten", restart=soon), running.airflow
    task = airflow.declare(spec)
    airflow.await_state(task, "deferred")
    with reconciler(running.minicluster, spec) as own:
        await_commits(own.session, spec)
    airflow.api.pause_dag(task.dag_id)
    airflow.api.mark(task, "failed")
    airflow.unpause(fleet_id(CONNECTION))
    return Forgotten(task, time.time())


@pytest.fixture
def alerts(running: Running, row: Callable[[str], Row]) -> Alerts:
    return Alerts(running.minicluster, running.airflow, running.told, row("alerts"))


@pytest.fixture(scope="module")
def declared() -> dict[str, StreamSpec]:
    return {}


@pytest.fixture
def watched(alerts: Alerts, declared: dict[str, StreamSpec]) -> StreamSpec:
    """A stream that works."""
    if "watched" not in declared:
        spec = brisk("watched", heartbeat=HeartbeatPolicy(stall_floor=timedelta(seconds=20)))
        declared["watched"] = alerts.declare(spec)
    return declared["watched"]


def brisk(name: str, **more: object) -> StreamSpec:
    """A stream that is called blind after seconds and not minutes."""
    watch = replace(BRISK_WATCH, blind_after=timedelta(seconds=10))
    return at_pace(rate_stream(name, TicketCredentials(), **{"watch": watch, **more}), _PACE)
