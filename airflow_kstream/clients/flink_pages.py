"""Flink's own REST of a running application, behind the ResourceManager's proxy.

Only GET passes the proxy (WebAppProxyServlet), and any user that it knows may read: Flink asks nobody for a right.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_kstream.clients.application_pages import ApplicationPages
from airflow_kstream.model.streams.flink_job import (
    FlinkCheckpoint,
    FlinkCheckpointing,
    FlinkCheckpoints,
    FlinkFailure,
    FlinkJob,
    FlinkOverview,
    FlinkVertex,
)

# The interval of a job without checkpoints of its own (JobCheckpointingSettings): Long.MAX_VALUE milliseconds.
_NEVER = 2**63 - 1
# Of a Java exception's text: how a deeper cause begins, and how much of one is shown.
_CAUSE, _LONGEST = "Caused by: ", 300


class FlinkPages(ApplicationPages):
    """One JobManager's pages. Raises as `ApplicationPages`; NotFound also for a job that this JobManager never ran."""

    api = ""
    wanting = "nothing of Flink's: is it a JobManager?"

    def overview(self) -> FlinkOverview:
        return self.ask("count the TaskManagers", "/overview", _overview)

    def jobs(self) -> tuple[str, ...]:
        """Return the ids of all jobs, ended ones too; an application that calls `execute()` once has one."""
        return self.ask("list the jobs", "/jobs/overview", lambda body: tuple(str(job["jid"]) for job in body["jobs"]))

    def job(self, job: str) -> FlinkJob:
        return self.ask(f"look at job {job}", f"/jobs/{job}", _job)

    def checkpoints(self, job: str) -> FlinkCheckpoints:
        return self.ask(f"look at the checkpoints of job {job}", f"/jobs/{job}/checkpoints", _checkpoints)

    def checkpointing(self, job: str) -> FlinkCheckpointing:
        """Return how the job makes checkpoints. Raises NotFound: also when it makes none at all."""
        tried = f"ask whether the checkpoints of job {job} survive it"
        return self.ask(tried, f"/jobs/{job}/checkpoints/config", _checkpointing)

    def savepoint_failure(self, job: str, trigger: str) -> str:
        """Return why a stop with savepoint failed; empty if it did not, or is still under way.

        Raises NotFound: when no such stop was begun, or its end is older than the JobManager remembers (5 minutes).
        """
        return self.ask(f"look at the savepoint of job {job}", f"/jobs/{job}/savepoints/{trigger}", _savepoint_failure)

    def conf(self) -> dict[str, str]:
        """Return the JobManager's configuration. It masks what it takes for secrets."""
        tried = "read the JobManager's configuration"
        return self.ask(
            tried, "/jobmanager/config", lambda body: {str(each["key"]): str(each["value"]) for each in body}
        )

    def last_failure(self, job: str) -> FlinkFailure | None:
        return self.ask(f"read the exceptions of job {job}", f"/jobs/{job}/exceptions", _last_failure)


def _overview(body: Mapping[str, Any]) -> FlinkOverview:
    counts = (int(body[name]) for name in ("taskmanagers", "slots-total", "slots-available", "jobs-running"))
    return FlinkOverview(str(body["flink-version"]), *counts)


def _job(body: Mapping[str, Any]) -> FlinkJob:
    vertices = tuple(map(_vertex, body["vertices"]))
    return FlinkJob(str(body["jid"]), str(body["name"]), str(body["state"]), vertices)


def _vertex(body: Mapping[str, Any]) -> FlinkVertex:
    counts, names = body["metrics"], ("read-records", "write-records")
    read, written = (int(counts[name]) if counts[f"{name}-complete"] else None for name in names)
    status, parallelism = str(body["status"]), int(body["parallelism"])
    return FlinkVertex(str(body["id"]), str(body["name"]), status, parallelism, read, written)


def _checkpoints(body: Mapping[str, Any]) -> FlinkCheckpoints:
    counts, latest, remembered = body["counts"], body["latest"], body.get("history") or ()
    failed, completed = latest["failed"], latest["completed"]
    newest, resumed = (int(one["id"]) if one else -1 for one in (completed, latest["restored"]))
    begun = [_moment(one["trigger_timestamp"]) for one in remembered if one["status"] == "IN_PROGRESS"]
    return FlinkCheckpoints(
        int(counts["completed"]),
        int(counts["failed"]),
        int(counts["in_progress"]),
        int(counts["restored"]),
        _checkpoint(latest["completed"], "trigger_timestamp"),
        _checkpoint(latest["savepoint"], "trigger_timestamp"),
        _checkpoint(latest["restored"], "restore_timestamp"),
        str(failed["failure_message"]) if failed else None,
        sum(one["status"] == "FAILED" and int(one["id"]) > newest for one in remembered),
        min(begun, default=None),
        sum(one["status"] == "COMPLETED" and int(one["id"]) > resumed for one in remembered),
    )


def _checkpoint(body: Mapping[str, Any] | None, time: str) -> FlinkCheckpoint | None:
    if body is None:
        return None
    # In the JobManager's memory it is "<checkpoint-not-externally-addressable>".
    path = str(body.get("external_path") or "")
    place = path if "/" in path else None
    return FlinkCheckpoint(int(body["id"]), _moment(body[time]), place, bool(body["is_savepoint"]))


def _checkpointing(body: Mapping[str, Any]) -> FlinkCheckpointing:
    outside, interval = body["externalization"], int(body["interval"])
    return FlinkCheckpointing(
        None if interval == _NEVER else _duration(interval),
        _duration(body["timeout"]),
        _duration(body["min_pause"]),
        int(body["tolerable_failed_checkpoints"]),
        bool(outside["enabled"]) and not outside["delete_on_cancellation"],
    )


def _savepoint_failure(body: Mapping[str, Any]) -> str:
    cause = (body.get("operation") or {}).get("failure-cause")
    if not cause:
        return ""
    # The innermost cause says what a person can mend.
    first, *lines = str(cause["stack-trace"]).splitlines() or [str(cause["class"])]
    return [first, *(line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE))][-1][:_LONGEST]


def _last_failure(body: Mapping[str, Any]) -> FlinkFailure | None:
    entries = body["exceptionHistory"]["entries"]
    if not entries:
        return None
    newest = max(entries, key=lambda entry: int(entry["timestamp"]))
    task = newest.get("taskName")
    return FlinkFailure(_moment(newest["timestamp"]), str(newest["stacktrace"]), str(task) if task else None)


def _moment(milliseconds: Any) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


def _duration(milliseconds: Any) -> timedelta:
    return timedelta(milliseconds=int(milliseconds))
