"""A real Airflow on loopback, prepared from nothing in a folder of its own, for the supervisor to run.

The configuration is a file, `airflow.cfg` (0600), and not the environment: a person needs only AIRFLOW_HOME to use the
`airflow` command on it, and programs that tasks start inherit no key.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tenacity import Future, Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from airflow_kstream.demo.airflow_api import AirflowApi, Login
from airflow_kstream.demo.airflow_settings import (
    CrashSettings,
    Ports,
    Settings,
    as_cfg,
    generated_secrets,
    local_url,
    merged,
    small_machine,
)
from airflow_kstream.demo.supervisor import Child, ProcessSupervisor
from airflow_kstream.minicluster.ports import free_ports
from airflow_kstream.minicluster.processes import Launch, log_tail
from airflow_kstream.model.errors import MiniclusterError, Unavailable

_USER = "admin"
_HEALTHY = dict.fromkeys(("metadatabase", "scheduler", "triggerer", "dag_processor", "execution_api"), "healthy")
# The caller's own Airflow, Kerberos tickets and Hadoop tokens must not leak into this one.
_AMBIENT = ("AIRFLOW", "KRB5CCNAME", "KRB5_CLIENT_KTNAME", "HADOOP_TOKEN_FILE_LOCATION")
# A stopping triggerer may wait 10 s for a child that waits for it; nothing is lost if it is killed earlier.
_GRACE = 4.0
# The API server reads logs from the file system: log servers would listen on every interface.
_COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "api-server": ("api-server", "--apps", "core"),
    "execution-api": ("api-server", "--apps", "execution", "--port", "{ports.tasks}"),
    "dag-processor": ("dag-processor",),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}


def _chosen_ports() -> Ports:
    return Ports(**free_ports(("people", "tasks")))


def _write_private(path: Path, content: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(content)


@dataclass(frozen=True)
class AirflowHome:
    """The folder, DAGs and environment of an Airflow installation.

    `env` is added to the caller's environment, minus its ambient settings. `overrides` are sections and options that
    replace the ones chosen here. Preparing the same `root` again keeps its database, keys and password.
    """

    root: Path
    dags_folder: Path
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    crash: CrashSettings = field(default_factory=CrashSettings)
    overrides: Settings = field(default_factory=dict, repr=False)
    ports: Ports = field(default_factory=_chosen_ports)

    @property
    def url(self) -> str:
        """Return the address to open in a browser."""
        return local_url(self.ports.people)

    @property
    def login(self) -> Login:
        """Return the login of the only user, an admin; known after `prepare`."""
        return Login(_USER, json.loads(self._passwords.read_text())[_USER])

    def api(self) -> AirflowApi:
        return AirflowApi(self.url, self.login)

    def prepare(self) -> None:
        """Write configuration, keys and password, and create the database. Raises MiniclusterError: when that fails."""
        for folder in (self.root, self._logs, self._temporary, self.root / "plugins"):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._keys.exists():
            _write_private(self._keys, json.dumps(generated_secrets()))
        if not self._passwords.exists():
            _write_private(self._passwords, json.dumps({_USER: secrets.token_urlsafe(12)}))
        _write_private(self.root / "airflow.cfg", as_cfg(self._settings()))
        self._migrate()

    def components(self) -> tuple[Child, ...]:
        """Return the components for the supervisor to run, the slowest to start first."""
        return tuple(
            Child(
                name,
                Launch(
                    (sys.executable, "-m", "airflow", *(word.format(ports=self.ports) for word in command)),
                    self.environment(),
                    folder=self.root,
                    output=self._logs / f"{name}.log",
                ),
                grace=_GRACE,
            )
            for name, command in _COMPONENTS.items()
        )

    def environment(self) -> dict[str, str]:
        """Return the environment of every process, `spark-submit` of this interpreter's own packages first on PATH.

        What a killed process leaves in its temporary folder lies in this Airflow's own folder, and goes with it.
        """
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_AMBIENT)}
        path = os.pathsep.join([str(Path(sys.executable).parent), inherited.get("PATH", os.defpath)])
        own = {"AIRFLOW_HOME": str(self.root), "TMPDIR": str(self._temporary), "PYTHONUNBUFFERED": "1"}
        return {**inherited, "PATH": path, **self.env, **own}

    def wait_until_healthy(self, supervisor: ProcessSupervisor, timeout: float = 120) -> None:
        """Wait until every component is healthy. Raises MiniclusterError: when one is not after `timeout` seconds."""
        with closing(self.api()) as people, closing(AirflowApi(local_url(self.ports.tasks), self.login)) as tasks:

            def health() -> Mapping[str, str | None]:
                for name, why in supervisor.given_up.items():
                    raise MiniclusterError(why, tried=f"start Airflow's {name}")
                return people.health() | tasks.execution_health()

            Retrying(
                retry=retry_if_exception_type(Unavailable) | retry_if_result(lambda answers: answers != _HEALTHY),
                stop=stop_after_delay(timeout),
                wait=wait_fixed(0.25),
                retry_error_callback=lambda state: self._not_healthy(timeout, state.outcome),
            )(health)

    def _not_healthy(self, timeout: float, last: Future | None) -> None:
        """Describe the last observation: an error of the server, or the component that is missing."""
        health = last and (last.exception() or {name: last.result().get(name) or "never seen" for name in _HEALTHY})
        raise MiniclusterError(
            f"not every component is healthy after {timeout:g} s: {health}; the logs are in {self._logs}",
            tried="start Airflow",
            server=self.url,
        )

    def _settings(self) -> Settings:
        keys: Settings = json.loads(self._keys.read_text())
        chosen = small_machine(self.root, self.dags_folder, self.ports)
        return merged(chosen, self.crash.settings(), keys, self.overrides)

    def _migrate(self) -> None:
        log_file = self._logs / "migrate.log"
        with log_file.open("w") as output:
            done = subprocess.run(
                [sys.executable, "-m", "airflow", "db", "migrate"],
                env=self.environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode != 0:
            raise MiniclusterError(log_tail(log_file), tried="airflow db migrate")
        # Readers and the writer of one SQLite file don't block each other with a write-ahead log.
        with sqlite3.connect(self.root / "airflow.db") as database:
            database.execute("PRAGMA journal_mode=WAL")
        database.close()

    @property
    def _keys(self) -> Path:
        return self.root / "keys.json"

    @property
    def _passwords(self) -> Path:
        return self.root / "passwords.json"

    @property
    def _logs(self) -> Path:
        return self.root / "logs"

    @property
    def _temporary(self) -> Path:
        return self.root / "tmp"
