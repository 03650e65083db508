"""A running Flink application that a person adopts: its JobManager says which job it runs, and where that job writes.

Nothing of it is changed: these are four GETs behind YARN's proxy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from airflow_kstream.clients.flink_pages import FlinkPages
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.errors import Conflict, NotFound
from airflow_kstream.model.streams.flink_job import FlinkCheckpointing
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.flink.checkpoint_pace import settings_of
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.engine import Adopted

# Seconds for all pages: a person waits.
_WITHIN = 60.0
# JobStatus.isGloballyTerminalState.
_ENDED = frozenset({"FINISHED", "FAILED", "CANCELED"})
_NO_CHECKPOINTS = "its job makes no checkpoints by itself: nothing would show its progress, and nothing could resume it"
_LOST = (
    "its checkpoints do not survive it (execution.checkpointing.externalized-checkpoint-retention): after its end, "
    "nothing resumes it but a savepoint"
)


def adopted_job(session: ClusterSession, spec: StreamSpec, app: Application) -> Adopted:
    """Return the application's only job, and where it writes.

    Raises Conflict: when it runs no job or several, when that has ended, makes no checkpoints or writes them elsewhere,
    or, `passing`, when it has completed none yet. Raises Unavailable: when the JobManager does not answer.
    """
    tried, (folder,) = f"adopt {app.id} as {spec.name}", map(plain_path, spec.checkpoints)
    where = session.yarn.active()
    with closing(FlinkPages(where, app.id, session.identity, session.cluster.tls, _WITHIN)) as pages:
        job = _only_job(pages, tried)
        pace = _pace(pages, job, tried)
        newest = pages.checkpoints(job).newest
    if newest is None:
        raise Conflict(
            f"job {job} has completed no checkpoint yet, which would show where it writes", tried=tried
        ).passing()
    wanted = f"{folder}/{job}/chk-{newest.number}"
    if newest.path not in {wanted, f"{session.cluster.default_fs.rstrip('/')}{wanted}"}:
        at = newest.path or "the JobManager's memory"
        raise Conflict(
            f"its newest checkpoint is {at}; declared is {folder}, so that it would be {wanted}", tried=tried
        )
    return Adopted(job, (f"job {job} writes {wanted}",), tuple(_doubts(pace)), settings_of(pace))


def _only_job(pages: FlinkPages, tried: str) -> str:
    jobs = pages.jobs()
    if len(jobs) != 1:
        named = f" ({', '.join(jobs)})" if jobs else ""
        raise Conflict(f"it has {len(jobs)} jobs{named}; a stream is an application with one", tried=tried)
    if (state := pages.job(jobs[0]).state) in _ENDED:
        raise Conflict(f"its job {jobs[0]} is {state}", tried=tried)
    return jobs[0]


def _pace(pages: FlinkPages, job: str, tried: str) -> FlinkCheckpointing:
    try:
        pace = pages.checkpointing(job)
    except NotFound:
        raise Conflict(_NO_CHECKPOINTS, tried=tried) from None
    if pace.interval is None:
        raise Conflict(_NO_CHECKPOINTS, tried=tried)
    return pace


def _doubts(pace: FlinkCheckpointing) -> Iterator[str]:
    if not pace.survives:
        yield _LOST
