"""The two forms of a metric: with tags, and with the tags' values in its name."""

from __future__ import annotations

from airflow_kstream.metrics import count, event_gauge, gauge
from airflow_kstream.model.streams.event import EventKind
from tests.simulated.metrics import Metrics


def test_one_stream_name_on_two_clusters_is_two_series(metrics: Metrics) -> None:
    for cluster in ("prod", "test.eu"):
        gauge("pulse", 0, cluster, "orders")
    assert metrics.sent == [
        ("kstream.pulse", 0, {"cluster": "prod", "stream": "orders"}),
        ("kstream.prod.orders.pulse", 0, {}),
        ("kstream.pulse", 0, {"cluster": "test.eu", "stream": "orders"}),
        ("kstream.test_eu.orders.pulse", 0, {}),
    ]


def test_an_event_is_a_series_of_its_kind(metrics: Metrics) -> None:
    event_gauge(EventKind.STALLED, True, "prod", "orders")
    tags = {"cluster": "prod", "stream": "orders", "kind": "stalled"}
    assert metrics.sent == [("kstream.event", 1, tags), ("kstream.prod.orders.event.stalled", 1, {})]


def test_a_restart_is_counted_and_none_is_not_sent(metrics: Metrics) -> None:
    count("restarts", 0, "prod", "orders")
    count("restarts", 1, "prod", "orders")
    assert [name for name, _, _ in metrics.sent] == ["kstream.restarts", "kstream.prod.orders.restarts"]
