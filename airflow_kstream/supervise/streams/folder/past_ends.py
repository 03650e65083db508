"""The record of ends that nobody planned, in the stream's folder: each file repeats the ends before it.

So one read gives the history, and old generations can be forgotten. A file is written once and never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from airflow_kstream.clients.local.whoami import user_at_host
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.contract import ended_file, recorded_ends
from airflow_kstream.model.streams.generation_end import EndKind, PastEnd
from airflow_kstream.supervise.streams.folder.formats import read_ends, written_ends
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder, new_nonce

_DAY = timedelta(days=1)
# Of those older than a day, for people; of those within it, more than any pace allows.
_OLD_KEPT, _KEPT = 20, 500
# More than a reader between its listing and its reading ever lags behind.
RECORDS_KEPT = 3


def past_ends(folder: StreamFolder, names: frozenset[str]) -> tuple[PastEnd, ...]:
    """Return the recorded ends, oldest first.

    A record that can't be read, such as a newer version's, tells only its generation and its time: the pace of restarts
    goes on from there.
    """
    recorded = recorded_ends(names)
    if not recorded:
        return ()
    name = ended_file(recorded[-1])
    try:
        ends = read_ends(folder.text(name))
    except InvalidInput:
        ends = ()
    if ends and ends[-1].generation == recorded[-1]:
        return ends
    at = folder.written_at(name)
    return (PastEnd(recorded[-1], EndKind.UNKNOWN, "", at, at, timedelta(), worked=False),)


def record_end(folder: StreamFolder, ends: Sequence[PastEnd]) -> bool:
    """Write the last of these ends after the others; return False when another supervisor was quicker: its record
    stands."""
    end = ends[-1]
    old = [one for one in ends if one.at <= end.at - _DAY][-_OLD_KEPT:]
    kept = [*old, *(one for one in ends if one.at > end.at - _DAY)][-_KEPT:]
    text = written_ends(kept, user_at_host(), new_nonce())
    # A writer that was frozen finds no file in its way if newer ones have replaced it since.
    ours = folder.put_once(ended_file(end.generation), text)
    return ours and recorded_ends(folder.names())[-1:] == (end.generation,)


def forget_old_records(folder: StreamFolder, names: frozenset[str]) -> None:
    """Delete all but the last records; the newest always stays."""
    folder.forget(ended_file(generation) for generation in recorded_ends(names)[:-RECORDS_KEPT])
