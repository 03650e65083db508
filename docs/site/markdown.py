"""The Markdown that generated pages are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; columns without a word in any row are left out, and nothing is left of a table without rows."""
    lines = [[cell(text) for text in row] for row in rows]
    if not lines:
        return ""
    kept = [number for number in range(len(heads)) if any(line[number] for line in lines)]
    drawn = [[heads[number] for number in kept], ["---"] * len(kept), *([line[n] for n in kept] for line in lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in drawn) + "\n"


def cell(text: str) -> str:
    """Return the text as it stands in a table: in one line, with its bars escaped."""
    return " ".join(text.split()).replace("|", r"\|")


def word(text: object) -> str:
    """Return it as code, nothing of nothing."""
    return f"`{text}`" if str(text) else ""


def words(text: str) -> str:
    """Return plain text, as options and rules have it, so that Markdown shows it as it is."""
    return re.sub(r"([<>*_\[\]])", r"\\\1", text) if "`" not in text else text


def block(text: str, language: str = "") -> str:
    return f"```{language}\n{text.strip()}\n```\n"


def page(title: str, *parts: str) -> str:
    """Return a page: its title, and its parts below each other without the empty ones."""
    return "\n\n".join([f"# {title}", *(part.strip() for part in parts if part.strip())]) + "\n"
