"""The logs of one node's containers as YARN aggregates them: a TFile with a record for each container.

The layout of a record is that of AggregatedLogFormat.LogValue: for each file its name, its length in digits, and its
content, in the order of the names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from airflow_kstream.model.container_log import LogTail, tail_of
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.formats.tfile import Chunks, ReadAt, records

_LONGEST_NUMBER = len(str(2**63))


def aggregated_tails(
    read_at: ReadAt, length: int, container: str, names: Collection[str], size: int
) -> Mapping[str, LogTail]:
    """Return the last `size` bytes of the container's files of these names; it lacks those that are not there.

    Raises InvalidInput: when the file is none of this format, which is that of LogAggregationTFileController.
    """
    for key, value in records(read_at, length):
        # A string as DataOutput.writeUTF writes it: two bytes of length come first.
        if key[2:].decode(errors="replace") == container:
            return _tails(value, names, size)
    return {}


def _tails(value: Chunks, names: Collection[str], size: int) -> Mapping[str, LogTail]:
    tails: dict[str, LogTail] = {}
    while len(tails) < len(names) and not value.ended:
        name, digits = value.text(), value.text()
        if not digits.isdecimal() or len(digits) > _LONGEST_NUMBER:
            raise InvalidInput(f"it is damaged: {name} is {digits[:20]!r} bytes long")
        length = int(digits)
        taken = min(length, size) if name in names else 0
        value.skip(length - taken)
        if name in names:
            tails[name] = tail_of(value.take(taken), length)
    return tails
