"""The two forms of a metric: with tags, and with the tags' values in its name."""

from __future__ import annotations

import pytest
from airflow.sdk.observability import stats

from airflow_kstream import metrics
from airflow_kstream.model.event import EventKind


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, dict[str, str]]]:
    sent: list[tuple[str, float, dict[str, str]]] = []
    for form in ("gauge", "incr"):
        monkeypatch.setattr(stats, form, lambda name, value, tags=None: sent.append((name, value, tags or {})))
    return sent


def test_one_stream_name_on_two_clusters_is_two_series(sent: list[tuple[str, float, dict[str, str]]]) -> None:
    for cluster in ("prod", "test.eu"):
        metrics.gauge("pulse", 0, cluster, "orders")
    assert sent == [
        ("kstream.pulse", 0, {"cluster": "prod", "stream": "orders"}),
        ("kstream.prod.orders.pulse", 0, {}),
        ("kstream.pulse", 0, {"cluster": "test.eu", "stream": "orders"}),
        ("kstream.test_eu.orders.pulse", 0, {}),
    ]


def test_an_event_is_a_series_of_its_kind(sent: list[tuple[str, float, dict[str, str]]]) -> None:
    metrics.event_gauge(EventKind.STALLED, True, "prod", "orders")
    tags = {"cluster": "prod", "stream": "orders", "kind": "stalled"}
    assert sent == [("kstream.event", 1, tags), ("kstream.prod.orders.event.stalled", 1, {})]


def test_a_restart_is_counted_and_none_is_not_sent(sent: list[tuple[str, float, dict[str, str]]]) -> None:
    metrics.count("restarts", 0, "prod", "orders")
    metrics.count("restarts", 1, "prod", "orders")
    assert [name for name, _, _ in sent] == ["kstream.restarts", "kstream.prod.orders.restarts"]
