"""The times of files on HDFS, which their owners can set (SETTIMES)."""

from __future__ import annotations

from datetime import UTC, datetime

# Far enough from the last year that Python knows: policies add their durations.
_LATEST_MILLISECONDS = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp()) * 1000


def file_time(milliseconds: int) -> datetime:
    """Return a file's time, at the earliest that of 1970 and at the latest that of 2200: a NameNode keeps any number,
    and one that somebody set must not make a whole listing unreadable."""
    return datetime.fromtimestamp(min(max(milliseconds, 0), _LATEST_MILLISECONDS) / 1000, UTC)
