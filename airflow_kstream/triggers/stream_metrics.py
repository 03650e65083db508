"""The metrics of a watched stream. Each verdict sends all that it knows, so that silence means a dead watcher."""

from __future__ import annotations

from airflow_kstream import metrics
from airflow_kstream.model.heartbeat import Pulse
from airflow_kstream.supervise.streams.watch import Verdict

# From 3 on, somebody should look.
PULSES = {
    Pulse.HEALTHY: 0,
    Pulse.IDLE: 1,
    Pulse.STARTING: 2,
    Pulse.UNKNOWN: 3,
    Pulse.NO_CHECKPOINT: 4,
    Pulse.START_STALLED: 4,
    Pulse.STALLED: 5,
}


def publish(stream: str, verdict: Verdict, blind_seconds: float, *, blocked: bool) -> None:
    """Publish what the verdict says as Airflow metrics; durations in seconds.

    `blind_seconds` is 0 while the stream is seen, and is there for every watched stream. Without a conclusion nothing
    else is published: an old value would look like a new one.
    """
    metrics.gauge("blind_seconds", blind_seconds, stream)
    metrics.gauge("restart_blocked", float(blocked), stream)
    if verdict.step is None:
        return
    metrics.gauge("queued_seconds", verdict.queued.total_seconds() if verdict.queued else 0.0, stream)
    metrics.gauge("queued_too_long", float(verdict.queued_too_long), stream)
    metrics.gauge("breaker_open", float(verdict.breaker_open), stream)
    metrics.gauge("unplanned_ends", float(len(verdict.ends)), stream)
    metrics.gauge("frozen", float(bool(verdict.freeze)), stream)
    if verdict.remaining is not None:
        metrics.gauge("horizon_seconds", verdict.remaining.total_seconds(), stream)
    if verdict.commit_age is not None:
        metrics.gauge("commit_age_seconds", verdict.commit_age.total_seconds(), stream)
    if verdict.heartbeat is not None:
        metrics.gauge("pulse", float(PULSES[verdict.heartbeat.pulse]), stream)
