"""A whole Airflow on loopback, on top of the shared minicluster."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from airflow_kstream.dags import STUBS
from airflow_kstream.demo.airflow_api import AirflowApi, TaskRef
from airflow_kstream.demo.airflow_home import AirflowHome
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.stream import StreamSpec
from tests.airflow.live import CONNECTION, live_airflow
from tests.airflow.planted import PLANTED
from tests.cluster.streams import await_that


class Metrics:
    """A StatsD server that keeps the lines that Airflow sends, newest last."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._lines: list[str] = []
        # Read at once: a full socket buffer drops lines for good.
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    @property
    def settings(self) -> dict[str, dict[str, str]]:
        port = str(self._socket.getsockname()[1])
        return {"metrics": {"statsd_on": "True", "statsd_host": "127.0.0.1", "statsd_port": port}}

    def value(self, name: str) -> float | None:
        """Return the newest value of a metric, None if Airflow has sent none."""
        found = [line.split(":")[1].split("|")[0] for line in self._lines if line.startswith(f"{name}:")]
        return float(found[-1]) if found else None

    def close(self) -> None:
        # An empty datagram ends the listening.
        self._socket.sendto(b"", self._socket.getsockname())
        self._listener.join()
        self._socket.close()

    def _listen(self) -> None:
        while datagram := self._socket.recv(65536):
            self._lines += datagram.decode().splitlines()


@dataclass(frozen=True)
class LiveAirflow:
    """A running Airflow. `declare` puts a stream where the shipped DAG file finds it and starts its DAG."""

    home: AirflowHome
    api: AirflowApi
    streams: Path
    metrics: Metrics

    def declare(self, spec: StreamSpec) -> TaskRef:
        (self.streams / f"{spec.name}.yaml").write_text(yaml.safe_dump(spec.to_mapping()))
        dag_id = f"stream-{spec.name}"
        await_that(lambda: dag_id in self.api.dag_ids(), f"{dag_id} is parsed")
        self.api.unpause_dag(dag_id)
        await_that(lambda: bool(self.api.dag_run_states(dag_id)), f"{dag_id} has a run")
        return TaskRef(dag_id, next(iter(self.api.dag_run_states(dag_id))), "keep")

    def await_state(self, task: TaskRef, state: str) -> None:
        await_that(lambda: self.api.task_instance(task).state == state, f"{task.dag_id} is {state}")


@pytest.fixture(scope="module")
def airflow(minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveAirflow]:
    root = tmp_path_factory.mktemp("airflow")
    streams = root / "streams" / CONNECTION
    streams.mkdir(parents=True)
    kept = {"streams_folder": str(streams.parent), "retry_delay": "2s"}
    # One run only: a second run would take the stream over from the run whose task a test marks failed.
    kept["ensure_every"] = "1d"
    listener = Metrics()
    with live_airflow(
        minicluster, root, STUBS, {"KSTREAM_PLANTED": PLANTED["env"]}, {**listener.settings, "kstream": kept}
    ) as home:
        yield LiveAirflow(home, home.api(), streams, listener)
    listener.close()
