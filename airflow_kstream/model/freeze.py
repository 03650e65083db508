"""A person's brake for a whole cluster: for as long as it holds, no stream is restarted, killed or stopped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.durations import parse_duration
from airflow_kstream.model.errors import InvalidInput

_FILE = re.compile(r"freeze-(\d{6,})\.json")
_DRAFT = re.compile(r"\.freeze-.+")
# Nobody remembers a freeze of last month: a person who needs a longer one freezes again.
_LONGEST = timedelta(days=7)
# The end of a freeze that was lifted: past for a reader whose clock is behind, too.
LIFTED = datetime.min.replace(tzinfo=UTC)
# Of a file that can't be read: nobody may act until a person has said something that can be.
FOREVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Freeze:
    """A person's last word on the brake of one state_dir; without any, the brake is off.

    It holds until `until`, by the NameNode's clock, which is LIFTED once somebody lifted it. `doubt` tells why it
    can't be read: then it holds until somebody writes another.
    """

    number: int = 0
    until: datetime = LIFTED
    by: str = ""
    reason: str = ""
    doubt: str = ""

    def holds(self, now: datetime) -> bool:
        return now < self.until

    def falls_into(self, wait: timedelta, now: datetime) -> bool:
        """Return whether what comes in `wait` comes while this holds."""
        return self.holds(now) and wait < self.until - now

    def __str__(self) -> str:
        """Name it for people: until when, by whom and why. The same words for as long as it holds."""
        if self.doubt:
            return f"frozen until `kstream streams unfreeze`, because {self.doubt}"
        why = self.reason or "no reason given"
        until = f"{self.until:%Y-%m-%d %H:%M:%S} UTC (or `kstream streams unfreeze`)"
        return f"frozen until {until} by {self.by or 'somebody'}: {why}"


NOT_FROZEN = Freeze()


def freeze_length(field: str, text: str) -> timedelta:
    """Read for how long to freeze. Raises InvalidInput: when it is no duration, or not more than 0s and at most 7d."""
    try:
        length = parse_duration(text)
    except InvalidInput as error:
        raise InvalidInput(f"{field}: {error.message}") from None
    if not timedelta() < length <= _LONGEST:
        raise InvalidInput(f"{field} is {text}; allowed is more than 0s, and up to 7d")
    return length


def freeze_folder(state_dir: str) -> str:
    """Return the folder of the brake. A stream's folder ends with a hash, so no stream can have this one."""
    return f"{state_dir.rstrip('/')}/freeze"


def freeze_file(number: int) -> str:
    """Return the name of the word of this number: the highest one counts."""
    return f"freeze-{number:06d}.json"


def is_freeze_draft(name: str) -> bool:
    """Return True for a word that its writer has not yet renamed into place, and perhaps never will."""
    return _DRAFT.fullmatch(name) is not None


def number_of_freeze(name: str) -> int:
    """Return the number of a word's file, 0 for any other file."""
    match = _FILE.fullmatch(name)
    return int(match[1]) if match else 0


def newest_freeze(names: Iterable[str]) -> int:
    """Return the highest number among these file names, 0 if nobody ever said a word."""
    return max(map(number_of_freeze, names), default=0)
