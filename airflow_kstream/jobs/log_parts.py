"""The parts of logs that tasks scan: how files are cut and scanned in a Python worker, without a JVM.

Shipped to the cluster beside `triage.py` and the folder `log_scan`; it imports nothing else but the standard library.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

# Hyperscan for a container whose Python lacks it: `--archives` unpacks it there.
sys.path.append("kstream_engine")

from log_reads import ReadAt, Reader, Source  # type: ignore[import-not-found]
from log_scan.chunks import Chunks, Cursor, Damaged, Place, content_at  # type: ignore[import-not-found]
from log_scan.scanner import Scanner  # type: ignore[import-not-found]  # shipped by --py-files
from log_scan.sections import LinePattern, Section, joined  # type: ignore[import-not-found]
from log_scan.tfile import (  # type: ignore[import-not-found]
    cut_files_at,
    is_tfile,
    logged_files,
    logged_files_at,
    record_places,
)

# In bytes.
_PEEK, _REST = 256 << 10, 64 << 10
# In bytes, of what is scanned at once: more leaves the processor's cache; and how many of them are read ahead.
_PIECE, _AHEAD = 4 << 20, 6
# In bytes, at most: the length before a chunk.
_NUMBER = 9
_GZIP = b"\x1f\x8b"
# zlib tells gzip from its own format by itself.
_EITHER = 47
# The end of an indexed file: a number of four bytes and a hash; and how Java begins a serialized object.
_TRAILER, _SERIALIZED = 4 + 32, b"\xac\xed\x00\x05"
_PLAIN, _PACKED, _RECORD, _AGGREGATED = "plain", "gz", "record", "aggregated"


class Part(NamedTuple):
    """A part of a file that one task scans: bytes from `begin` to `end`, or the record of a container at `begin`.

    Plain bytes belong to the log `name`, which reaches from `first` to `last`: in the file, or where `edges` are
    given, in a record of it; the edges are the part's, as `cut_files_at` found them.
    """

    source: Source
    kind: str
    begin: int
    end: int
    name: str
    first: int = 0
    last: int = 0
    edges: tuple[Place, Place] | None = None


def lines_of(reader: Reader, part: Part) -> Iterator[bytes]:
    """Yield the lines that begin in the part, whole: the first one may be the part's before, the last goes on."""
    first = part.begin - (part.begin != part.first)
    if part.edges is None:
        content: Cursor | Chunks = Cursor(reader.ahead(part.source, until=part.end), first)
        inside = _taken(content, part.end - first, _PIECE)
    else:
        edge, behind = part.edges
        read_at = reader.ahead(part.source, until=behind.at + behind.before + _NUMBER)
        content = content_at(read_at, edge, part.begin - first)
        inside = _verified(content, part.end - first, behind)
    yield from _lines(inside, _taken(content, part.last - part.end, _REST), part)


def _taken(content: Cursor | Chunks, size: int, most: int) -> Iterator[bytes]:
    for at in range(0, size, most):
        yield content.take(min(most, size - at))


def _verified(content: Chunks, size: int, behind: Place) -> Iterator[bytes]:
    yield from _taken(content, size, _PIECE)
    content.require(behind)


def _lines(inside: Iterator[bytes], behind: Iterator[bytes], part: Part) -> Iterator[bytes]:
    begun, whole = part.begin == part.first, True
    for block in inside:
        cut = 0 if begun else block.find(b"\n") + 1
        if begun or cut:
            begun = True
            yield block[cut:]
        whole = block.endswith(b"\n")
    for block in behind if begun and not whole else ():
        cut = block.find(b"\n") + 1
        yield block[:cut] if cut else block
        if cut:
            return


def read_ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Read the next blocks while one is used: more than one request has, so that a request is always under way."""
    with ThreadPoolExecutor(1) as thread:
        coming = deque(thread.submit(next, blocks, None) for _ in range(_AHEAD))
        while (block := coming.popleft().result()) is not None:
            coming.append(thread.submit(next, blocks, None))
            yield block


def unpacked(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Inflate gzip, of several members too, or Hadoop's zlib, in pieces: a few bytes may become gigabytes.

    Raises zlib.error: when it is damaged.
    """
    inflate = zlib.decompressobj(wbits=_EITHER)
    for block in blocks:
        while block:
            if inflate.eof:
                inflate = zlib.decompressobj(wbits=_EITHER)
            yield inflate.decompress(block, _PIECE)
            block = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
    # The last bytes of one that was cut off.
    while piece := inflate.decompress(b"", _PIECE):
        yield piece


def parts_of(reader: Reader, source: Source, size: int) -> list[Part]:
    """Cut a file into parts of about `size` bytes. Raises OSError: when it can't be read; Damaged: when it is."""
    read_at = reader.ahead(source, _PEEK)
    if is_tfile(read_at, source.length):
        return _parts_of_tfile(read_at, source, size)
    if read_at(0, 2) == _GZIP:
        return [packed_part(source, source.name, 0, source.length)]
    if b"\0" in read_at(0, 4096):
        raise OSError("it is not text")
    return plain_parts(source, source.name, 0, source.length, size)


def _parts_of_tfile(read_at: ReadAt, source: Source, size: int) -> list[Part]:
    """Cut it at its containers, and what is larger than a task within their logs; one that is compressed is whole."""
    places = record_places(read_at, source.length)
    if places is None:
        return [Part(source, _AGGREGATED, 0, source.length, source.name)]
    parts: list[Part] = []
    for (container, at), (_, end) in pairwise([*places, ("", source.length)]):
        whole = Part(source, _RECORD, at, end, container)
        parts += [whole] if end - at <= size else _cut(read_at, whole, size)
    return parts


def _cut(read_at: ReadAt, record: Part, size: int) -> Iterator[Part]:
    source = record.source
    for file, length, edges in cut_files_at(read_at, range(record.begin, record.end), size):
        name = f"{source.name}#{record.name}/{file}"
        for begin, around in zip(range(0, length, size), pairwise(edges), strict=True):
            yield Part(source, _PLAIN, begin, min(begin + size, length), name, 0, length, around)


def plain_parts(source: Source, name: str, first: int, last: int, size: int) -> list[Part]:
    """Cut the log of this name, which is plain text in the file from `first` to `last`."""
    return [Part(source, _PLAIN, at, min(at + size, last), name, first, last) for at in range(first, last, size)]


def packed_part(source: Source, name: str, first: int, last: int) -> Part:
    """Return the log of this name, which is compressed in the file from `first` to `last`: nobody can cut it."""
    return Part(source, _PACKED, first, last, name, first, last)


def is_indexed(reader: Reader, source: Source) -> bool:
    """Return whether it ends as LogAggregationIndexedFileController ends a file: with a serialized object of Java's,
    its length and a UUID's hash of 32 bytes."""
    if source.length <= _TRAILER:
        return False
    size = int.from_bytes(reader.read_at(source, source.length - _TRAILER, 4))
    at = source.length - _TRAILER - size
    return at >= 0 and bool(reader.read_at(source, at, len(_SERIALIZED)) == _SERIALIZED)


def packed(parts: list[Part], size: int) -> list[list[int]]:
    """Group the parts for tasks of about `size` bytes, the large ones first, so that the last ones are short."""
    order = sorted(range(len(parts)), key=lambda number: parts[number].begin - parts[number].end)
    tasks: list[list[int]] = []
    room = 0
    for number in order:
        length = parts[number].end - parts[number].begin
        if not tasks or length > room:
            tasks.append([])
            room = size
        tasks[-1].append(number)
        room -= length
    return tasks


@dataclass(frozen=True)
class PartScan:
    """The scan of parts in a Python worker, which compiles the patterns once."""

    settings: str
    reader: Reader

    def found(self, part: Part) -> Mapping[str, Any]:
        """Return the sections of each log in the part, or why it can't be read, as plain data."""
        try:
            return {"logs": list(self._scanned(part))}
        except Exception as error:  # Whatever a part does to its reader: the others are read.
            return {"unread": f"{part.source.name}: {why_unread(error)}"}

    def _scanned(self, part: Part) -> Iterator[Mapping[str, Any]]:
        source = part.source
        if part.kind == _PLAIN:
            yield self._log(part.name, lines_of(self.reader, part))
        elif part.kind == _PACKED:
            yield self._log(part.name, unpacked(self.reader.blocks(source, part.begin, part.end)))
        else:
            read_at = self.reader.ahead(source)
            record = part.kind == _RECORD
            files = logged_files_at(read_at, part.name, part.begin) if record else logged_files(read_at, part.end)
            for file in files:
                yield self._log(f"{source.name}#{file.container}/{file.name}", file.blocks)

    def _log(self, name: str, blocks: Iterator[bytes]) -> Mapping[str, Any]:
        sections = compiled(self.settings).scan(read_ahead(blocks))
        return {"name": name, "sections": [section.to_plain() for section in sections]}


def why_unread(error: Exception) -> str:
    """Return why one file can't be read, with the kind of an error that nobody expected."""
    expected = isinstance(error, (OSError, EOFError, zlib.error, Damaged))
    return str(error) if expected else f"{type(error).__name__}: {error}"


@cache
def compiled(settings: str) -> Scanner:
    """Return the scanner of these settings, one for each process."""
    wanted = json.loads(settings)
    return Scanner(_patterns(wanted), wanted["heads"], wanted["titles"])


def _patterns(settings: Mapping[str, Any]) -> list[LinePattern]:
    return [LinePattern(*pattern) for pattern in settings["patterns"]]


def joined_logs(settings: str, rows: list[tuple[int, str]]) -> Mapping[str, Any]:
    """Join the parts of each log in the order of their numbers."""
    patterns = {pattern.name: pattern for pattern in _patterns(json.loads(settings))}
    logs: dict[str, list[list[Section]]] = {}
    unread: list[str] = []
    for _, text in sorted(rows):
        found = json.loads(text)
        unread += [found["unread"]] if "unread" in found else []
        for log in found.get("logs", ()):
            logs.setdefault(log["name"], []).append([Section.of_plain(section) for section in log["sections"]])
    whole = {name: joined(parts, patterns) for name, parts in logs.items()}
    return {
        "logs": [{"name": name, "sections": [each.to_plain() for each in parts]} for name, parts in whole.items()],
        "unread": unread,
    }
