"""Metrics through Airflow's own, in both of its ways: tagged, and with the stream's name in the metric's name.

Plain StatsD has no tags: without the second way two streams would overwrite each other's value.
"""

from __future__ import annotations

from airflow.sdk.observability import stats


def gauge(name: str, value: float, stream: str) -> None:
    """`kstream.<name>` tagged `stream`, and `kstream.<stream>.<name>`."""
    stats.gauge(f"kstream.{name}", value, tags={"stream": stream})
    stats.gauge(f"kstream.{stream}.{name}", value)


def count(name: str, increment: int, stream: str) -> None:
    """As `gauge`, but a counter; nothing is sent for nothing."""
    if increment:
        stats.incr(f"kstream.{name}", increment, tags={"stream": stream})
        stats.incr(f"kstream.{stream}.{name}", increment)
