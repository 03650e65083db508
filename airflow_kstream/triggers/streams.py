"""Wait, in the triggerer, until a stream needs attention."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_kstream import metrics
from airflow_kstream.model.durations import format_duration
from airflow_kstream.supervise.streams.watch import Verdict
from airflow_kstream.triggers.awaiting import SETTLING_SECONDS
from airflow_kstream.triggers.poller import ClusterPoller
from airflow_kstream.triggers.shared import shared


class StreamTrigger(BaseTrigger):
    """A trigger that fires when a stream is due for a restart, was stopped, or ended. A healthy one fires nothing.

    It carries ids and numbers only, so that a deferred task survives an upgrade: it reads the stream's spec from the
    claim on HDFS. It has no `on_kill`: clearing or marking the task detaches and stops nothing.

    Example::

        self.defer(trigger=StreamTrigger("prod", "orders", every_seconds=30.0), method_name="resume")

    :param cluster_conn_id: the `kstream` connection.
    :param stream: the stream's name.
    :param every_seconds: the pause between two verdicts, or half of it where another trigger's round comes earlier.
    :param pause_seconds: the wait before the first verdict, at least SETTLING_SECONDS.
    """

    def __init__(self, cluster_conn_id: str, stream: str, every_seconds: float, pause_seconds: float = 0.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cluster_conn_id = cluster_conn_id
        self.stream = stream
        self.every_seconds = every_seconds
        self.pause_seconds = pause_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "cluster_conn_id": self.cluster_conn_id,
            "stream": self.stream,
            "every_seconds": self.every_seconds,
            "pause_seconds": self.pause_seconds,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(max(self.pause_seconds, SETTLING_SECONDS))
        logged: tuple[str, ...] = ()
        async with shared(ClusterPoller, self.cluster_conn_id) as poller:
            while True:
                verdict = await poller.next_verdict(self.stream, self.every_seconds)
                publish(self.stream, verdict)
                logged = self._log_change(verdict, logged)
                if verdict.calls_for_action:
                    yield TriggerEvent({"stream": self.stream, "why": verdict.why})  # type: ignore[no-untyped-call]
                    return

    def _log_change(self, verdict: Verdict, logged: tuple[str, ...]) -> tuple[str, ...]:
        """Log a line if something changed, and return the state that the log now shows."""
        pulse = verdict.heartbeat.pulse.value if verdict.heartbeat else ""
        state = (verdict.why, pulse, str(verdict.generation), str(verdict.verified))
        if state != logged:
            remaining = f", horizon in {format_duration(verdict.remaining)}" if verdict.remaining is not None else ""
            remaining = remaining or ("" if verdict.horizon_known else ", horizon unknown")
            beat = f", heartbeat {pulse}: {verdict.heartbeat.why}" if verdict.heartbeat else ""
            self.log.info("%s generation %s: %s%s%s", self.stream, verdict.generation, verdict.why, beat, remaining)
        return state


def publish(stream: str, verdict: Verdict) -> None:
    """Publish the time to the horizon and the age of the last commit, in seconds, as Airflow metrics."""
    if verdict.remaining is not None:
        metrics.gauge("horizon_seconds", verdict.remaining.total_seconds(), stream)
    if verdict.heartbeat and verdict.heartbeat.commit_age is not None:
        metrics.gauge("commit_age_seconds", verdict.heartbeat.commit_age.total_seconds(), stream)
