"""What the tests that run in Airflow share: a fleet in virtual time, and a server that Airflow sends its metrics to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
from airflow.sdk.observability import stats

from tests.airflow import notifiers
from tests.simulated.fleet import Fleet
from tests.simulated.metrics import Metrics


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Fleet]:
    fleet = Fleet(monkeypatch, caplog)
    yield fleet
    fleet.loop.close()


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record what is told to the configured notifier, and nothing of what earlier tests told."""
    monkeypatch.setenv("AIRFLOW__KSTREAM__NOTIFIER", f"{notifiers.HERE}.Recording")
    notifiers.forget()


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    sent = Metrics()
    stats.initialize(factory=lambda: cast("Any", sent), export_legacy_names=True)
    yield sent
    stats.initialize(factory=NoStatsLogger, export_legacy_names=True)
