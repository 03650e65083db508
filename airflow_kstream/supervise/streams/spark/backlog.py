"""What waits in Kafka for a query that plans no batch: the difference between no input and a query that is blocked."""

from __future__ import annotations

from dataclasses import replace

from airflow_kstream.model.errors import InvalidInput, KstreamError, NotFound
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.kafka import Backlog, backlog, planned_offsets
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.pulse.heartbeat import rests
from airflow_kstream.supervise.clusters.session import ClusterSession


def with_backlog(session: ClusterSession, spec: StreamSpec, point: Checkpoint) -> Checkpoint:
    """Return the checkpoint with its backlog, if it has rested long enough for it to decide and brokers are declared.

    An error of Kafka's is not an error of the look: the backlog is then unknown, and says why.
    """
    if spec.kafka.bootstrap_servers is None or not rests(spec.heartbeat, point, session.hdfs.now()):
        return point
    try:
        planned = planned_offsets(session.hdfs.read(f"{point.path}/offsets/{point.position.offset}"))
        if not planned:
            return point
        return replace(point, backlog=backlog(planned, session.kafka.of(spec.kafka, planned)))
    except (NotFound, InvalidInput):
        # A batch that was just purged, or a topic that was deleted: nothing waits that anybody could name.
        return point
    except KstreamError as error:
        return replace(point, backlog=Backlog(None, why=str(error)))
