"""A person's freeze of a whole cluster: for as long as it holds, no stream is restarted, killed or stopped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_kstream.model.durations import parse_duration
from airflow_kstream.model.errors import InvalidInput

# Nobody remembers a freeze of last month: a person who needs a longer one freezes again.
LONGEST = timedelta(days=7)
# The end of a freeze that was lifted: past for a reader whose clock is behind, too.
LIFTED = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Freeze:
    """A person's last order to freeze a state_dir, or to lift that; without any, it is not frozen.

    It holds until `until`, by the NameNode's clock, which is LIFTED once somebody lifted it. `by` is who speaks, with
    HDFS's owner of the order beside a name in its text. `doubt` tells why it can't be read.
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
        until = f"{self.until:%Y-%m-%d %H:%M:%S} UTC (or `kstream streams unfreeze`)"
        if self.doubt:
            return f"frozen until {until}, because {self.doubt}"
        why = self.reason or "no reason given"
        return f"frozen until {until} by {self.by or 'somebody'}: {why}"


NOT_FROZEN = Freeze()


def freeze_length(field: str, text: str) -> timedelta:
    """Read for how long to freeze. Raises InvalidInput: when it is not a duration of more than 0s and at most 7d."""
    try:
        length = parse_duration(text)
    except InvalidInput as error:
        raise InvalidInput(f"{field}: {error.message}") from None
    if not timedelta() < length <= LONGEST:
        raise InvalidInput(f"{field} is {text}; allowed is more than 0s, and up to 7d")
    return length
