"""A whole Airflow on loopback, with a connection to the minicluster and the shipped DAGs."""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from airflow_kstream.dags import STUBS
from airflow_kstream.dags.ids import stream_id
from airflow_kstream.demo.airflow_api import Connection
from airflow_kstream.demo.airflow_home import AirflowHome
from airflow_kstream.demo.airflow_settings import CrashSettings
from airflow_kstream.demo.supervisor import ProcessSupervisor
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.streams.stream import StreamSpec
from tests.live.airflow_api import LiveApi, TaskRef
from tests.live.planted import PLANTED
from tests.live.streams import await_that, fields
from tests.secrets.answers import write_answers

CONNECTION = "minicluster"
_KINDS = ("streams", "leases", "tickets", "tokens")
_ENDED = {"success", "failed"}
# A file that changed is read at once; reading all of them every few seconds would cost a fifth of a core.
_DAG_PROCESSOR = {"min_file_process_interval": "60"}
# By default a form lists a stream that was declared half a minute ago.
_CORE = {"min_serialized_dag_update_interval": "0"}


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
    def settings(self) -> dict[str, str]:
        return {"statsd_on": "True", "statsd_host": "127.0.0.1", "statsd_port": str(self._socket.getsockname()[1])}

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
    """A running Airflow, for the tests of several modules: each declares what it needs and pauses it at its end."""

    home: AirflowHome
    api: LiveApi
    root: Path
    metrics: Metrics
    components: ProcessSupervisor

    # Declarations and DAG files.

    def declare(self, spec: StreamSpec) -> TaskRef:
        """Declare a stream and start its DAG; return the task that keeps it."""
        self.write_declaration("streams", f"{CONNECTION}/{spec.name}", spec.to_mapping())
        dag_id = stream_id(CONNECTION, spec.name)
        return TaskRef(dag_id, self.scheduled(dag_id), "keep")

    def write_declaration(self, kind: str, name: str, declaration: Any) -> None:
        """Write a declaration of this kind, and let Airflow read the shipped DAG file again."""
        (self.root / kind / f"{name}.yaml").write_text(yaml.safe_dump(declaration))
        os.utime(self.dags / f"kstream_{kind}.py")

    @contextmanager
    def dag_file(self, name: str, text: str) -> Iterator[None]:
        """Give Airflow a DAG file of a user."""
        file = self.dags / f"{name}.py"
        file.write_text(text)
        yield
        file.unlink()

    @property
    def dags(self) -> Path:
        return self.root / "dags"

    # Runs and their tasks.

    def await_parsed(self, dag_id: str) -> None:
        await_that(lambda: dag_id in self.api.dag_ids(), f"{dag_id} is parsed")

    def unpause(self, dag_id: str) -> None:
        self.await_parsed(dag_id)
        self.api.unpause_dag(dag_id)

    def start(self, dag_id: str, form: dict[str, Any] | None = None) -> str:
        """Start a run by hand and return it."""
        self.unpause(dag_id)
        return self.api.trigger_dag_run(dag_id, form)

    def scheduled(self, dag_id: str) -> str:
        """Unpause the DAG and return the run that its schedule starts."""
        self.unpause(dag_id)
        await_that(lambda: bool(self.api.dag_run_states(dag_id)), f"{dag_id} has a run")
        return next(iter(self.api.dag_run_states(dag_id)))

    def control(self, stream: str, action: str, reason: str) -> str:
        """Fill in the form of the control DAG; return the state in which its run ended."""
        dag_id = f"control-{CONNECTION}"
        return self.end(dag_id, self.start(dag_id, {"stream": stream, "action": action, "reason": reason}))

    def end(self, dag_id: str, run: str) -> str:
        """Return the state in which the run ended."""
        await_that(lambda: self.api.dag_run_state(dag_id, run) in _ENDED, f"{dag_id} ends")
        return self.api.dag_run_state(dag_id, run)

    def detach(self, task: TaskRef) -> None:
        """End the task of a stopped stream, which waits for a start."""
        self.await_state(task, "deferred")
        self.api.mark(task, "success")
        self.await_state(task, "success")

    def await_state(self, task: TaskRef, state: str) -> None:
        def reached() -> bool:
            now = self.api.task_instance(task)
            assert (now.state, state) != ("failed", "success"), self.api.task_log(task, now.try_number)[-4000:]
            return now.state == state

        await_that(reached, f"{task.dag_id} is {state}")


@contextmanager
def live_airflow(
    minicluster: Minicluster,
    root: Path,
    options: Mapping[str, str] = MappingProxyType({}),
    environment: Mapping[str, str] = MappingProxyType({}),
    /,
    **more: str,
) -> Iterator[LiveAirflow]:
    """Run an Airflow that learns the realm from the connection alone; keep its API's answers for the secrets search.

    `options` are further ones of the section kstream, `environment` that of its processes, `more` fields of the
    connection.
    """
    for folder in ("dags", f"streams/{CONNECTION}", "leases", "tickets", "tokens"):
        (root / folder).mkdir(parents=True)
    for kind in _KINDS:
        shutil.copy(STUBS / f"kstream_{kind}.py", root / "dags")
    listener = Metrics()
    settings = {
        "core": _CORE,
        "dag_processor": _DAG_PROCESSOR,
        "kstream": {**_kstream(root), **options},
        "metrics": listener.settings,
    }
    own = {"KSTREAM_PLANTED": PLANTED["env"], **environment}
    home = AirflowHome(root / "home", root / "dags", own, crash=CrashSettings.brisk(), overrides=settings)
    home.prepare()
    with ProcessSupervisor() as supervisor:
        for component in home.components():
            supervisor.start(component)
        home.wait_until_healthy(supervisor, timeout=400)
        extra = {name: value for name, value in dataclasses.asdict(fields(minicluster, **more)).items() if value}
        home.api().put_connection(Connection(CONNECTION, "kstream", extra=extra))
        yield LiveAirflow(home, LiveApi.of(home), root, listener, supervisor)
        write_answers(LiveApi.of(home), root / "answers")
    listener.close()


def _kstream(root: Path) -> dict[str, str]:
    folders = {f"{kind}_folder": str(root / kind) for kind in _KINDS}
    # One run only: a second run would take the stream over from the run whose task a test marks failed.
    return {**folders, "retry_delay": "2s", "ensure_every": "1d"}
