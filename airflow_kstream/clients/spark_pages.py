"""Spark's own REST of a running application, behind the ResourceManager's proxy.

The proxy proves who asks, and the driver's web UI decides whether that one may view the application (spark.acls.enable,
spark.ui.view.acls). It has none where spark.ui.enabled is false, and no dumps where spark.ui.threadDumpsEnabled is.
Spark takes an executor's dump at that moment by a call of the driver's (SparkContext.getExecutorThreadDump).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import requests

from airflow_kstream.clients.http import REFUSALS, http_errors, kerberos_session
from airflow_kstream.clients.whole_answer import limit_all_answers
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.logs.container_log import LoggedContainer, Process, Thread, ThreadDump, plain_frame

T = TypeVar("T")
DRIVER, _EXECUTOR = "driver", "executor "
# Bytes of one answer: a driver with a thousand threads sends 2 MB.
_MOST = 16 << 20


class SparkPages:
    """One running application's pages, read as one identity. All requests together take at most `within` seconds.

    Raises Denied: when this identity may not view the application. Raises NotFound: when it has no such page.
    Raises Unavailable: when the proxy or the driver doesn't answer, or answers with something else.
    """

    def __init__(self, resourcemanager: str, application: str, identity: Identity, tls: Tls, within: float) -> None:
        self._server, self._identity = resourcemanager, identity
        self._path = f"/proxy/{application}/api/v1/applications/{application}"
        self._session = kerberos_session(identity, tls, limited=False)
        limit_all_answers(self._session, within)

    def processes(self) -> tuple[Process, ...]:
        """Return the driver and the executors that live, as the driver sees them."""
        return self._ask("list the executors", "/executors", lambda body: tuple(_process(one) for one in body))

    def threads(self, process: Process) -> ThreadDump:
        path = f"/executors/{process.name.removeprefix(_EXECUTOR)}/threads"
        tried = f"take a thread dump of {process}"
        return ThreadDump(process, self._ask(tried, path, lambda body: tuple(_thread(one) for one in body)))

    def progress(self) -> str:
        """Return what Spark counts for the jobs that run: tasks, records and bytes, one line for each active stage.

        Executors send what their running tasks have counted with each heartbeat (spark.executor.heartbeatInterval, 10
        s), so the text is another one once any task has read or written something more, or ended.
        """
        ended = self._ask("count the tasks", "/executors", lambda body: tuple(sorted(map(_tasks_ended, body))))
        stages = self._active_stages()
        return "\n".join([*(f"executor {name}: {count} tasks ended" for name, count in ended), *stages.values()])

    def progress_of(self, query: str) -> tuple[str, frozenset[int]]:
        """Return what Spark counts for the running jobs of no other query, and the ids of their active stages.

        The description of a query's job has the query's id (StreamExecution.getBatchDescriptionString), also of those
        that its `foreachBatch` starts in the same thread.
        """
        jobs = self._ask("list the running jobs", "/jobs?status=running", lambda body: tuple(map(_job, body)))
        ours = [job for job in jobs if job.query in {"", query}]
        theirs = {stage for job in jobs if job not in ours for stage in job.stages}
        stages = {stage: counts for stage, counts in self._active_stages().items() if stage not in theirs}
        return "\n".join([*sorted(job.counts for job in ours), *stages.values()]), frozenset(stages)

    def properties(self) -> Mapping[str, str]:
        """Return the Spark properties of the application, those that Spark takes for secrets redacted."""
        return self._ask("read its properties", "/environment", lambda body: _pairs(body["sparkProperties"]))

    def environment(self) -> SparkEnvironment:
        """Return what the driver runs with."""
        return self._ask("read its environment", "/environment", _environment)

    def _active_stages(self) -> Mapping[int, str]:
        """Return what is counted for each active stage, by its id."""
        return self._ask(
            "list the active stages",
            "/stages?status=active",
            lambda body: {int(stage["stageId"]): _counts(stage) for stage in sorted(body, key=_stage_id)},
        )

    def close(self) -> None:
        self._session.close()

    def _ask(self, tried: str, path: str, understand: Callable[[Any], T]) -> T:
        context = {"tried": tried, "server": self._server, "principal": str(self._identity)}
        with (
            http_errors(tried, self._server, self._identity),
            self._session.get(self._server + self._path + path, allow_redirects=False, stream=True) as answer,
        ):
            body: bytes = answer.raw.read(_MOST, decode_content=True)
        if answer.status_code != 200 or "json" not in answer.headers.get("Content-Type", ""):
            raise _refusal(answer, context)
        try:
            return understand(json.loads(body))
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise Unavailable(f"its answer makes no sense ({type(error).__name__})", **context) from None


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


def _refusal(answer: requests.Response, context: Mapping[str, str]) -> KstreamError:
    """Return the error for what is none of Spark's JSON: the proxy redirects to its own page where no web UI is."""
    said = f"it answered {answer.status_code}"
    if answer.status_code in {200, 302, 303, 307}:
        return Unavailable(
            f"{said}, and nothing of Spark's: has the application its web UI (spark.ui.enabled)?", **context
        )
    return REFUSALS.get(answer.status_code, Unavailable)(said, **context)


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
