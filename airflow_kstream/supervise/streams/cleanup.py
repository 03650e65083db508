"""What an ended generation leaves behind: its staging folder, with a copy of the keytab in it."""

from __future__ import annotations

from airflow_kstream.model.application import Application
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.state_folder import StreamFolder

# Enough to see how the last restarts went.
_CLAIMS_KEPT = 10


def clean_up(session: ClusterSession, seen: Observation, spec: StreamSpec) -> tuple[str, ...]:
    """Delete what dead generations left, and return what was deleted.

    YARN's 250 ms between SIGTERM and SIGKILL are too short for Spark to do it when it is killed (SPARK-17340).
    """
    if seen.claim and seen.claim.newer:
        return ()
    dead = [app for _, app in seen.applications if not app.alive]
    deleted = [folder for app in dead if session.hdfs.delete(folder := _staging(session, spec, app), recursive=True)]
    if seen.generation > _CLAIMS_KEPT:
        StreamFolder(session.hdfs, seen.stream).forget_before(seen.generation - _CLAIMS_KEPT + 1, seen.files)
    return tuple(deleted)


def _staging(session: ClusterSession, spec: StreamSpec, app: Application) -> str:
    conf = {**session.cluster.spark_conf, **spec.conf}
    root = conf.get("spark.yarn.stagingDir", f"/user/{app.user}")
    return f"{root.rstrip('/')}/.sparkStaging/{app.id}"
