"""How much of what others leave is read: a stranger's million files end no worker, and hide nobody else's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from airflow_kstream.clients.hdfs.webhdfs import FileStatus

# Of one listing: what lies beyond is somebody's mischief, or a case for housekeeping.
MOST_ROWS = 20_000
# Of what this package writes and reads as one text; a stranger's file of gigabytes must end no worker.
LONGEST_TEXT = 1 << 20


class _Owned(Protocol):
    @property
    def owner(self) -> str: ...


Row = TypeVar("Row", bound=_Owned)


@dataclass(frozen=True)
class Listing:
    """The entries of a folder, sorted as the server sorts them.

    `cut` is how many more each of these owners has in it: they are left out where there are more than MOST_ROWS, and
    always of the owner who has the most. So an owner who is not named there is listed completely.
    """

    entries: tuple[FileStatus, ...] = ()
    cut: Mapping[str, int] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Return what was left out, in words; empty if nothing was."""
        most = sorted(self.cut.items(), key=lambda item: -item[1])
        named = ", ".join(f"{count} of {owner or 'an owner without a name'}" for owner, count in most[:5])
        return f"it has more than {MOST_ROWS} entries, of which these are not looked at: {named}" if named else ""


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
