"""The lines that were found in a log, by the part of the log that has one writer; and how parts become one log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True)
class LinePattern:
    """A regex that is looked for in each line; of its hits in a section the `first` and the `last` ones are kept.

    With `closing`, a hit's text is that of the first line below it that this matches: a traceback's exception is its
    last line.
    """

    name: str
    regex: str
    first: int = 12
    last: int = 4
    closing: str = ""


class Hit(NamedTuple):
    """A line that a pattern matched, and the line that begins its record; both with their numbers, from 1 on."""

    number: int
    line: str
    head_number: int
    head: str


@dataclass
class MatchedLines:
    """The lines of one section that a pattern matched: how many, and the first and last ones."""

    count: int = 0
    first: list[Hit] = field(default_factory=list)
    last: list[Hit] = field(default_factory=list)

    @property
    def kept(self) -> tuple[Hit, ...]:
        """Return the hits that were kept, in their order, each once."""
        return tuple(dict.fromkeys([*self.first, *self.last]))


@dataclass
class Section:
    """A part of a log that has one writer: the whole file, or what follows a title such as `LogType:stderr`.

    `head` and `tail` are the first and the last line that begin a record, `tail_at` is the number of the last one;
    `opening` is how it begins.
    """

    title: str = ""
    at_line: int = 1
    lines: int = 0
    size: int = 0
    opening: str = ""
    head: str = ""
    tail: str = ""
    tail_at: int = 0
    found: dict[str, MatchedLines] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """Return plain data, which `of_plain` takes."""
        found = {name: [each.count, each.first, each.last] for name, each in self.found.items()}
        return {**vars(self), "found": found}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Section:
        found = {
            name: MatchedLines(count, [Hit(*hit) for hit in first], [Hit(*hit) for hit in last])
            for name, (count, first, last) in plain["found"].items()
        }
        return cls(**{**plain, "found": found})


def joined(parts: Iterable[Sequence[Section]], patterns: Mapping[str, LinePattern]) -> list[Section]:
    """Join the sections of consecutive parts of one log, each of which was scanned by itself from line 1 on."""
    whole: list[Section] = []
    lines = 0
    for sections in parts:
        moved = [_moved(section, lines) for section in sections]
        lines += sum(section.lines for section in sections)
        if whole and moved:
            _append(whole[-1], moved.pop(0), patterns)
        whole += moved
    return whole


def _moved(section: Section, lines: int) -> Section:
    found = {
        name: MatchedLines(
            each.count, [_later(hit, lines) for hit in each.first], [_later(hit, lines) for hit in each.last]
        )
        for name, each in section.found.items()
    }
    at = {"at_line": section.at_line + lines, "tail_at": section.tail_at + lines if section.tail else 0}
    return Section(**{**vars(section), **at, "found": found})


def _later(hit: Hit, lines: int) -> Hit:
    return hit._replace(number=hit.number + lines, head_number=hit.head_number + lines if hit.head else 0)


def _append(section: Section, after: Section, patterns: Mapping[str, LinePattern]) -> None:
    """Append a part of the same section. What has no beginning there belongs to the last record before it."""
    for name, more in after.found.items():
        found = section.found.setdefault(name, MatchedLines())
        first, last = ([_begun(hit, section) for hit in hits] for hits in (more.first, more.last))
        found.count += more.count
        found.first = [*found.first, *first][: patterns[name].first]
        found.last = [*found.last, *last][-patterns[name].last :]
    section.lines += after.lines
    section.size += after.size
    section.head = section.head or after.head
    if after.tail:
        section.tail, section.tail_at = after.tail, after.tail_at


def _begun(hit: Hit, before: Section) -> Hit:
    return hit if hit.head else hit._replace(head_number=before.tail_at, head=before.tail)
