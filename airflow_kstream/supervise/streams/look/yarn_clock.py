"""The ResourceManager's clock, for a watcher of many streams."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime, timedelta

from airflow_kstream.clients.yarn import ResourceManager
from airflow_kstream.model.errors import KstreamError


class YarnClock:
    """The ResourceManager's clock: read at most once in a round, and carried on by ours while it can't be read."""

    def __init__(self, yarn: ResourceManager) -> None:
        self._yarn = yarn
        self._asked = False
        self._read: tuple[datetime, float] | None = None

    def begin_round(self) -> None:
        self._asked = False

    def time_since(self, moment: datetime) -> timedelta | None:
        """Return the time since a moment that the ResourceManager reported; None while its clock was never read."""
        if not self._asked:
            self._ask(moment)
        if self._read is None:
            return None
        then, ours = self._read
        return max(then + timedelta(seconds=time.monotonic() - ours) - moment, timedelta())

    def _ask(self, moment: datetime) -> None:
        self._asked = True
        with suppress(KstreamError):
            self._read = moment + self._yarn.time_since(moment), time.monotonic()
