"""How often a Flink job completes checkpoints: what its settings promise, why the next one does not come, and how often
the job has restarted inside since its newest one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from textwrap import shorten

from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.streams.flink_conf import flink_duration
from airflow_kstream.model.streams.flink_job import FlinkCheckpointing, FlinkCheckpoints

_CONF = "execution.checkpointing."
_MILLISECOND = timedelta(milliseconds=1)
# CheckpointConfig's defaults.
_TIMEOUT = timedelta(minutes=10)
# Jobs set it to thousands.
_TOLERABLE = 3
# Characters of an error that is part of a sentence.
_SHOWN = 300


def declared_pace(conf: Mapping[str, str]) -> FlinkCheckpointing:
    """Return what the settings say, with Flink's defaults. The job's own code may say something else."""
    read = {key: flink_duration(conf.get(f"{_CONF}{key}", "")) for key in ("interval", "timeout", "min-pause")}
    tolerable = conf.get(f"{_CONF}tolerable-failed-checkpoints", "0").strip()
    return FlinkCheckpointing(
        read["interval"],
        read["timeout"] or _TIMEOUT,
        read["min-pause"] or timedelta(),
        int(tolerable) if tolerable.isdecimal() else 0,
        survives=True,
    )


def settings_of(pace: FlinkCheckpointing) -> Mapping[str, str]:
    """Return the settings from which `declared_pace` reads this pace."""
    times = {"interval": pace.interval, "timeout": pace.timeout, "min-pause": pace.pause}
    written = {key: f"{round(time / _MILLISECOND)} ms" for key, time in times.items() if time is not None}
    written["tolerable-failed-checkpoints"] = str(pace.tolerable)
    return {f"{_CONF}{key}": value for key, value in written.items()}


def checkpoint_limit(pace: FlinkCheckpointing) -> timedelta:
    """Return how old the newest checkpoint may be: Flink's Kubernetes operator judges by the same time."""
    longest = max(pace.interval or timedelta(), pace.timeout, pace.pause)
    return longest * (min(pace.tolerable, _TOLERABLE) + 2)


def checkpoint_trouble(seen: FlinkCheckpoints) -> str:
    """Return why no newer checkpoint has come, as the JobManager tells it; empty if it doesn't."""
    if seen.failed_since:
        last = shorten(without_secrets(seen.last_failure or "no reason given"), _SHOWN, placeholder="…").rstrip(".")
        return f"{seen.failed_since} failed in a row, the last one: {last}"
    return f"one is in progress since {seen.begun:%H:%M:%S} UTC" if seen.begun else ""


def failed_since(number: int, seen: FlinkCheckpoints, failures: Collection[datetime]) -> int:
    """Return how many of these failures came after checkpoint `number`, all by the JobManager's clock: a failure leaves
    no checkpoint under way, so one that was triggered before and completed after does not exist."""
    if seen.newest is None:
        return len(failures)
    if seen.newest.number != number:
        # Another one was completed just now.
        return 0
    return sum(at > seen.newest.at for at in failures)
