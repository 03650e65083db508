"""The engines that find all patterns in a block of bytes: Hyperscan, and Python's own `re`.

A pattern's regex is the part of the syntax that both share, and never leaves its line: no lookaround, no backreference,
no \\s. Each alternative at its top level has some plain words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Protocol

# In characters, of the plain words that each alternative of a regex needs.
_FEWEST = 4
_CLASSES = set("dDwWsSbBAZ")
# A bound between two words costs Hyperscan half of its compilation; the check of each kept line knows it.
_BOUNDED = re.compile(r"(?<!\\)\.\{0,\d+\}\??")
_DIGIT = re.compile(r"[0-9]")
_TO_CLOSE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_QUANTIFIER = re.compile(r"[*+?]|\{(?P<least>\d*)(?:,\d*)?\}")


class RegexEngine(Protocol):
    def matches(self, block: bytes) -> Sequence[tuple[int, int]]:
        """Return each match as the number of its pattern and a place inside its line, in the order of the places."""


class HyperscanEngine:
    """All patterns at once, at memory speed, in several threads at once: it holds no lock of Python's meanwhile.

    Raises ValueError: when it can't compile a pattern. Raises ImportError: when Hyperscan is not installed.
    """

    def __init__(self, regexes: Sequence[str]) -> None:
        import hyperscan

        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        try:
            self._database.compile(
                expressions=[_BOUNDED.sub(".*", regex).encode() for regex in regexes],
                ids=list(range(len(regexes))),
                elements=len(regexes),
                flags=hyperscan.HS_FLAG_MULTILINE,
            )
        except hyperscan.error as error:
            raise ValueError(f"Hyperscan can't compile the patterns: {error}") from None
        # One for each call, because threads can't share any: it costs nothing beside a block.
        self._scratch = partial(hyperscan.Scratch, self._database)

    def matches(self, block: bytes) -> Sequence[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        append = found.append

        def on_match(number: int, begin: int, end: int, flags: int, context: object) -> None:
            append((number, end - 1))

        self._database.scan(block, match_event_handler=on_match, scratch=self._scratch())
        return found


class PlainEngine:
    """Python's `re`, tried on the lines alone that have a pattern's plain words.

    Lines that differ in their digits only are looked through once, because a log repeats itself. Raises ValueError:
    when a pattern has no plain words.
    """

    def __init__(self, regexes: Sequence[str]) -> None:
        self._regexes = [re.compile(regex.encode(), re.MULTILINE) for regex in regexes]
        self._words: dict[bytes, list[int]] = {}
        self._with_digits: dict[bytes, list[int]] = {}
        for number, regex in enumerate(regexes):
            for word in plain_words(regex):
                words = self._with_digits if _DIGIT.search(word) else self._words
                words.setdefault(word.encode(), []).append(number)

    def matches(self, block: bytes) -> Sequence[tuple[int, int]]:
        found = [match for word, numbers in self._with_digits.items() for match in self._in_block(block, word, numbers)]
        return sorted({*found, *self._in_lines(block)}, key=itemgetter(1))

    def _in_block(self, block: bytes, word: bytes, numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
        at = block.find(word)
        while at >= 0:
            begin, end = line_around(block, at)
            yield from self._of_line(block, begin, end, numbers)
            at = block.find(word, end)

    def _in_lines(self, block: bytes) -> Iterator[tuple[int, int]]:
        without_digits = block.translate(None, b"0123456789").split(b"\n")
        candidates = self._candidates(set(without_digits))
        if not candidates:
            return
        begin = 0
        for line, key in zip(block.split(b"\n"), without_digits, strict=True):
            if key in candidates:
                yield from self._of_line(block, begin, begin + len(line), candidates[key])
            begin += len(line) + 1

    def _candidates(self, lines: Iterable[bytes]) -> dict[bytes, list[int]]:
        """Return the lines that have plain words, with the patterns of these words."""
        text = b"\n".join(lines)
        candidates: dict[bytes, list[int]] = {}
        for word, numbers in self._words.items():
            at = text.find(word)
            while at >= 0:
                begin, end = line_around(text, at)
                candidates.setdefault(text[begin:end], []).extend(numbers)
                at = text.find(word, end)
        return candidates

    def _of_line(self, block: bytes, begin: int, end: int, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield the patterns that match the line; a place inside it is its beginning."""
        yield from ((number, begin) for number in numbers if self._regexes[number].search(block, begin, end))


def engine_of(regexes: Sequence[str]) -> RegexEngine:
    """Return Hyperscan's engine, or Python's where there is none. Raises ValueError: when a regex suits neither."""
    try:
        return HyperscanEngine(regexes)
    except ImportError:
        return PlainEngine(regexes)


def plain_words(regex: str) -> tuple[str, ...]:
    """Return the longest plain text of each alternative at the regex's top level: each match has one of them.

    Raises ValueError: when an alternative has none of four characters.
    """
    alternatives = [max(runs, key=len) for runs in _plain_runs(regex)]
    if short := [run for run in alternatives if len(run) < _FEWEST]:
        raise ValueError(f"an alternative of {regex} has no plain text of {_FEWEST} characters, only {short[0]!r}")
    return tuple(alternatives)


def _plain_runs(regex: str) -> list[list[str]]:
    """Return the runs of plain characters of each alternative; groups, classes and repeated characters end a run."""
    alternatives, at = [[""]], 0
    while at < len(regex):
        runs, character = alternatives[-1], regex[at]
        if character == "|":
            alternatives.append([""])
            at += 1
        elif character == "(":
            at = _closed(regex, at)
            runs.append("")
        elif character == "[" and (group := _CLASS.match(regex, at)):
            at = group.end()
            runs.append("")
        elif quantifier := _QUANTIFIER.match(regex, at):
            if quantifier[0] in "*?" or quantifier["least"] in ("", "0"):
                runs[-1] = runs[-1][:-1]
            at = quantifier.end()
            runs.append("")
        elif character == "\\" and regex[at + 1] not in _CLASSES:
            runs[-1] += regex[at + 1]
            at += 2
        elif character in ".^$\\":
            at += 1 + (character == "\\")
            runs.append("")
        else:
            runs[-1] += character
            at += 1
    return alternatives


def _closed(regex: str, at: int) -> int:
    """Return the place behind the group that opens at `at`."""
    depth = 0
    for part in _TO_CLOSE.finditer(regex, at):
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if depth == 0:
            return part.end()
    raise ValueError(f"a group of {regex} has no end")


def line_around(block: bytes, at: int) -> tuple[int, int]:
    """Return where the line begins and ends that has the byte at `at`; a line's end belongs to its line."""
    end = block.find(b"\n", at)
    return block.rfind(b"\n", 0, at) + 1, len(block) if end < 0 else end
