"""How many rows of a listing are kept: a stranger's million files end no worker, and hide nobody else's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol, TypeVar

# Of one listing: what lies beyond is somebody's mischief, or a case for housekeeping.
MOST_ROWS = 20_000


class _Owned(Protocol):
    @property
    def owner(self) -> str: ...


Row = TypeVar("Row", bound=_Owned)


def kept(pages: Iterable[Iterable[Row]], most: int = MOST_ROWS) -> tuple[tuple[Row, ...], dict[str, int]]:
    """Return so many of all rows, and how many more each of the owners has who have the most. The rest is complete.

    No more than a page beyond what is kept is held in memory.
    """
    rows: list[Row] = []
    cut: Counter[str] = Counter()
    for page in pages:
        rows.extend(page)
        if len(rows) > most:
            rows = _levelled(rows, most, cut)
    return tuple(rows), dict(cut)


def _levelled(rows: list[Row], most: int, cut: Counter[str]) -> list[Row]:
    """Return the first rows of each owner, as many as all of them together may have."""
    counts = Counter(row.owner for row in rows)
    share, seen = _fair_share(counts.values(), most), Counter[str]()
    result: list[Row] = []
    for row in rows:
        seen[row.owner] += 1
        if seen[row.owner] <= share:
            result.append(row)
    cut.update({owner: count - share for owner, count in counts.items() if count > share})
    return result


def _fair_share(counts: Iterable[int], most: int) -> int:
    """Return the largest number with which all owners together, each cut to it, have no more than `most`."""
    left, ordered = most, sorted(counts)
    for position, count in enumerate(ordered):
        share = left // (len(ordered) - position)
        if count > share:
            return share
        left -= count
    return most
