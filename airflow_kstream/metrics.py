"""Metrics through Airflow's statistics, each in two forms: with tags, and with the tags' values in its name.

Plain StatsD has no tags: without the second form two streams would overwrite each other's value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow.sdk.observability import stats

from airflow_kstream.model.streams.event import EventKind

# The characters that Airflow refuses in a metric's name, and its separator.
_UNFIT = re.compile(r"[^\w/-]", re.ASCII)


def gauge(name: str, value: float, cluster: str, stream: str) -> None:
    """Set `kstream.<name>` tagged `cluster` and `stream`, and `kstream.<cluster>.<stream>.<name>`."""
    _gauge(name, value, {"cluster": cluster, "stream": stream})


def event_gauge(kind: EventKind, lasts: bool, cluster: str, stream: str) -> None:
    """Set `kstream.event` tagged `cluster`, `stream` and `kind`, and `kstream.<cluster>.<stream>.event.<kind>`."""
    tags = {"cluster": cluster, "stream": stream}
    stats.gauge("kstream.event", float(lasts), tags={**tags, "kind": kind.value})
    stats.gauge(_named(f"event.{kind.value}", tags), float(lasts))


def cluster_gauge(name: str, value: float, cluster: str) -> None:
    """Set `kstream.cluster.<name>` tagged `cluster`, and `kstream.<cluster>.cluster.<name>`."""
    _gauge(f"cluster.{name}", value, {"cluster": cluster})


def ticket_gauge(name: str, value: float, cluster: str, principal: str) -> None:
    """Set `kstream.ticket.<name>` tagged `cluster` and `principal`, and `kstream.<cluster>.<principal>.ticket.<name>`.

    In the latter, characters that a metric's name can't have become `_`.
    """
    _gauge(f"ticket.{name}", value, {"cluster": cluster, "principal": principal})


def keytab_gauge(name: str, value: float, cluster: str, principal: str) -> None:
    """Set `kstream.keytab.<name>`, tagged and named as in `ticket_gauge`."""
    _gauge(f"keytab.{name}", value, {"cluster": cluster, "principal": principal})


def lease_gauge(name: str, value: float, cluster: str, path: str) -> None:
    """Set `kstream.lease.<name>` tagged `cluster` and `path`, and `kstream.<cluster>.<path>.lease.<name>`."""
    _gauge(f"lease.{name}", value, {"cluster": cluster, "path": path})


def count(name: str, increment: int, cluster: str, stream: str) -> None:
    """Increase a counter, named and tagged as in `gauge`; an increment of 0 sends nothing."""
    if increment:
        tags = {"cluster": cluster, "stream": stream}
        stats.incr(f"kstream.{name}", increment, tags=tags)
        stats.incr(_named(name, tags), increment)


def cluster_count(name: str, increment: int, cluster: str) -> None:
    """Increase a counter, named and tagged as in `cluster_gauge`."""
    tags = {"cluster": cluster}
    stats.incr(f"kstream.cluster.{name}", increment, tags=tags)
    stats.incr(_named(f"cluster.{name}", tags), increment)


def _gauge(name: str, value: float, tags: Mapping[str, str]) -> None:
    stats.gauge(f"kstream.{name}", value, tags=dict(tags))
    stats.gauge(_named(name, tags), value)


def _named(name: str, tags: Mapping[str, str]) -> str:
    return ".".join(("kstream", *(_UNFIT.sub("_", value) for value in tags.values()), name))
