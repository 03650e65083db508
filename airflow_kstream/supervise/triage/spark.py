"""Logs that are too many for one core: a Spark job scans them, here or on YARN, and the verdict is made here.

This module also writes the files that the job takes along to the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import timedelta, tzinfo
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import airflow_kstream
from airflow_kstream.clients.client_process import added_variables
from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.clients.kerberos.tickets import acquire
from airflow_kstream.clients.local.private import private_folder, write_private
from airflow_kstream.clients.spark import (
    environment,
    find_spark_submit,
    local_environment,
    run_job,
)
from airflow_kstream.clients.spark_installations import client_defaults, known_installation
from airflow_kstream.model.errors import NotFound, Unavailable
from airflow_kstream.model.log_scan.sections import Section
from airflow_kstream.model.logs.diagnosis import Diagnosis
from airflow_kstream.model.logs.log_line import HEAD
from airflow_kstream.model.logs.signature import Catalogue
from airflow_kstream.policy.triage.sources import TITLES, ScannedLog
from airflow_kstream.policy.triage.verdict import diagnose
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.triage.scan import patterns_of

_PACKAGE = Path(airflow_kstream.__file__).parent
# Where a container finds the archive; jobs/log_parts.py looks there.
ENGINE_FOLDER = "kstream_engine"
JOB = _PACKAGE / "jobs" / "triage.py"
_MODULES = tuple(JOB.with_name(name) for name in ("log_parts.py", "log_reads.py"))
_SCANNER = _PACKAGE / "model" / "log_scan"


def write_modules(folder: Path) -> Path:
    """Write the modules beside the job into one archive for --py-files."""
    archive = folder / "triage.zip"
    with ZipFile(archive, "w") as modules:
        for module in _MODULES:
            modules.write(module, module.name)
        for file in sorted(_SCANNER.glob("*.py")):
            modules.write(file, f"{_SCANNER.name}/{file.name}")
    return archive


def write_engine(folder: Path) -> Path | None:
    """Write Hyperscan, as it is installed here, into an archive for --archives; None where it is not.

    A worker of another version of Python can't load it, and uses Python's own engine.
    """
    found = find_spec("hyperscan")
    if found is None or not found.submodule_search_locations:
        return None
    package = Path(found.submodule_search_locations[0])
    archive = folder / "engine.zip"
    with ZipFile(archive, "w") as engine:
        for file in package.iterdir():
            if file.suffix in {".py", ".so"}:
                engine.write(file, f"{package.name}/{file.name}")
    return archive


def settings_of(catalogue: Catalogue) -> str:
    """Return what the job looks for, as JSON."""
    patterns = [astuple(each) for each in patterns_of(catalogue)]
    return json.dumps({"patterns": patterns, "heads": HEAD, "titles": [title.name for title in TITLES]})


# A worker reads one block of 8 MB after the other. By default glibc returns each to the kernel, which makes the next
# one's pages again: a tenth of the job's time and more. These keep them (in bytes), in one arena for all threads.
_MALLOC = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(256 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
# The job lives for seconds: what it would wait for is most of them. The client's spark-defaults.conf, the connection
# and the run have the last word on each of these.
_BRISK = {
    "spark.ui.enabled": "false",
    "spark.yarn.report.interval": "200ms",
    # The driver cuts the logs, and begins to scan them, while the executors start.
    "spark.scheduler.minRegisteredResourcesRatio": "0",
    **{f"spark.executorEnv.{name}": value for name, value in _MALLOC.items()},
}


@dataclass(frozen=True)
class SparkRun:
    """The way in which the job runs. `master` is `local[*]`, or `yarn`, whose executors need this host's Python.

    `driver_scans` says whether this host works, too, until the executors have started.
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    timeout: timedelta = timedelta(hours=1)
    task_size: int = 64 << 20
    binary: str = ""
    driver_scans: bool = True


def triage_with_spark(
    locations: Sequence[str],
    catalogue: Catalogue,
    run: SparkRun,
    session: ClusterSession | None = None,
    zone: tzinfo | None = None,
) -> Diagnosis:
    """Judge the logs in files and folders, given as URIs. `session` is for what lies on HDFS.

    Raises SubmissionFailed: when Spark can't be started or the job fails. Raises NotFound: when there are no logs.
    """
    with private_folder() as folder:
        found = _found(folder, locations, catalogue, run, session)
    logs = [ScannedLog(log["name"], [Section.of_plain(each) for each in log["sections"]]) for log in found["logs"]]
    if not logs:
        raise NotFound("; ".join(found["unread"]) or "there are none", tried=f"read the logs in {', '.join(locations)}")
    return diagnose(logs, catalogue, zone, unread=found["unread"])


def application_logs(session: ClusterSession, application_id: str) -> tuple[str, ...]:
    """Return the URIs of an application's aggregated logs.

    Raises NotFound: when it has none, for instance because it runs, or because its tokens were dead at its end.
    """
    app = session.yarn.application(application_id)
    logs = ContainerLogs(session.cluster, session.identity)
    paths = [path for path, _ in logs.aggregated_nodes(session.hdfs, app.id, app.user)]
    if not paths:
        raise NotFound("it has no aggregated logs", tried=f"find the logs of {application_id}")
    return tuple(f"{session.cluster.default_fs.rstrip('/')}{path}" for path in paths)


def _found(
    folder: Path, locations: Sequence[str], catalogue: Catalogue, run: SparkRun, session: ClusterSession | None
) -> Mapping[str, list[Any]]:
    patterns = write_private(folder / "patterns.json", settings_of(catalogue).encode())
    result = folder / "found.json"
    binary = run.binary or find_spark_submit()
    # A client behind a script is not asked: that takes seconds, and what is brisk changes no result.
    defaults = client_defaults(known_installation(binary, added_variables(session.cluster) if session else {}))
    brisk = {key: value for key, value in _BRISK.items() if key not in defaults}
    conf = {**brisk, **(session.cluster.spark_conf if session else {}), **run.conf}
    argv = [binary, "--master", run.master, "--py-files", str(write_modules(folder))]
    engine = write_engine(folder) if run.master.startswith("yarn") else None
    argv += ["--archives", f"{engine}#{ENGINE_FOLDER}"] if engine else []
    argv += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    argv += [str(JOB), "--patterns", str(patterns), "--to", result.as_uri(), "--task-size", str(run.task_size)]
    argv += [] if run.driver_scans else ["--await-workers"]
    if session:
        argv += ["--namenodes", ",".join(session.cluster.namenodes)]
    run_job([*argv, *locations], _environment(session, folder, binary), folder, run.timeout)
    try:
        found: Mapping[str, list[Any]] = json.loads(result.read_text())
    except (OSError, ValueError) as error:
        raise Unavailable(f"the job ended well and left no result: {error}", tried="scan logs with Spark") from None
    return found


def _environment(session: ClusterSession | None, folder: Path, binary: str) -> Mapping[str, str]:
    """Return the child's environment; for a cluster it has a ticket of its own in the private folder."""
    if session is None:
        return local_environment(binary)
    cache = folder / "ticket"
    acquire(session.identity, cache)
    return environment(session.cluster, cache, binary)
