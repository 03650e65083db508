"""What a running Flink job will not touch again of the files below its outputs: one GET and four listings at most."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_kstream.clients.flink_pages import FlinkPages
from airflow_kstream.model.clusters.application import ApplicationState
from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.streams.checkpoint_owner import OWNER_FOLDER
from airflow_kstream.model.streams.flink_job import FlinkCheckpoints, job_of
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.stream import FlinkStreamSpec
from airflow_kstream.policy.streams.flink.retention import CLOCKS, given_up_before
from airflow_kstream.supervise.streams.flink.flink_progress import CHECKPOINT
from airflow_kstream.supervise.streams.folder.engine import Newest

if TYPE_CHECKING:
    from airflow_kstream.supervise.clusters.session import ClusterSession

# Seconds that the JobManager may take.
_WITHIN = 20.0


def flink_given_up_before(
    session: ClusterSession, spec: FlinkStreamSpec, newest: Newest, stream: StreamId
) -> datetime | None:
    """Return what the engine's `given_up_before` promises. Raises the errors of the JobManager's pages."""
    app, job = newest.application, job_of(stream, newest.claim) if newest.claim else None
    if app is None or app.state is not ApplicationState.RUNNING or job is None:
        return None
    where = session.yarn.active()
    with closing(FlinkPages(where, app.id, session.identity, session.cluster.tls, _WITHIN)) as pages:
        seen = pages.checkpoints(job)
    (folder,) = map(plain_path, spec.checkpoints)
    kept = session.hdfs.matching(f"{folder}/{job}", lambda entry: bool(CHECKPOINT.fullmatch(entry.name)))
    retained = [int(entry.name.removeprefix("chk-")) for entry in kept]
    return given_up_before(seen, retained, others=_others(session, spec, f"{folder}/{job}", seen))


def _others(session: ClusterSession, spec: FlinkStreamSpec, own: str, seen: FlinkCheckpoints) -> bool:
    """Return whether checkpoints of another job, or savepoints that are older than the restart, lie beside its own."""
    folder, _, job = own.rpartition("/")
    if session.hdfs.matching(folder, lambda entry: entry.is_folder and entry.name not in {job, OWNER_FOLDER}):
        return True
    saved, resumed = spec.savepoints.folder, seen.resumed_from
    if saved is None or resumed is None:
        return False
    # The age of a folder is that of the newest in it, so the job's own is looked into.
    places = (plain_path(saved), f"{plain_path(saved)}/{job}")
    since = resumed.at + CLOCKS
    return any(
        session.hdfs.matching(place, lambda entry: entry.modified < since and entry.name != job) for place in places
    )
