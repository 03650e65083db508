"""Flink's own REST of a running application, behind the ResourceManager's proxy.

Only GET passes the proxy (WebAppProxyServlet), and any user that it knows may read: Flink asks nobody for a right.
So a job is stopped through the JobManager's own port.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from math import isfinite
from typing import Any
from urllib.parse import quote

import requests
import urllib3.exceptions

from airflow_kstream.clients.application_pages import ApplicationPages
from airflow_kstream.clients.waiting import limit_all_answers
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.logs.container_log import Process, Thread, ThreadDump, plain_frame
from airflow_kstream.model.streams.flink_conf import LONGEST
from airflow_kstream.model.streams.flink_job import (
    FlinkCheckpoint,
    FlinkCheckpointing,
    FlinkCheckpoints,
    FlinkJob,
    FlinkOverview,
    FlinkReading,
    FlinkVertex,
)

_SECONDS = 20.0

# The interval of a job without checkpoints of its own (JobCheckpointingSettings): Long.MAX_VALUE milliseconds.
_NEVER, _MILLISECOND = 2**63 - 1, timedelta(milliseconds=1)
# Of a Java exception's text: how a deeper cause begins, and how much of one is shown.
_CAUSE, _LONGEST = "Caused by: ", 300
JOB_MANAGER, TASK_MANAGER = "JobManager", "TaskManager"
_CONTAINER = re.compile(r"container_(?:e\d+_)?\d+_\d+_\d+_(?P<number>\d{1,9})")
# How ThreadInfo.toString begins after the name, and a line that is a frame.
_STATE, _AT = re.compile(r" Id=\d+ (?P<state>[A-Z_]+)"), "at "
# Of a vertex, the times that its tasks spend; a source of the older kind has no busy time, and says NaN.
_SPENT = ("accumulated-busy-time", "accumulated-idle-time", "accumulated-backpressured-time")
# The ends of the names of counts that grow while records pass; each begins with the name of its operator.
_RECORDS = ("numRecordsIn", "numRecordsOut", "numRecordsSend")
# Sources whose counts are read, and characters of one question.
_SOURCES, _PIECE = 8, 2000


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

    def reading(self, job: str, names: dict[str, tuple[str, ...]]) -> FlinkReading:
        """Return how many records the job has counted.

        That is one page and, for each vertex that is a source, one more; the first time also one for the names of its
        counts, which are kept in `names` by vertex. A question makes the JobManager ask its TaskManagers, every ten
        seconds at most (metrics.fetcher.update-interval). It doesn't wait for them: it answers with what it heard
        before, at first with nothing.
        """
        seen = self.job(job)
        counts = {f"{vertex.label}: read": vertex.read for vertex in seen.vertices}
        sources = [vertex for vertex in seen.vertices if vertex.read == 0 and vertex.status == "RUNNING"]
        known = len(sources) <= _SOURCES
        for vertex in sources if known else ():
            passed = self._passed(f"/jobs/{job}/vertices/{vertex.id}/subtasks/metrics", vertex.id, names)
            known = known and bool(passed)
            counts |= {f"{vertex.label}: {name}": count for name, count in passed.items()}
        told = {name: count for name, count in counts.items() if count is not None}
        return FlinkReading(
            bool(seen.vertices) and all(vertex.works for vertex in seen.vertices),
            sum(vertex.spent for vertex in seen.vertices),
            told if known and len(told) == len(counts) else None,
        )

    def _passed(self, path: str, vertex: str, names: dict[str, tuple[str, ...]]) -> dict[str, int]:
        if not names.get(vertex):
            names[vertex] = self.ask("list what a source counts", path, _names)
        passed: dict[str, int] = {}
        for some in _questions(names[vertex]):
            passed |= self.ask("count what a source passes on", f"{path}?agg=sum&get={some}", _sums)
        return passed

    def taskmanagers(self) -> dict[str, Process]:
        """Return the TaskManagers that are registered, by their ids: on YARN, their containers'."""
        return self.ask(
            "list the TaskManagers",
            "/taskmanagers",
            lambda body: {str(one["id"]): _taskmanager(one) for one in body["taskmanagers"]},
        )

    def threads(self, process: Process, id: str = "") -> ThreadDump:
        """Return the threads of a TaskManager, or of the JobManager, which has no id."""
        path = f"/taskmanagers/{quote(id)}/thread-dump" if id else "/jobmanager/thread-dump"
        tried = f"take a thread dump of {process}"
        return ThreadDump(process, self.ask(tried, path, lambda body: tuple(map(_thread, body["threadInfos"]))))

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

    def failures(self, job: str) -> tuple[datetime, ...]:
        """Return when the job failed, by the JobManager's clock, the last time first.

        Each restart inside is one; it remembers 16 (web.exception-history-size).
        """
        return self.ask(f"read the exceptions of job {job}", f"/jobs/{job}/exceptions", _failures)


def _overview(body: Mapping[str, Any]) -> FlinkOverview:
    return FlinkOverview(taskmanagers=int(body["taskmanagers"]), running=int(body["jobs-running"]))


def _job(body: Mapping[str, Any]) -> FlinkJob:
    vertices = tuple(map(_vertex, body["vertices"]))
    return FlinkJob(str(body["jid"]), str(body["name"]), str(body["state"]), vertices)


def _vertex(body: Mapping[str, Any]) -> FlinkVertex:
    counts, names = body["metrics"], ("read-records", "write-records")
    read, written = (int(counts[name]) if counts[f"{name}-complete"] else None for name in names)
    status, parallelism = str(body["status"]), int(body["parallelism"])
    spent = sum(int(number) for number in map(float, (counts.get(name, 0) for name in _SPENT)) if isfinite(number))
    return FlinkVertex(str(body["id"]), str(body["name"]), status, parallelism, read, written, spent)


def _names(body: Any) -> tuple[str, ...]:
    return tuple(sorted(name for name in (str(one["id"]) for one in body) if name.endswith(_RECORDS)))


def _questions(names: Iterable[str]) -> Iterator[str]:
    """Yield the names in pieces: a JobManager refuses a request line of more than 4096 characters."""
    piece = ""
    for name in map(partial(quote, safe=""), names):
        if piece and len(piece) + len(name) > _PIECE:
            yield piece
            piece = ""
        piece = f"{piece},{name}" if piece else name
    if piece:
        yield piece


def _sums(body: Any) -> dict[str, int]:
    return {str(one["id"]): int(one["sum"]) for one in body}


def _taskmanager(body: Mapping[str, Any]) -> Process:
    id, busy = str(body["id"]), int(body["slotsNumber"]) - int(body["freeSlots"])
    number = _CONTAINER.fullmatch(id)
    # pekko.tcp://flink@HOST:PORT/user/rpc/taskmanager_0
    host = str(body["path"]).partition("@")[2].partition("/")[0].rpartition(":")[0]
    return Process(f"{TASK_MANAGER} {int(number['number']) if number else id}", host, busy)


def _thread(body: Mapping[str, Any]) -> Thread:
    name, (head, *lines) = str(body["threadName"]), str(body["stringifiedThreadInfo"]).splitlines() or [""]
    state = _STATE.search(head.removeprefix(f'"{name}"'))
    frames = (line.strip() for line in lines)
    return Thread(
        name,
        state["state"] if state else "",
        tuple(plain_frame(frame.removeprefix(_AT)) for frame in frames if frame.startswith(_AT)),
    )


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
        # A savepoint that somebody makes commits nothing, and is none of the job's own.
        sum(
            one["status"] == "COMPLETED" and int(one["id"]) > resumed and not one.get("is_savepoint")
            for one in remembered
        ),
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


def _failures(body: Mapping[str, Any]) -> tuple[datetime, ...]:
    # Each has a whole stack trace, which nobody reads.
    return tuple(sorted((_moment(entry["timestamp"]) for entry in body["exceptionHistory"]["entries"]), reverse=True))


def _moment(milliseconds: Any) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


def _duration(milliseconds: Any) -> timedelta:
    return _MILLISECOND * min(int(milliseconds), LONGEST // _MILLISECOND)


def stop_with_savepoint(address: str, job: str, terms: Mapping[str, Any], tls: Tls | None = None) -> None:
    """Begin a stop with savepoint. The same `triggerId` begins it once, however often it is sent.

    With `tls` the JobManager's certificate is checked, as any other server's. Raises Unavailable: when the port can't
    be reached, or the JobManager refuses.
    """
    tried = f"stop job {job}"
    where, verify = ("http", True) if tls is None else ("https", tls.verify)
    url = f"{where}://{address}/jobs/{job}/stop"
    try:
        with requests.Session() as session:
            # No proxy of this host, and no password of its user: what listens there is the job of anybody.
            session.trust_env, session.verify = False, verify
            limit_all_answers(session, _SECONDS)
            answer = session.post(url, json=dict(terms), allow_redirects=False, stream=True)
            said = answer.raw.read(_LONGEST, decode_content=True).decode(errors="replace")
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise Unavailable(f"it can't be reached ({type(error).__name__})", tried=tried, server=address) from error
    if answer.status_code != requests.codes.accepted:
        raise Unavailable(f"it answered {answer.status_code}: {said}", tried=tried, server=address)
