"""Orders of persons: what they want of a stream, and freezes of all streams; each in a folder of its author.

They are numbered over all authors together, and the highest number of those who may speak counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

# The subject of orders on all streams; no stream's folder has a name without a digest.
ALL_STREAMS = "freeze"
_FILE = re.compile(r"(?P<subject>[a-z0-9_-]+)\.(?P<number>\d{6,9})\.json")
# A job runs as its stream's user, and may say the highest number: supervisors have higher ones left.
LAST_OF_SUPERVISORS, LAST_OF_USERS = 999_999_999, 99_999_999


@dataclass(frozen=True)
class OrderFile:
    """The file of an order. `author` is HDFS's owner of it, and `at` the file's time.

    That is the NameNode's unless somebody set it. `folder_at` is the time of its folder, which changed last when this
    order or a later one came.
    """

    path: str
    subject: str
    number: int
    author: str
    at: datetime
    folder_at: datetime | None = field(default=None, compare=False)

    @property
    def rank(self) -> tuple[int, datetime, str]:
        """Return what decides between orders: the number and, between persons who spoke at once, the later one."""
        return self.number, self.at, self.author


def order_name(subject: str, number: int) -> str:
    """Return the name of the order of this number on a stream's id, or on ALL_STREAMS."""
    return f"{subject}.{number:06d}.json"


def order_of(name: str) -> tuple[str, int] | None:
    """Return the subject and the number of an order's file, None for any other file."""
    match = _FILE.fullmatch(name)
    return (match["subject"], int(match["number"])) if match else None
