"""What the JobManager of a running Flink job shows of its configuration, behind YARN's proxy: two GETs."""

from __future__ import annotations

from contextlib import closing

from airflow_kstream.clients.flink_pages import FlinkPages
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.cluster_facts import StreamConf
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.model.streams.flink_job import job_of
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.model.streams.stream import EngineName
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.try_ask import try_ask

# Seconds: a JobManager that hangs must not hold up the others for long.
_WITHIN = 5.0
_CONF, _SURVIVES = "the configuration of its JobManager", "whether its checkpoints survive it"


def flink_conf_of(session: ClusterSession, stream: StreamId, claim: Claim, app: Application | None) -> StreamConf:
    """Return what the stream's job runs with. Nothing raises: each fact may be missing by itself."""
    if app is None:
        nobody = NotChecked(_CONF, "none runs")
        return StreamConf(conf=nobody, engine=EngineName.FLINK, survives=nobody)
    server, job = try_ask("the active ResourceManager", session.yarn.active), job_of(stream, claim)
    if isinstance(server, NotChecked):
        return StreamConf(conf=server, engine=EngineName.FLINK, survives=server)
    with closing(FlinkPages(server, app.id, session.identity, session.cluster.tls, _WITHIN)) as pages:
        conf = try_ask(_CONF, pages.conf)
        survives: bool | NotChecked = NotChecked(_SURVIVES, "its claim doesn't tell which job it runs")
        if job is not None:
            survives = try_ask(_SURVIVES, lambda: pages.checkpointing(job).survives)
    return StreamConf(conf=conf, conf_from=f"the JobManager of {app.id}", engine=EngineName.FLINK, survives=survives)
