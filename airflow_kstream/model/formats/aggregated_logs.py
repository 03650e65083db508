"""The logs of one node's containers as YARN aggregates them: a TFile with a record for each container."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.log_scan.chunks import Chunks, Damaged, ReadAt
from airflow_kstream.model.log_scan.tfile import LoggedFile, logged_files, next_file, records
from airflow_kstream.model.logs.container_log import LogTail, tail_of


def aggregated_files(read_at: ReadAt, length: int) -> Iterator[LoggedFile]:
    """Yield every file of every container.

    Raises InvalidInput: when the file is none of this format, which is that of LogAggregationTFileController.
    """
    try:
        for log in logged_files(read_at, length):
            yield replace(log, blocks=_readable(log.blocks))
    except Damaged as error:
        raise InvalidInput(str(error)) from None


def _readable(blocks: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from blocks
    except Damaged as error:
        raise InvalidInput(str(error)) from None


def aggregated_tails(
    read_at: ReadAt, length: int, container: str, names: Collection[str], size: int
) -> Mapping[str, LogTail]:
    """Return the last `size` bytes of the container's files of these names; it lacks those that are not there.

    Raises InvalidInput: as `aggregated_files` does.
    """
    try:
        for key, value in records(read_at, length):
            # A string as DataOutput.writeUTF writes it: two bytes of length come first.
            if key[2:].decode(errors="replace") == container:
                return _tails(value, names, size)
    except Damaged as error:
        raise InvalidInput(str(error)) from None
    return {}


def _tails(value: Chunks, names: Collection[str], size: int) -> Mapping[str, LogTail]:
    tails: dict[str, LogTail] = {}
    while len(tails) < len(names) and not value.ended:
        name, length = next_file(value)
        taken = min(length, size) if name in names else 0
        value.skip(length - taken)
        if name in names:
            tails[name] = tail_of(value.take(taken), length)
    return tails
