"""Markdown as the tests of the pages read it: blocks of code, links, headings, and words in backticks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)(?P=fence) *$",
    re.DOTALL | re.MULTILINE,
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^)\s>]+)>?[^)]*\)|(?:src|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"|\{ *#([\w-]+)")


@dataclass(frozen=True)
class Block:
    """A block of code: its info string, its text without the indent, and where it begins."""

    page: str
    line: int
    info: str
    text: str

    @property
    def language(self) -> str:
        return (self.info.split() or [""])[0]

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    """A page: its place from the top of the repository, and its text."""

    name: str
    text: str

    @classmethod
    def of(cls, path: Path) -> Page:
        return cls(str(path.relative_to(ROOT)), path.read_text())

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(
            Block(self.name, self.text.count("\n", 0, found.start()) + 1, found["info"].strip(), dedent(found["text"]))
            for found in _FENCE.finditer(self.text)
        )

    @cached_property
    def prose(self) -> str:
        """Return the page without blocks of code and comments."""
        return _COMMENT.sub("", _FENCE.sub("", self.text))

    @property
    def links(self) -> Iterator[str]:
        """Yield the target of each link and picture that leads to a file or a heading of ours."""
        for markdown, html in _LINK.findall(_INLINE.sub("``", self.prose)):
            if not re.match(r"[a-z][a-z+.-]*:", markdown or html):
                yield markdown or html

    @property
    def inline(self) -> Iterator[str]:
        """Yield what stands in backticks, each in one line."""
        yield from (" ".join(text.split()) for text in _INLINE.findall(self.prose))

    @cached_property
    def anchors(self) -> frozenset[str]:
        """Return the anchors of its headings as GitHub and the site make them, and those that it names itself."""
        named = {first or second for first, second in _ANCHOR.findall(self.prose)}
        return frozenset({slug(heading) for heading in _HEADING.findall(self.prose)} | named)


@cache
def pages() -> tuple[Page, ...]:
    """Return the pages that people write, in the order of their places."""
    top = (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))
    return tuple(Page.of(path) for path in (*top, *sorted((ROOT / "docs").rglob("*.md"))))


def slug(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.partition("{#")[0]).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
