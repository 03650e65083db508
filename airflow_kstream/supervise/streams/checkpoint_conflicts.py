"""Other streams that declare the same checkpoint."""

from __future__ import annotations

from collections.abc import Callable

from airflow_kstream.model.errors import Conflict, KstreamError
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.hdfs_path import plain_path
from airflow_kstream.model.persisted_spec import UnknownSpec
from airflow_kstream.supervise.streams.registry import RegisteredStream, newest_claims
from airflow_kstream.supervise.streams.run import StreamRun


def require_exclusive_checkpoint(run: StreamRun, tell: Callable[[str], None]) -> None:
    """Refuse a checkpoint that another stream of this state_dir declares, unless that stream is meant to be stopped.

    A stream without a running application still counts: it may be between two generations. A stream whose claim
    can't be read is reported and blocks no submission: a checkpoint in use also shows by its movement.

    Raises Conflict: when another stream has it. Raises Unavailable: when HDFS is away.
    """
    session, spec = run.session, run.spec
    checkpoints = {plain_path(path) for path in spec.checkpoints}
    for other in newest_claims(session):
        if other.stream.name == spec.name:
            continue
        shared = checkpoints & _checkpoints(other, tell)
        if shared and not _stopped(other, tell):
            message = f"{shared.pop()} is the checkpoint of stream {other.stream.name}"
            raise Conflict(message, tried=f"submit {spec.name}")


def _checkpoints(other: RegisteredStream, tell: Callable[[str], None]) -> set[str]:
    if isinstance(other.newest, KstreamError):
        _tell_or_raise(other, other.newest, tell)
        return set()
    if other.newest is None:
        return set()
    if isinstance(other.newest.spec, UnknownSpec):
        tell(f"could not determine whether stream {other.stream.name} shares a checkpoint: {other.newest.doubt}")
        return set()
    return {plain_path(path) for path in other.newest.spec.checkpoints}


def _stopped(other: RegisteredStream, tell: Callable[[str], None]) -> bool:
    """Tell whether its desired state is stopped; one that can't be read is not."""
    try:
        return other.folder.desired(other.names).state is DesiredState.STOPPED
    except KstreamError as error:
        _tell_or_raise(other, error, tell)
        return False


def _tell_or_raise(other: RegisteredStream, error: KstreamError, tell: Callable[[str], None]) -> None:
    if error.retryable:
        raise error
    tell(f"could not determine whether stream {other.stream.name} shares a checkpoint: {error}")
