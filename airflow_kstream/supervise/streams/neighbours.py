"""The other streams of a state_dir, as far as their ends tell whether one cause ended several."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_kstream.model.contract import ended_file, recorded_ends
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.generation_end import EndKind, PastEnd
from airflow_kstream.model.observation import Observation
from airflow_kstream.model.stream_policies import FailurePolicy
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.formats import read_ends

# Folders that are looked at: a thousand streams that fail together must not list a thousand folders each.
_LOOKED_AT = 20
# A word of YARN's that names no error is too common to connect two streams.
_NAMELESS = {"", *EndKind}


def ended_together(session: ClusterSession, policy: FailurePolicy, observation: Observation, end: PastEnd) -> bool:
    """Return whether one error ended several streams within a short time: then it is the environment's.

    It stays the environment's until the stream makes progress or ends of another error. Costs one listing, and two
    requests for each stream that ended lately. A neighbour that can't be read is not counted.
    """
    if end.killed_by or end.fingerprint in _NAMELESS:
        return False
    before = observation.ends[-1] if observation.ends else None
    if before and before.shared and before.fingerprint == end.fingerprint and not end.worked:
        return True
    alike = 1
    for other in _ends_of_others(session, policy, observation):
        alike += other.fingerprint == end.fingerprint and end.at - other.at <= policy.together_within
        if alike >= policy.together:
            return True
    return alike >= policy.together


def _ends_of_others(session: ClusterSession, policy: FailurePolicy, observation: Observation) -> Iterator[PastEnd]:
    """Yield the newest end of each stream whose folder changed lately, the latest first."""
    stream, state_dir = observation.stream, observation.stream.state_dir.rstrip("/")
    try:
        folders = [file for file in session.hdfs.list(state_dir) if file.is_folder and file.name != str(stream)]
    except KstreamError:
        return
    lately = [file for file in folders if observation.now - file.modified <= policy.together_within]
    for folder in sorted(lately, key=lambda file: file.modified, reverse=True)[:_LOOKED_AT]:
        yield from _newest_end(session, f"{state_dir}/{folder.name}")


def _newest_end(session: ClusterSession, folder: str) -> Iterator[PastEnd]:
    try:
        recorded = recorded_ends(file.name for file in session.hdfs.list(folder))
        if recorded:
            yield from read_ends(session.hdfs.read(f"{folder}/{ended_file(recorded[-1])}"))[-1:]
    except (InvalidInput, KstreamError, UnicodeDecodeError):
        return
