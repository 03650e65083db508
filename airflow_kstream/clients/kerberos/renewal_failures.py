"""The consecutive failures of a ticket's renewal and their cause, kept in a private file beside its cache."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from airflow_kstream.clients.local.atomic import replacing


@dataclass(frozen=True)
class Failures:
    """Consecutive failures, the time of the first, and the reason of the last."""

    count: int = 0
    since: datetime | None = None
    why: str = ""

    def another(self, now: datetime, why: str) -> Failures:
        return Failures(self.count + 1, self.since or now, why)


NONE = Failures()


def recall(cache: Path) -> Failures:
    """Read the failures; `NONE` if there is no file or it makes no sense: the count is a help, not a requirement."""
    try:
        fields = json.loads(_file(cache).read_text())
        return Failures(int(fields["failures"]), datetime.fromisoformat(fields["since"]), str(fields.get("why", "")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return NONE


def remember(cache: Path, failures: Failures) -> bool:
    """Write the failures. Return False if the folder is not writable, a common cause: the count then starts again."""
    since = failures.since.isoformat() if failures.since else None
    try:
        with replacing(_file(cache)) as file:
            file.write_text(json.dumps({"failures": failures.count, "since": since, "why": failures.why}))
    except OSError:
        return False
    return True


def forget(cache: Path) -> None:
    with suppress(OSError):
        _file(cache).unlink(missing_ok=True)


def _file(cache: Path) -> Path:
    return cache.with_name(f".{cache.name}.failures")
