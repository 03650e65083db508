"""The other streams of a state_dir, as far as their ends tell whether one cause ended several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from airflow_kstream.model.contract import ended_file, recorded_ends
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.generation import StreamId
from airflow_kstream.model.generation_end import EndKind, PastEnd
from airflow_kstream.model.stream_policies import FailurePolicy
from airflow_kstream.policy.streams.environment import continues, one_cause
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.formats import read_ends

# Folders that are looked at: a thousand streams that fail together must not list a thousand folders each.
_LOOKED_AT = 20
# A word of YARN's that names no error is too common to connect two streams.
_NAMELESS = {"", *EndKind}


def with_company(
    session: ClusterSession, stream: StreamId, policy: FailurePolicy, ends: Sequence[PastEnd]
) -> tuple[PastEnd, ...]:
    """Return the ends, oldest first, with what ended several streams within a short time marked as the environment's.

    It stays the environment's until the stream makes progress or ends of another error. The stream that ends first
    finds no company yet, so earlier ends of the same error are judged again. Costs one listing, and two requests for
    each of a few streams that changed lately. A neighbour that can't be read is not counted.
    """
    last = ends[-1]
    if last.killed_by or (last.fingerprint in _NAMELESS and not last.silent):
        return tuple(ends)
    alone = [end for end in ends if one_cause(end, last) and not end.shared]
    company = dict.fromkeys((end.generation for end in alone), 1)
    if not continues(ends[-2] if len(ends) > 1 else None, last):
        for other in _ends_of_others(session, stream, alone[0].at - policy.together_within):
            for end in alone:
                company[end.generation] += _accompany(policy, end, other)
            if company[last.generation] >= policy.together:
                break
    return tuple(
        _carried_on(
            replace(end, shared=end.shared or company.get(end.generation, 0) >= policy.together) for end in ends
        )
    )


def _carried_on(ends: Iterable[PastEnd]) -> Iterator[PastEnd]:
    before: PastEnd | None = None
    for end in ends:
        before = replace(end, shared=end.shared or continues(before, end))
        yield before


def _accompany(policy: FailurePolicy, end: PastEnd, others: Iterable[PastEnd]) -> bool:
    return any(one_cause(end, other) and abs(end.at - other.at) <= policy.together_within for other in others)


def _ends_of_others(session: ClusterSession, stream: StreamId, since: datetime) -> Iterator[tuple[PastEnd, ...]]:
    """Yield the recorded ends of each stream whose folder changed since then, the latest change first."""
    state_dir = stream.state_dir.rstrip("/")
    try:
        folders = [file for file in session.hdfs.list(state_dir) if file.is_folder and file.name != str(stream)]
    except KstreamError:
        return
    lately = sorted((file for file in folders if file.modified >= since), key=lambda file: file.modified, reverse=True)
    for folder in lately[:_LOOKED_AT]:
        yield _ends_in(session, f"{state_dir}/{folder.name}")


def _ends_in(session: ClusterSession, folder: str) -> tuple[PastEnd, ...]:
    try:
        recorded = recorded_ends(file.name for file in session.hdfs.list(folder))
        return read_ends(session.hdfs.read(f"{folder}/{ended_file(recorded[-1])}")) if recorded else ()
    except KstreamError:
        return ()
