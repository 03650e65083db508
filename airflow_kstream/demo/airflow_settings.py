"""The configuration of the demonstration's Airflow, as sections and options of its airflow.cfg."""

from __future__ import annotations

import json
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

Settings = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Ports:
    """Ports of 127.0.0.1: `people` for the UI and its REST API, `tasks` for the API that the workers use.

    There are two servers because one would freeze: it commits its audit log of what people do on its event loop and
    waits there for SQLite's lock, but a task's request that holds the lock needs the same event loop to commit.
    """

    people: int
    tasks: int


def local_url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


@dataclass(frozen=True)
class CrashSettings:
    """The times after which Airflow notices that one of its parts died, in seconds. The defaults are Airflow's own.

    A dead triggerer's triggers move to another one `triggerer_presumed_dead` after its last heartbeat. If a worker
    died, the scheduler takes its task back `task_presumed_dead` after the task's last heartbeat. If the scheduler died
    with the task (LocalExecutor), its successor finds the task `scheduler_presumed_dead` after the old scheduler's last
    heartbeat, at its next `orphan_check`.
    """

    component_heartbeat: int = 5
    triggerer_presumed_dead: int = 30
    scheduler_presumed_dead: int = 30
    orphan_check: int = 300
    task_heartbeat: int = 5
    task_presumed_dead: int = 300
    task_check: int = 10

    @classmethod
    def brisk(cls) -> CrashSettings:
        """Return short times for one small machine and an impatient audience; too short for production.

        The scheduler's is the longest: it must not consider itself dead because a JVM starts next to it.
        """
        return cls(
            component_heartbeat=2,
            triggerer_presumed_dead=8,
            scheduler_presumed_dead=15,
            orphan_check=3,
            task_heartbeat=1,
            task_presumed_dead=20,
            task_check=3,
        )

    def settings(self) -> Settings:
        return {
            "scheduler": {
                "job_heartbeat_sec": str(self.component_heartbeat),
                "scheduler_heartbeat_sec": str(self.component_heartbeat),
                "scheduler_health_check_threshold": str(self.scheduler_presumed_dead),
                "orphaned_tasks_check_interval": str(self.orphan_check),
                "task_instance_heartbeat_timeout": str(self.task_presumed_dead),
                "task_instance_heartbeat_timeout_detection_interval": str(self.task_check),
            },
            "triggerer": {
                "job_heartbeat_sec": str(self.component_heartbeat),
                "triggerer_health_check_threshold": str(self.triggerer_presumed_dead),
            },
            "workers": {"min_heartbeat_interval": str(self.task_heartbeat)},
        }


def generated_secrets() -> Settings:
    """Generate the keys that all processes share. Keep them over restarts: connections are encrypted with them."""
    return {
        "core": {"fernet_key": urlsafe_b64encode(secrets.token_bytes(32)).decode()},
        "api": {"secret_key": secrets.token_hex(64)},
        "api_auth": {"jwt_secret": secrets.token_hex(64)},
    }


def small_machine(home: Path, dags_folder: Path, ports: Ports) -> Settings:
    """Return settings for two cores: loopback only, SQLite, four tasks at a time, DAG files read every 5 s."""
    bundle = {
        "name": "dags",
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": str(dags_folder), "refresh_interval": 5},
    }
    return {
        "core": {
            "executor": "LocalExecutor",
            "parallelism": "4",
            "load_examples": "False",
            "dags_folder": str(dags_folder),
            "plugins_folder": str(home / "plugins"),
            "execution_api_server_url": f"{local_url(ports.tasks)}/execution/",
            # The default asks DNS for a full name, which takes seconds where nobody answers.
            "hostname_callable": "socket.gethostname",
            "simple_auth_manager_users": "admin:admin",
            "simple_auth_manager_passwords_file": str(home / "passwords.json"),
        },
        # A writer waits for the lock instead of failing; write-ahead logging is a property of the file itself.
        "database": {"sql_alchemy_conn": f"sqlite:///{home}/airflow.db?timeout=30"},
        "api": {"host": "127.0.0.1", "port": str(ports.people), "base_url": local_url(ports.people)},
        "dag_processor": {
            "dag_bundle_config_list": json.dumps([bundle]),
            "dag_bundle_storage_path": str(home / "bundles"),
            "refresh_interval": "5",
            "min_file_process_interval": "5",
            "parsing_processes": "1",
        },
        "logging": {"base_log_folder": str(home / "logs"), "colored_console_log": "False"},
    }


def merged(*layers: Settings) -> dict[str, dict[str, str]]:
    """Merge layers option by option; later ones win."""
    result: dict[str, dict[str, str]] = {}
    for layer in layers:
        for section, options in layer.items():
            result.setdefault(section, {}).update(options)
    return result


def as_cfg(settings: Settings) -> str:
    """Render an airflow.cfg. A percent sign is doubled: Airflow's parser interpolates."""
    sections = (
        "\n".join([f"[{name}]", *(f"{option} = {value.replace('%', '%%')}" for option, value in options.items())])
        for name, options in settings.items()
    )
    return "\n\n".join(sections) + "\n"
