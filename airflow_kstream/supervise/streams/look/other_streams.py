"""The last generations of a stream and of the others in its state_dir, as far as their ends tell whether one cause
ended several.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.streams.contract import claims, ended_file, recorded_ends, stop_marker
from airflow_kstream.model.streams.generation import Claim, Life, StreamId
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.model.streams.stream_policies import FailurePolicy
from airflow_kstream.policy.streams.ends.after_end import continues, one_cause
from airflow_kstream.policy.streams.ends.death import lives
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.formats import read_ends, read_stop
from airflow_kstream.supervise.streams.folder.memory import past_ends
from airflow_kstream.supervise.streams.folder.registry import streams_among
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder

# Each costs two requests.
_MOST = 12

log = logging.getLogger(__name__)

# Folders that are looked at: a thousand streams that fail together must not list a thousand folders each.
_LOOKED_AT = 20
# A word of YARN's that names no error is too common to connect two streams.
_NAMELESS = {"", *EndKind}


def mark_shared_causes(
    session: ClusterSession, stream: StreamId, policy: FailurePolicy, ends: Sequence[PastEnd]
) -> tuple[PastEnd, ...]:
    """Return the ends, oldest first, with what ended several streams within a short time marked as the environment's.

    It stays the environment's until the stream makes progress or ends of another error. The stream that ends first
    finds no company yet, so earlier ends of the same error are judged again. Costs one listing, and two requests for
    each of a few streams that changed lately. A neighbour that can't be read is not counted.
    """
    last = ends[-1]
    if last.killed_by or last.kind is EndKind.STATE or (last.fingerprint in _NAMELESS and not last.clues.silent):
        return tuple(ends)
    alone = [end for end in ends if one_cause(end, last) and not end.shared]
    company = dict.fromkeys((end.generation for end in alone), 1)
    if not continues(ends[-2] if len(ends) > 1 else None, last):
        for other in _others(session, stream, alone[0].at - policy.together_within):
            for end in _accompanied(session, policy, alone, other):
                company[end.generation] += 1
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


def _accompanied(
    session: ClusterSession, policy: FailurePolicy, ends: Sequence[PastEnd], other: StreamId
) -> Sequence[PastEnd]:
    """Return those of the ends that the other stream ended with. Whatever is wrong with a neighbour costs only it."""
    try:
        its_ends = _ends_of(session, other)
        return [end for end in ends if _accompany(policy, end, its_ends)]
    except KstreamError:
        return ()
    except Exception as error:
        log.error("The ends of %s can't be compared", other.name, exc_info=error)
        return ()


def _accompany(policy: FailurePolicy, end: PastEnd, others: Iterable[PastEnd]) -> bool:
    return any(one_cause(end, other) and abs(end.at - other.at) <= policy.together_within for other in others)


def _others(session: ClusterSession, stream: StreamId, since: datetime) -> Iterator[StreamId]:
    """Yield the streams whose folder changed since then, the latest change first."""
    try:
        entries = session.state.look().entries
    except KstreamError:
        return
    others = [(other, entries[str(other)]) for other in streams_among(entries, stream.state_dir) if other != stream]
    lately = sorted((each for each in others if each[1].modified >= since), key=lambda each: each[1].modified)
    for other, _ in lately[: -_LOOKED_AT - 1 : -1]:
        yield other


def _ends_of(session: ClusterSession, stream: StreamId) -> tuple[PastEnd, ...]:
    """Return what is recorded of a stream, by its proven user or a supervisor: anybody's word would end a breaker."""
    folder = StreamFolder(session, stream)
    authored = folder.authored()
    recorded = recorded_ends(authored.counted) if not authored.unproven else ()
    return read_ends(folder.text(ended_file(recorded[-1]))) if recorded else ()


def lives_of(session: ClusterSession, stream: StreamId) -> tuple[Life, ...]:
    """Return the last generations, oldest first, as far as they can be read: it is for people, and fails nothing."""
    folder = StreamFolder(session, stream)
    try:
        names = folder.names()
        numbers = claims(names)[-_MOST:]
        stops = {
            number: read_stop(folder.text(stop_marker(number))) for number in numbers if stop_marker(number) in names
        }
        return lives(tuple(_claims(folder, numbers)), past_ends(folder, names), stops)
    except KstreamError as error:
        log.warning("The past generations of %s can't be read: %s", stream.name, error)
        return ()


def _claims(folder: StreamFolder, numbers: tuple[int, ...]) -> Iterator[Claim]:
    for number in numbers:
        # A newer version's, or one that was tidied away since.
        with suppress(KstreamError):
            yield folder.claim_of(number)
