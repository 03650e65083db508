from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from airflow_kstream.clients.kerberos import tickets
from tests.simulated.life import Life


@pytest.fixture
def life(monkeypatch: pytest.MonkeyPatch) -> Life:
    """A stream that needs no KDC, a ticket is always available, and no patience: a wait moves its clock."""
    granted: Callable[..., timedelta] = lambda identity, cache: timedelta(hours=10)  # noqa: E731
    monkeypatch.setattr(tickets, "acquire", granted)
    life = Life()
    monkeypatch.setattr(time, "sleep", life.clock.sleep)
    monkeypatch.setattr(time, "monotonic", life.clock.monotonic)
    return life
