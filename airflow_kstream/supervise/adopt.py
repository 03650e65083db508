"""Take an application over that somebody else submitted, without restarting it."""

from __future__ import annotations

from airflow_kstream.model.errors import Conflict
from airflow_kstream.model.generation import Claim, StreamId
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.supervise.access import Access
from airflow_kstream.supervise.folder import Candidate, StreamFolder, new_nonce
from airflow_kstream.supervise.lifetimes import learn_lifetimes
from airflow_kstream.supervise.observe import observe


def adopt(access: Access, spec: StreamSpec, application_id: str) -> Claim:
    """Claim the next generation of the stream for a running application.

    Raise Conflict when the application has ended or the stream already runs one. Its age is taken from the
    ResourceManager's start time less a margin: its tokens are older than its start.
    """
    stream = StreamId(spec.name, access.cluster.state_dir)
    tried = f"adopt {application_id} as {spec.name}"
    app = access.yarn.application(application_id)
    seen = observe(access, stream, spec)
    if not app.alive:
        raise Conflict(f"it ended as {app.state}", tried=tried)
    if seen.current and seen.current.alive:
        raise Conflict(f"the stream already runs {seen.current.id}", tried=tried)
    candidate = Candidate(
        generation=seen.generation + 1,
        nonce=new_nonce(),
        spec=spec,
        lifetimes=learn_lifetimes(access.hdfs, access.identity),
        positions={point.path: point.position for point in seen.checkpoints},
        reason=f"adopted {application_id}",
        adopted=application_id,
        adopted_started=app.started,
    )
    return StreamFolder(access.hdfs, stream).make_claim(candidate)
