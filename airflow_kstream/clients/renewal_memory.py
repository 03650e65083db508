"""How often the renewal of a ticket failed in a row, kept in a private file beside its cache."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from airflow_kstream.clients.replacing import replacing


@dataclass(frozen=True)
class Failures:
    """Consecutive ones, and when they began."""

    count: int = 0
    since: datetime | None = None

    def another(self, now: datetime) -> Failures:
        return Failures(self.count + 1, self.since or now)


NONE = Failures()


def recall(cache: Path) -> Failures:
    """None where nothing is written, or nothing that makes sense: the count is a comfort, not a condition."""
    try:
        said = json.loads(_file(cache).read_text())
        return Failures(int(said["failures"]), datetime.fromisoformat(said["since"]))
    except (OSError, ValueError, TypeError, KeyError):
        return NONE


def remember(cache: Path, failures: Failures) -> None:
    """A folder that takes nothing is what failed in the first place: then the count begins anew each time."""
    since = failures.since.isoformat() if failures.since else None
    with suppress(OSError), replacing(_file(cache)) as file:
        file.write_text(json.dumps({"failures": failures.count, "since": since}))


def forget(cache: Path) -> None:
    with suppress(OSError):
        _file(cache).unlink(missing_ok=True)


def _file(cache: Path) -> Path:
    return cache.with_name(f".{cache.name}.failures")
