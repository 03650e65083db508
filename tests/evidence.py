"""What a cluster's own logs say when a test fails on it: its folder is deleted when the run ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from airflow_kstream.minicluster import Minicluster

_STATES = 15
_APPLICATIONS = 3
_TAIL = 25


def evidence(minicluster: Minicluster) -> str:
    """Return how YARN's applications went last, and the ends of the newest containers' logs."""
    resourcemanagers = [log for name, log in minicluster.event_logs().items() if not name.startswith("nn")]
    states = [line for log in resourcemanagers for line in _states(log)]
    return "\n".join([*states, *_containers(minicluster.root / "logs/containers")])


def _states(log: Path) -> list[str]:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return [line for line in lines if "RMAppImpl" in line and "State change" in line][-_STATES:]


def _containers(logs: Path) -> Iterator[str]:
    # The NodeManager deletes an application's logs here once they are aggregated.
    for application in sorted(logs.glob("application_*"))[-_APPLICATIONS:]:
        for log in sorted(application.glob("container_*/stderr")):
            with suppress(FileNotFoundError):
                yield from (f"--- {log.relative_to(logs)}", *log.read_text(errors="replace").splitlines()[-_TAIL:])
