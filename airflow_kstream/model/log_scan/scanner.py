"""The scanner: blocks of whole lines go through the engine, and its matches become the hits of sections."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from operator import itemgetter

from .engines import RegexEngine, engine_of, line_around
from .forms import form_of, opened
from .sections import Hit, LinePattern, MatchedLines, Section

# Each is the number of a pattern and a place in its line.
Matches = Sequence[tuple[int, int]]
# In bytes: of a line that is kept, and the way back from a hit to the beginning of its record.
LONGEST_LINE, LONGEST_RECORD = 2000, 256 << 10
# In bytes, of a long line before what matched.
_BEFORE = 200
# In bytes: the beginning of a section, which says who wrote it.
_OPENING = 16 << 10
_NO_BREAK_SPACE = "\N{NO-BREAK SPACE}".encode()
# A line without an end is cut here.
_LARGEST_BLOCK = 64 << 20


class Scanner:
    """The patterns of a catalogue, compiled once; it scans any number of logs.

    `heads` matches a line that begins a record with its moment, at its beginning. A hit of a pattern named in `titles`
    begins a new section with that line as its title, up to `most_sections` of a log: each costs memory, and a job can
    print as many lines that look like titles as it likes.
    """

    def __init__(
        self,
        patterns: Sequence[LinePattern],
        heads: str,
        titles: Iterable[str] = (),
        engine: Callable[[Sequence[str]], RegexEngine] = engine_of,
        most_sections: int = 100_000,
    ) -> None:
        self.patterns = tuple(patterns)
        self.heads = re.compile(heads.encode())
        self.titles = frozenset(titles)
        self.most_sections = most_sections
        self.engine = engine([pattern.regex for pattern in patterns])

    def scan(self, blocks: Iterable[bytes], threads: int = 1) -> list[Section]:
        """Return the sections of a log whose bytes come in blocks of any size, cut anywhere.

        Each thread looks through another block; twice as many blocks are in memory at most.
        """
        sample, blocks = opened(blocks)
        form = form_of(_with_blanks(sample), self.heads)
        whole = map(_with_blanks, whole_lines(blocks))
        scan = Scan(self, form.heads)
        for block, matches in self._matched(map(form.plain, whole) if form.layers else whole, threads):
            scan.feed(block, matches)
        return scan.sections

    def _matched(self, blocks: Iterable[bytes], threads: int) -> Iterator[tuple[bytes, Matches]]:
        if threads == 1:
            yield from ((block, self.engine.matches(block)) for block in blocks)
            return
        ahead: deque[tuple[bytes, Future[Matches]]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for block in blocks:
                ahead.append((block, pool.submit(self.engine.matches, block)))
                if len(ahead) > threads:
                    first, matches = ahead.popleft()
                    yield first, matches.result()
            yield from ((block, matches.result()) for block, matches in ahead)


class Scan:
    """One log that is being scanned: blocks of whole lines, one after the other; `heads` begins its records."""

    def __init__(self, scanner: Scanner, heads: re.Pattern[bytes]) -> None:
        self._scanner, self._heads = scanner, heads
        self.sections = [Section()]
        self._lines = 0
        # The last line so far that begins a record: the record may go on in the next block.
        self._head = (0, b"")
        # The last line of the block that was looked up, and what begins its record: no line is walked over twice.
        self._above = (-1, self._head)

    def feed(self, block: bytes, matches: Matches) -> None:
        """Take the matches of a block, which ends with a line's end unless it is the last."""
        names, titles = self._scanner.patterns, self._scanner.titles
        begins = {line_around(block, at)[0] for number, at in matches if names[number].name in titles}
        cuts = set(sorted(begins)[: self._scanner.most_sections - len(self.sections)])
        if not cuts:
            self._feed_section(block, matches)
            return
        matches = sorted(matches, key=itemgetter(1))
        places = [at for _, at in matches]
        for begin, end in pairwise(sorted({0, *cuts, len(block)})):
            if begin in cuts:
                title = block[begin : line_around(block, begin)[1]]
                self.sections.append(Section(_text(title), self._lines + 1))
                self._head = (0, b"")
            first, last = bisect_left(places, begin), bisect_left(places, end)
            self._feed_section(block[begin:end], [(number, at - begin) for number, at in matches[first:last]])

    def _feed_section(self, block: bytes, matches: Matches) -> None:
        """Scan a part of a block that belongs to the last section."""
        if not block:
            return
        section, self._above = self.sections[-1], (-1, self._head)
        section.size += len(block)
        if len(section.opening) < _OPENING:
            section.opening += block[:_OPENING].decode(errors="replace")
        if not section.head:
            section.head = self._first_head(block)
        lines = self._keep(section, block, matches)
        section.lines, self._lines = section.lines + lines, self._lines + lines
        last = line_around(block, len(block) - 1)[0]
        self._head = self._head_before(block, last, self._lines + (not block.endswith(b"\n")))
        if self._head[1]:
            section.tail_at, section.tail = self._head[0], _text(self._head[1])

    def _keep(self, section: Section, block: bytes, matches: Matches) -> int:
        """Keep the first and the last hits of each pattern; return the number of the block's lines."""
        by_pattern: dict[int, list[int]] = {}
        for number, at in matches:
            by_pattern.setdefault(number, []).append(at)
        kept: list[tuple[int, int, bool, bool]] = []
        for number, places in by_pattern.items():
            pattern = self._scanner.patterns[number]
            found = section.found.setdefault(pattern.name, MatchedLines())
            found.count += _count_of_lines(block, places)
            first = _distinct_lines(block, places, pattern.first - len(found.first))
            last = _distinct_lines(block, reversed(places), pattern.last)
            kept += ((begin, number, begin in first, begin in last) for begin in first | last)
        numbers = _LineNumbers(block, self._lines)
        for begin, number, is_first, is_last in sorted(kept):
            pattern = self._scanner.patterns[number]
            found = section.found[pattern.name]
            hit = self._hit(block, begin, number, numbers)
            if hit and is_first:
                found.first.append(hit)
            if hit and is_last:
                found.last.append(hit)
        for number in by_pattern:
            pattern = self._scanner.patterns[number]
            del section.found[pattern.name].last[: -pattern.last]
        return numbers.of(len(block)) - self._lines - 1

    def _hit(self, block: bytes, begin: int, number: int, numbers: _LineNumbers) -> Hit | None:
        end = line_around(block, begin)[1]
        pattern = self._scanner.patterns[number]
        # A match of Hyperscan's may reach beyond its line.
        found = _compiled(pattern.regex).search(block[begin:end])
        if found is None:
            return None
        line_number = numbers.of(begin)
        head_number, head = self._head_before(block, begin, line_number)
        shown = begin
        if end - begin > LONGEST_LINE and found.start() > _BEFORE:
            # Of a line that is too long to keep, the part that matched; from a whole word on, because the second half
            # of a password's setting no longer tells that it is one.
            at = begin + found.start()
            shown = block.find(b" ", at - _BEFORE, at) + 1 or at
        if pattern.closing:
            shown, end = self._closing_line(block, shown, end, _compiled(pattern.closing))
        return Hit(line_number, _text(block[shown:end]), head_number, _text(head))

    def _closing_line(self, block: bytes, begin: int, end: int, closing: re.Pattern[bytes]) -> tuple[int, int]:
        """Return where the first line of the record that matches, below this one, begins and ends; else this one."""
        below = end + 1
        while below < min(len(block), end + LONGEST_RECORD) and not self._heads.match(block, below):
            last = line_around(block, below)[1]
            if closing.match(block, below, last):
                return below, last
            below = last + 1
        return begin, end

    def _head_before(self, block: bytes, begin: int, line_number: int) -> tuple[int, bytes]:
        """Return number and text of the line that begins the record of the line that begins there; 0 if none does.

        Within a block each line that is looked up is below the one before it, or the same.
        """
        known, head = self._above
        at, earliest = begin, max(begin - LONGEST_RECORD, 0)
        while at != known:
            if self._heads.match(block, at):
                head = line_number, block[at : line_around(block, at)[1]]
                break
            if at <= earliest:
                head = (0, b"") if at else self._head
                break
            at = block.rfind(b"\n", 0, at - 1) + 1
            line_number -= 1
        self._above = begin, head
        return head

    def _first_head(self, block: bytes) -> str:
        begin = 0
        while begin < min(len(block), LONGEST_RECORD):
            end = line_around(block, begin)[1]
            if self._heads.match(block, begin):
                return _text(block[begin:end])
            begin = end + 1
        return ""


class _LineNumbers:
    """The numbers of lines of a block that are looked up in their order: it counts each line's end once."""

    def __init__(self, block: bytes, before: int) -> None:
        self._block, self._number, self._at = block, before + 1, 0

    def of(self, begin: int) -> int:
        self._number += self._block.count(b"\n", self._at, begin)
        self._at = begin
        return self._number


def _with_blanks(block: bytes) -> bytes:
    """Replace no-break spaces: a log that was copied from a web page is full of them."""
    # A single byte is looked for ten times as fast as two, and hardly any log has this one.
    return block.replace(_NO_BREAK_SPACE, b" ") if _NO_BREAK_SPACE[0] in block else block


def whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut blocks so that each ends with a line's end; the last may lack it, and so does an endless line."""
    rest = b""
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join((rest, memoryview(block)[:cut]))
            rest = block[cut:]
        else:
            rest += block
        if len(rest) > _LARGEST_BLOCK:
            yield rest
            rest = b""
    if rest:
        yield rest


def _count_of_lines(block: bytes, places: Iterable[int]) -> int:
    count, end = 0, -1
    for at in places:
        if at > end:
            count, end = count + 1, block.find(b"\n", at)
            if end < 0:
                break
    return count


def _distinct_lines(block: bytes, places: Iterable[int], most: int) -> set[int]:
    """Return where the lines of these places begin, for the first `most` lines."""
    begins: set[int] = set()
    begin, end = 0, -1
    for at in places:
        if len(begins) >= most:
            break
        # A long line that matches at each word is measured once.
        if not begin <= at <= end:
            begin, end = line_around(block, at)
            begins.add(begin)
    return begins


@cache
def _compiled(regex: str) -> re.Pattern[bytes]:
    """Compile a pattern when it is first hit: of a catalogue's hundreds, a log hits few."""
    return re.compile(regex.encode())


def _text(line: bytes) -> str:
    return line[:LONGEST_LINE].decode(errors="replace").rstrip("\r")
