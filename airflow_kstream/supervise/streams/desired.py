"""A stream's desired state, written where every supervisor reads it."""

from __future__ import annotations

from dataclasses import replace

from airflow_kstream.model.errors import Conflict, InvalidInput, KstreamError, NotFound
from airflow_kstream.model.fields import require_stream_name
from airflow_kstream.model.generation import Desired, DesiredState, StreamId
from airflow_kstream.model.persisted_spec import UnknownSpec
from airflow_kstream.model.stream import StreamSpec, TicketCredentials
from airflow_kstream.policy.streams.held import left_as
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.observe import observe
from airflow_kstream.supervise.streams.run import StreamRun
from airflow_kstream.supervise.streams.state_folder import StreamFolder


def set_desired(run: StreamRun, state: DesiredState, reason: str) -> None:
    """Write the desired state. A requested restart stays requested."""
    run.folder.change_desired(lambda current: replace(current, state=state, reason=reason))


def request_restart(run: StreamRun, reason: str) -> int:
    """Request that the current generation be replaced, and return its number. Two requests restart it once.

    Raises NotFound: when it was never submitted. Raises Conflict: when its desired state is not to run, also when
    somebody changes it at the same moment: a held stream stays held.
    """
    name, tried = run.spec.name, f"request a restart of {run.spec.name}"
    claim = run.folder.claim(run.folder.names())
    if claim is None:
        raise NotFound("it was never submitted", tried=tried)

    def restarting(current: Desired) -> Desired:
        if current.state is not DesiredState.RUNNING:
            advice = f"run `kstream streams start {name}` first"
            raise Conflict(f"its desired state is {current.state}; {advice}", tried=tried)
        return replace(current, restart_up_to=max(current.restart_up_to, claim.generation), reason=reason)

    run.folder.change_desired(restarting)
    return claim.generation


def hold(run: StreamRun, reason: str) -> str:
    """Set the desired state to held, and say what that leaves the stream as."""
    set_desired(run, DesiredState.HELD, reason)
    try:
        return left_as(observe(run))
    except KstreamError as error:
        # The word stands; what became of the stream meanwhile is only news.
        return f"how it stands can't be seen now: {error.without_advice}"


def known_spec(session: ClusterSession, stream: StreamId) -> StreamSpec:
    """Return the newest claim's spec or, before the first claim, one that only names the stream.

    Raises InvalidInput: when the claim or its spec can't be read, or this can't be a stream's name.
    """
    try:
        return declared_at_last(session, stream)
    except NotFound:
        require_stream_name(stream.name)
        return StreamSpec(stream.name, TicketCredentials(), application="", checkpoints=())


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
