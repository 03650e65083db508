"""Metrics through Airflow's statistics, each in two forms: with tags, and with the tags' values in its name.

Plain StatsD has no tags: without the second form two streams would overwrite each other's value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow.sdk.observability import stats

from airflow_kstream.model.streams.event import EventKind

# What is sent, by its name below `kstream.`, and what it means.
METRICS: Mapping[str, str] = {
    "horizon_seconds": "until the credentials end; sent while the stream lives",
    "push_confirmed_age_seconds": "of a stream with `refresh: true`: since its driver last confirmed fresh tokens",
    "push_due_seconds": "of a stream with `refresh: true`: until the next fresh tokens are due; below 0 they are late",
    "commit_age_seconds": "since the last commit; since the claim, before the first",
    "blind_seconds": "since the watcher could conclude anything; 0 when it can",
    "restart_blocked": "1 while a restart is due and can't be done; it is tried again after 60 s, then ever less "
    "often, at last every 15 minutes",
    "pulse": "0 healthy, 1 idle, 2 starting or slow, 3 unknown, 4 no commit since its start or no checkpoint, "
    "5 stalled or a changed checkpoint; from 3 on somebody should look. Not sent without a checkpoint, nor while a "
    "person keeps the stream dead",
    "queued_seconds": "in YARN's queue",
    "queued_too_long": "1 while that is longer than `heartbeat.accept_timeout`: an event and never a kill",
    "restarts": "counted",
    "unplanned_ends": "ends within the last day that nobody planned",
    "breaker_open": "1 while its circuit breaker is open",
    "waits_for_a_person_seconds": "since a person's kill that nothing follows; 0 otherwise",
    "former_spec": "1 while it runs as it was declared before, because the changed declaration failed",
    "frozen": "1 while a person has frozen the cluster",
    "events": "how many events of the stream last",
    "event": "tagged `kind`: 1 for each event that lasts, then once 0",
    "cluster.heartbeat": "the time of the last round over the cluster, in seconds since 1970; twice a minute, whatever "
    "the servers answer",
    "cluster.unreachable": "1 while nothing answers about any stream of the cluster",
    "cluster.environment_ended": "streams that causes outside of them ended: a silent server, or an error that they "
    "share",
    "cluster.undeclared_streams": "streams that run although their files were removed",
    "cluster.streams_in_need": "streams that need a hand, by the DAG `fleet-`",
    "cluster.tokens_in_need": "jobs and files whose tokens end soon, by the DAG `tokens-`",
    "cluster.state_leftovers": "files and folders of `state_dir` that may go, by the DAG `housekeeping-`",
    "cluster.findings": "what will go wrong, by the DAG `doctor-`",
    "cluster.notifications": "counted: messages that a notifier told",
    "cluster.notifications_dropped": "counted: messages that it could not tell",
    "ticket.remaining": "seconds until the ticket expires, as of its task's last run",
    "ticket.failures": "consecutive renewals that failed",
    "ticket.alert": "1 while renewals fail and the ticket's end is near",
    "keytab.unusable": "1 while a keytab of the principal can't be used",
    "lease.stuck_files_left_alone": "stuck files below the path that no rule allows to close",
}
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
