"""A stream's desired state, written where every supervisor reads it."""

from __future__ import annotations

from airflow_kstream.model.errors import Conflict, InvalidInput, NotFound
from airflow_kstream.model.generation import DesiredState, StreamId
from airflow_kstream.model.persisted_spec import UnknownSpec
from airflow_kstream.model.stream import StreamSpec
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.state_folder import StreamFolder


def set_desired(run: StreamRun, state: DesiredState, reason: str) -> None:
    run.folder.set_desired(state, reason)


def request_restart(run: StreamRun, reason: str) -> int:
    """Request that the current generation be replaced, and return its number. Two requests restart it once.

    Raises NotFound: when it was never submitted. Raises Conflict: when its desired state is not to run.
    """
    name, tried = run.spec.name, f"request a restart of {run.spec.name}"
    names = run.folder.names()
    claim = run.folder.claim(names)
    if claim is None:
        raise NotFound("it was never submitted", tried=tried)
    state = run.folder.desired(names).state
    if state is not DesiredState.RUNNING:
        raise Conflict(f"its desired state is {state}; run `kstream streams start {name}` first", tried=tried)
    run.folder.set_desired(DesiredState.RUNNING, reason, restart_up_to=claim.generation)
    return claim.generation


def declared_at_last(session: ClusterSession, stream: StreamId) -> StreamSpec:
    """Return the newest claim's spec: enough to watch, stop and restart a stream whose declaration isn't at hand.

    It only refers to its secrets, so the program that submits from it must be able to reach them.

    Raises NotFound: when it was never submitted. Raises InvalidInput: when the claim or its spec can't be read.
    """
    folder = StreamFolder(session.hdfs, stream)
    claim = folder.claim(folder.names())
    if claim is None:
        raise NotFound("no generation of it was ever claimed", tried=f"read the claims of {stream.name}")
    if isinstance(claim.spec, UnknownSpec):
        raise InvalidInput(claim.doubt, tried=f"read the claim of generation {claim.generation} of {stream.name}")
    return claim.spec
