"""How many steps a backtracking engine takes to find that a regex is nowhere in a text: counted, never timed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

# The standard library's own parser, which has no public name.
op: Any = import_module("re._constants")
parser: Any = import_module("re._parser")

Rest = Callable[[int], bool]


def steps_of(regex: str, text: str, flags: int = 0) -> int:
    """Return the steps of a search through the whole text, as Python's engine takes them without its short cuts."""
    search = _Search(text, flags)
    nodes = list(parser.parse(regex, flags))
    for begin in range(len(text) + 1):
        if search.matches(nodes, begin, lambda _: True):
            break
    return search.steps


def words_of(regex: str) -> tuple[str, ...]:
    """Return the plain words of a regex, in their order."""
    return tuple(word for word in _words(list(parser.parse(regex))) if len(word) > 1)


def _words(nodes: Sequence[Any]) -> Iterator[str]:
    word = ""
    for kind, value in nodes:
        if kind is op.LITERAL:
            word += chr(value)
            continue
        yield word
        word = ""
        if kind is op.SUBPATTERN:
            yield from _words(list(value[3]))
        elif kind is op.BRANCH:
            yield from (part for branch in value[1] for part in _words(list(branch)))
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            yield from _words(list(value[2]))
    yield word


class _Search:
    def __init__(self, text: str, flags: int = 0) -> None:
        self.text, self.flags, self.steps = text, flags, 0

    def matches(self, nodes: Sequence[Any], at: int, rest: Rest) -> bool:
        self.steps += 1
        if not nodes:
            return rest(at)
        (kind, value), others = nodes[0], nodes[1:]
        if kind is op.AT:
            return self._is_at(value, at) and self.matches(others, at, rest)
        if kind is op.SUBPATTERN:
            return self.matches(list(value[3]), at, lambda end: self.matches(others, end, rest))
        if kind is op.BRANCH:
            return any(self.matches([*branch, *others], at, rest) for branch in value[1])
        if kind is op.ASSERT_NOT:
            # Of those that look back, at one character.
            (taken, what), *_ = value[1]
            found = value[0] < 0 < at and self._takes(taken, what, at - 1)
            return not found and self.matches(others, at, rest)
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            return self._repeats(value, at, lambda end: self.matches(others, end, rest))
        return self._takes(kind, value, at) and self.matches(others, at + 1, rest)

    def _repeats(self, value: Any, at: int, rest: Rest) -> bool:
        least, most, body = value[0], value[1], list(value[2])
        if len(body) > 1 or body[0][0] in (op.SUBPATTERN, op.BRANCH):
            return self._repeats_group(body, least, min(most, len(self.text)), at, rest)
        end = at
        while end - at < most and self._takes(body[0][0], body[0][1], end):
            self.steps += 1
            end += 1
        return any(rest(place) for place in range(end, at + least - 1, -1))

    def _repeats_group(self, body: Sequence[Any], least: int, most: int, at: int, rest: Rest) -> bool:
        def again(end: int) -> bool:
            return end > at and self._repeats_group(body, max(least - 1, 0), most - 1, end, rest)

        return (most > 0 and self.matches(body, at, again)) or (least == 0 and rest(at))

    def _takes(self, kind: Any, value: Any, at: int) -> bool:
        if at >= len(self.text):
            return False
        character = self.text[at]
        if kind is op.LITERAL:
            return bool(ord(character) == value)
        if kind is op.ANY:
            return character != "\n" or bool(self.flags & re.DOTALL)
        if kind is op.NOT_LITERAL:
            return bool(ord(character) != value)
        return _is_in(value, character)

    def _is_at(self, value: Any, at: int) -> bool:
        lines = bool(self.flags & re.MULTILINE)
        if value is op.AT_BEGINNING:
            return at == 0 or (lines and self.text[at - 1] == "\n")
        if value is op.AT_END:
            return at == len(self.text) or (lines and self.text[at] == "\n")
        border = (at > 0 and _is_word(self.text[at - 1])) != (at < len(self.text) and _is_word(self.text[at]))
        return border == bool(value is op.AT_BOUNDARY)


def _is_in(items: Sequence[Any], character: str) -> bool:
    negated = bool(items[0][0] is op.NEGATE)
    return negated != any(_is_item(kind, value, character) for kind, value in items if kind is not op.NEGATE)


def _is_item(kind: Any, value: Any, character: str) -> bool:
    if kind is op.LITERAL:
        return bool(ord(character) == value)
    if kind is op.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if value in (op.CATEGORY_SPACE, op.CATEGORY_NOT_SPACE):
        return character.isspace() == bool(value is op.CATEGORY_SPACE)
    return _is_word(character) if value is op.CATEGORY_WORD else character.isdigit()


def _is_word(character: str) -> bool:
    return re.match(r"\w", character) is not None
