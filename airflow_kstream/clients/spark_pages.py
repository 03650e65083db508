"""Spark's own REST of a running application, behind the ResourceManager's proxy.

The proxy proves who asks, and the driver's web UI decides whether that one may view the application (spark.acls.enable,
spark.ui.view.acls). It has none where spark.ui.enabled is false, and no dumps where spark.ui.threadDumpsEnabled is.
Spark takes an executor's dump at that moment by a call of the driver's (SparkContext.getExecutorThreadDump).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_kstream.clients.application_pages import ApplicationPages
from airflow_kstream.model.logs.container_log import LoggedContainer, Process, Thread, ThreadDump, plain_frame

DRIVER, _EXECUTOR = "driver", "executor "


class SparkPages(ApplicationPages):
    """One running application's pages. Raises as `ApplicationPages`."""

    api = "/api/v1/applications/{application}"
    wanting = "nothing of Spark's: has the application its web UI (spark.ui.enabled)?"

    def processes(self) -> tuple[Process, ...]:
        """Return the driver and the executors that live, as the driver sees them."""
        return self.ask("list the executors", "/executors", lambda body: tuple(_process(one) for one in body))

    def threads(self, process: Process) -> ThreadDump:
        path = f"/executors/{process.name.removeprefix(_EXECUTOR)}/threads"
        tried = f"take a thread dump of {process}"
        return ThreadDump(process, self.ask(tried, path, lambda body: tuple(_thread(one) for one in body)))

    def progress(self) -> str:
        """Return what Spark counts for the jobs that run: tasks, records and bytes, one line for each active stage.

        Executors send what their running tasks have counted with each heartbeat (spark.executor.heartbeatInterval, 10
        s), so the text is another one once any task has read or written something more, or ended.
        """
        ended = self.ask("count the tasks", "/executors", lambda body: tuple(sorted(map(_tasks_ended, body))))
        stages = self._active_stages()
        return "\n".join([*(f"executor {name}: {count} tasks ended" for name, count in ended), *stages.values()])

    def progress_of(self, query: str) -> tuple[str, frozenset[int]]:
        """Return what Spark counts for the running jobs of no other query, and the ids of their active stages.

        The description of a query's job has the query's id (StreamExecution.getBatchDescriptionString), also of those
        that its `foreachBatch` starts in the same thread.
        """
        jobs = self.ask("list the running jobs", "/jobs?status=running", lambda body: tuple(map(_job, body)))
        ours = [job for job in jobs if job.query in {"", query}]
        theirs = {stage for job in jobs if job not in ours for stage in job.stages}
        stages = {stage: counts for stage, counts in self._active_stages().items() if stage not in theirs}
        return "\n".join([*sorted(job.counts for job in ours), *stages.values()]), frozenset(stages)

    def properties(self) -> Mapping[str, str]:
        """Return the Spark properties of the application, those that Spark takes for secrets redacted."""
        return self.ask("read its properties", "/environment", lambda body: _pairs(body["sparkProperties"]))

    def environment(self) -> SparkEnvironment:
        """Return what the driver runs with."""
        return self.ask("read its environment", "/environment", _environment)

    def _active_stages(self) -> Mapping[int, str]:
        """Return what is counted for each active stage, by its id."""
        return self.ask(
            "list the active stages",
            "/stages?status=active",
            lambda body: {int(stage["stageId"]): _counts(stage) for stage in sorted(body, key=_stage_id)},
        )


_QUERY_ID = re.compile(r"\bid = (?P<id>[0-9a-fA-F-]{36})\b")
# Of a stage, what grows while its tasks work (org.apache.spark.status.api.v1.StageData).
_COUNTS = (
    "numCompleteTasks",
    "numFailedTasks",
    "inputRecords",
    "inputBytes",
    "outputRecords",
    "outputBytes",
    "shuffleReadRecords",
    "shuffleReadBytes",
    "shuffleWriteRecords",
    "shuffleWriteBytes",
    "memoryBytesSpilled",
    "diskBytesSpilled",
)


@dataclass(frozen=True)
class SparkEnvironment:
    """The Spark properties of a driver, its Hadoop properties, and the names of the jars on its class path.

    What Spark takes for a secret is redacted. Before Spark 3 there are no Hadoop properties: then they are None.
    """

    properties: Mapping[str, str]
    hadoop: Mapping[str, str] | None
    jars: tuple[str, ...]


def _environment(body: Mapping[str, Any]) -> SparkEnvironment:
    jars = tuple(str(path).rpartition("/")[2] for path, _ in body["classpathEntries"])
    hadoop = _pairs(body["hadoopProperties"]) if "hadoopProperties" in body else None
    return SparkEnvironment(_pairs(body["sparkProperties"]), hadoop, jars)


def _pairs(rows: Any) -> Mapping[str, str]:
    return {str(key): str(value) for key, value in rows}


@dataclass(frozen=True)
class _Job:
    """A job that runs. `query` is the id of the streaming query that started it, empty if it was none."""

    query: str
    counts: str
    stages: frozenset[int]


def _job(body: Mapping[str, Any]) -> _Job:
    query = _QUERY_ID.search(str(body.get("description") or ""))
    ended = int(body["numCompletedTasks"]) + int(body["numFailedTasks"])
    stages = frozenset(int(stage) for stage in body["stageIds"])
    return _Job(query["id"] if query else "", f"job {int(body['jobId'])}: {ended} tasks ended", stages)


def _stage_id(stage: Mapping[str, Any]) -> tuple[int, int]:
    return int(stage["stageId"]), int(stage["attemptId"])


def _counts(stage: Mapping[str, Any]) -> str:
    counts = " ".join(f"{name}={int(stage.get(name) or 0)}" for name in _COUNTS)
    return f"stage {int(stage['stageId'])}.{int(stage['attemptId'])}: {counts}"


def _tasks_ended(executor: Mapping[str, Any]) -> tuple[str, int]:
    return str(executor["id"]), int(executor["completedTasks"]) + int(executor["failedTasks"])


def _process(body: Mapping[str, Any]) -> Process:
    name, logs = str(body["id"]), body.get("executorLogs") or {}
    links = (LoggedContainer.of_link(str(link).rpartition("/")[0]) for link in logs.values())
    host, container = str(body["hostPort"]).rpartition(":")[0], next((one for one in links if one), None)
    if name == DRIVER:
        return Process(DRIVER, host, None, container)
    return Process(f"{_EXECUTOR}{name}", host, int(body["activeTasks"]), container)


def _thread(body: Mapping[str, Any]) -> Thread:
    frames = tuple(plain_frame(str(frame)) for frame in body["stackTrace"]["elems"])
    return Thread(str(body["threadName"]), str(body["threadState"]), frames)
