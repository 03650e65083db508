"""What is kept of a generation beside its claim: thread dumps and the ends of its logs, in the stream's folder on HDFS.

It lies below `evidence/`, for the stream's own user alone, because logs show data; and for the last generations only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.logs.container_log import LoggedContainer, Process
from airflow_kstream.model.streams.contract import EVIDENCE_FOLDER
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.supervise.streams.folder.run import StreamRun

log = logging.getLogger(__name__)

# Seconds for all logs together; containers whose logs are read; bytes of all logs.
_LOGS = 30.0
_CONTAINERS, _MOST = 4, 8 << 20
# The beginnings of the names of what is kept beside logs.
_NO_LOGS = ("summary.", "progress.", "threads-")
_GENERATIONS = 5
_FOLDER_MODE, _FILE_MODE = "700", "600"


def folder_of(stream: StreamId, generation: int) -> str:
    return f"{stream.folder}/{EVIDENCE_FOLDER}/{generation:06d}"


def is_log(name: str) -> bool:
    """Return whether a kept file of this name is the end of a log."""
    return not name.startswith(_NO_LOGS)


def keep(run: StreamRun, generation: int, files: Mapping[str, str]) -> None:
    """Write the files, over those of these names, and forget what was kept of old generations."""
    hdfs, folder = run.session.hdfs, folder_of(run.id, generation)
    above = folder.rpartition("/")[0]
    for path in (above, folder):
        hdfs.make_folder(path, _FOLDER_MODE)
    for name, text in files.items():
        hdfs.write(f"{folder}/{name}", text, overwrite=True, permission=_FILE_MODE)
    for old in sorted(hdfs.names(above))[:-_GENERATIONS]:
        hdfs.delete(f"{above}/{old}", recursive=True)


def containers_of(run: StreamRun, app: Application, processes: Iterable[Process]) -> Mapping[str, LoggedContainer]:
    """Return the container of the process that leads, which YARN itself knows, and of the first others, by a name."""
    named, leader = {process.name: process.container for process in processes}, run.engine.words.leader
    master = named.pop(leader, None) or LoggedContainer.of_link(app.logs_url)
    first = {leader: master, **dict(list(named.items())[: _CONTAINERS - 1])}
    return {name.replace(" ", "-"): container for name, container in first.items() if container}


def read_logs(
    run: StreamRun, containers: Mapping[str, LoggedContainer]
) -> tuple[Mapping[str, str], tuple[KstreamError, ...]]:
    """Return the ends of the containers' logs by the names of files, and the errors of those that can't be read."""
    logs, ends = ContainerLogs(run.cluster, run.session.identity), time.monotonic() + _LOGS
    words = run.engine.words
    files: dict[str, str] = {}
    unread: list[KstreamError] = []
    for name, container in containers.items():
        left = max(ends - time.monotonic(), 0.0)
        names = words.logs if name == words.leader else words.worker_logs or words.logs
        try:
            tails = logs.tails(container, names, _MOST // (_CONTAINERS * len(names)), left)
        except KstreamError as error:
            unread.append(error)
        else:
            files |= {f"{name}-{log}.txt": tail.text for log, tail in tails.items()}
    return files, tuple(unread)


def save_logs(run: StreamRun, app: Application, generation: int, tell: Callable[[str], None]) -> None:
    """Keep the ends of the logs of a generation that is about to end, which may be aggregated no longer.

    Takes at most 40 seconds beside what HDFS takes. A failure holds up nothing: `tell` gets it.
    """
    try:
        files, unread = read_logs(run, containers_of(run, app, run.engine.processes(run.session, app)))
        if files:
            keep(run, generation, files)
    except KstreamError as error:
        tell(f"the logs of {app.id} are not kept: {error.without_advice}")
        return
    except Exception as error:
        # A defect of ours must not keep a generation from being stopped in time.
        log.exception("The logs of %s are not kept", app.id)
        tell(f"the logs of {app.id} are not kept: {error!r}")
        return
    for lost in unread:
        tell(f"a log of {app.id} is not kept: {lost.without_advice}")
    tell(f"kept {len(files)} logs of {app.id} in {folder_of(run.id, generation)}")
