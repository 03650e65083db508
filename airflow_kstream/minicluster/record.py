"""`minicluster.json`: the plan, ports and processes of a minicluster, for later commands."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from airflow_kstream.minicluster.config import MiniclusterConfig
from airflow_kstream.minicluster.folders import Folders
from airflow_kstream.minicluster.processes import Identity
from airflow_kstream.minicluster.site import Site
from airflow_kstream.model.errors import MiniclusterError


def write_site(site: Site) -> None:
    """Begin the record of a minicluster without processes."""
    with _locked(site.folders.record) as data:
        data.clear()
        data.update(plan=site.plan.to_json(), ports=site.ports, daemons={})


def read_site(root: Path) -> Site:
    """Read the record. Raises MiniclusterError: when no minicluster was brought up in the folder."""
    data = _read(Folders(root).record)
    if not data:
        raise MiniclusterError(f"There is no minicluster in {root}")
    return Site(MiniclusterConfig.from_json(root, data["plan"]), data["ports"])


def write_process(folders: Folders, name: str, identity: Identity) -> None:
    with _locked(folders.record) as data:
        data["daemons"][name] = asdict(identity)


def read_processes(folders: Folders) -> dict[str, Identity]:
    """Return the last process that was started for each daemon, living or not."""
    daemons = _read(folders.record).get("daemons", {})
    return {name: Identity(**identity) for name, identity in daemons.items()}


@contextmanager
def _locked(record: Path) -> Iterator[dict[str, Any]]:
    with record.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        data = _read(record)
        yield data
        scratch = record.with_suffix(".next")
        scratch.write_text(json.dumps(data, indent=1))
        scratch.replace(record)


def _read(record: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(record.read_text())
    except FileNotFoundError:
        return {}
    return content
