"""The metrics of a watched stream. Each verdict sends all that it knows, so that silence means a dead watcher.

What ends streams and is their cluster's is one event for all of them, however many they are: a begin, an end, a metric.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta

from airflow_kstream import metrics
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.streams.event import EventKind
from airflow_kstream.model.streams.plan import Phase, Settled
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.model.streams.token_push import RefreshStatus
from airflow_kstream.supervise.streams.look.verdict import Verdict

log = logging.getLogger(__name__)
# Seconds. A stream that nobody has looked at for this long, as one whose DAG is paused, prolongs no event.
_FORGOTTEN = 3600.0

# From 3 on, somebody should look.
PULSES = {
    Pulse.HEALTHY: 0,
    Pulse.IDLE: 1,
    Pulse.STARTING: 2,
    Pulse.SLOW: 2,
    Pulse.UNKNOWN: 3,
    Pulse.NO_CHECKPOINT: 4,
    Pulse.START_STALLED: 4,
    Pulse.STALLED: 5,
    Pulse.CHANGED: 5,
}


def publish(cluster: str, stream: str, verdict: Verdict, blind_seconds: float, *, blocked: bool) -> None:
    """Publish what the verdict says as Airflow metrics; durations in seconds.

    `blind_seconds` is 0 while the stream is seen, and is there for every watched stream. Without a conclusion nothing
    else is published: an old value would look like a new one. A stream that has no checkpoint, or that a person wants
    dead or left dead, has no pulse: nobody should look. What is dead has no horizon.
    """
    metrics.gauge("blind_seconds", blind_seconds, cluster, stream)
    metrics.gauge("restart_blocked", float(blocked), cluster, stream)
    if verdict.step is None:
        return
    progress, credentials = verdict.progress, verdict.credentials
    metrics.gauge("queued_seconds", progress.queued.total_seconds() if progress.queued else 0.0, cluster, stream)
    metrics.gauge("queued_too_long", float(progress.queued_too_long), cluster, stream)
    metrics.gauge("breaker_open", float(verdict.breaker_open), cluster, stream)
    metrics.gauge("unplanned_ends", float(len(verdict.past.ends)), cluster, stream)
    metrics.gauge("former_spec", float(verdict.past.former_spec), cluster, stream)
    waits = verdict.past.waits_for_a_person
    metrics.gauge("waits_for_a_person_seconds", waits.total_seconds() if waits is not None else 0.0, cluster, stream)
    metrics.gauge("frozen", float(bool(verdict.people.freeze)), cluster, stream)
    if credentials.remaining is not None and verdict.lives:
        metrics.gauge("horizon_seconds", credentials.remaining.total_seconds(), cluster, stream)
    if credentials.refreshed is not None:
        _publish_pushes(cluster, stream, credentials.refreshed)
    if progress.commit_age is not None:
        metrics.gauge("commit_age_seconds", progress.commit_age.total_seconds(), cluster, stream)
    if progress.pulse is not None and not _rests(verdict):
        metrics.gauge("pulse", float(PULSES[progress.pulse]), cluster, stream)


def _publish_pushes(cluster: str, stream: str, refreshed: RefreshStatus) -> None:
    """Publish how the pushes to a stream stand; what never came, or is never due, sends nothing."""
    if refreshed.confirmed is not None:
        metrics.gauge("push_confirmed_age_seconds", refreshed.confirmed.total_seconds(), cluster, stream)
    if refreshed.due is not None:
        metrics.gauge("push_due_seconds", refreshed.due.total_seconds(), cluster, stream)


def publish_events(cluster: str, stream: str, before: Collection[EventKind], lasting: Collection[EventKind]) -> None:
    """Publish how many events of the stream last, each of them as 1, and as 0 those that lasted before.

    Most streams have none: so a fleet of thousands sends one value for each look, and not one for each kind.
    """
    metrics.gauge("events", float(len(lasting)), cluster, stream)
    for kind in sorted({*before, *lasting}):
        metrics.event_gauge(kind, kind in lasting, cluster, stream)


def _rests(verdict: Verdict) -> bool:
    step = verdict.step
    return isinstance(step, Settled) and step.phase in {Phase.STOPPED, Phase.HELD} and not verdict.lives


@dataclass
class Environment:
    """The troubles of a cluster's streams that are none of their own. All times are the loop's, in seconds.

    A triggerer that was restarted begins an event that lasts a second time.
    """

    conn_id: str
    _streams: dict[str, tuple[str, float]] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)

    @property
    def causes(self) -> set[str]:
        """Return the causes whose events last."""
        return set(self._since)

    def saw(self, stream: str, cause: str, now: float) -> None:
        """Take a stream's trouble, empty if it has none; tell an event that begins or ends by it, once each."""
        before = self._streams.get(stream, ("", now))[0]
        forgotten = {its for name, (its, at) in self._streams.items() if name != stream and now - at >= _FORGOTTEN}
        self._streams = {
            name: (its, at)
            for name, (its, at) in self._streams.items()
            if (its == cause if name == stream else now - at < _FORGOTTEN)
        }
        self._end_what_is_over(now, forgotten)
        if cause:
            self._streams[stream] = cause, now
        if cause and cause not in self._since:
            self._since[cause] = now
            words = "Streams of cluster %s end without a fault of theirs (%s), %s first; they follow by themselves"
            log.error(words, self.conn_id, cause, stream)
        if before or cause:
            metrics.cluster_gauge("environment_ended", float(len(self._streams)), self.conn_id)

    def _end_what_is_over(self, now: float, forgotten: set[str]) -> None:
        lasting = {cause for cause, _ in self._streams.values()}
        for cause in self._since.keys() - lasting:
            lasted = format_duration(timedelta(seconds=now - self._since.pop(cause)))
            words = "The streams of cluster %s work again (%s), after %s"
            if cause in forgotten:
                words = "Nobody looks any longer at the last stream of cluster %s that ended (%s), %s after the first"
            log.warning(words, self.conn_id, cause, lasted)
