"""Triage of an application, with what its supervisor knows and keeps of it if it was a stream's.

YARN may aggregate nothing of it, and answers for a stopped application as it does for a failed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.logs.diagnosis import Diagnosis
from airflow_kstream.model.streams.contract import stop_marker
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.generation_end import NOTHING_KEPT, KeptGeneration
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.formats import read_stop
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.pulse.evidence import folder_of, is_log
from airflow_kstream.supervise.triage.look import TriageLook


def triage_generation(session: ClusterSession, application_id: str, look: TriageLook) -> Diagnosis:
    """Judge an application, a stream's or not. Raises as `TriageLook.of_application`."""
    app = session.yarn.application(application_id)
    return look.of_application(session, app.id, NOTHING_KEPT if app.alive else kept_of(session, app))


def kept_of(session: ClusterSession, app: Application) -> KeptGeneration:
    """Return what is kept of an application; nothing if it is of no stream in this state_dir. Raises nothing."""
    stream = StreamId.of_tags(app.tags, session.cluster.state_dir)
    number = stream.generation_of(app.tags) if stream else None
    if stream is None or number is None:
        return NOTHING_KEPT
    folder = folder_of(stream, number)
    kept = KeptGeneration()
    try:
        kept = replace(kept, stopped=_stopped(session, stream, number))
        return replace(kept, logs=_logs(session, folder))
    except KstreamError as error:
        return replace(kept, unread=(f"what is kept of {stream.name} in {folder}: {error.without_advice}",))


def _stopped(session: ClusterSession, stream: StreamId, number: int) -> str:
    folder, marker = StreamFolder(session, stream), stop_marker(number)
    if marker not in folder.names():
        return ""
    why = read_stop(folder.text(marker)) or "nobody said why"
    return f"it was generation {number} of {stream.name}, and its supervisor stopped it: {why}"


def _logs(session: ClusterSession, folder: str) -> Mapping[str, str]:
    """Read the kept logs: there are some where YARN may keep none. HDFS lets only the stream's own user read them."""
    names = [file.name for file in session.hdfs.list(folder) if is_log(file.name)]
    return {f"{folder}/{name}": session.hdfs.read(f"{folder}/{name}") for name in names}
