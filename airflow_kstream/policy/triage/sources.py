"""The writers of logs: the container and the role of each section, from its title, its path and its first lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo

from airflow_kstream.model.log_scan.sections import LinePattern, Section
from airflow_kstream.model.logs.diagnosis import LogSource, Role
from airflow_kstream.model.logs.log_line import head_of, zone_of_offset

# The lines with which `yarn logs` and the pages of log servers begin another container's file.
CONTAINER_TITLE = LinePattern("~container", r"^Container: container_\w+ on ")
FILE_TITLE = LinePattern("~file", r"^LogType: ?[\w.-]+")
TITLES = (CONTAINER_TITLE, FILE_TITLE)
_CONTAINER = re.compile(r"container_(?:e\d+_)?\d+_\d+_\d+_\d+")
_FILE = re.compile(r"LogType: ?([\w.-]+)")
# Date.toString of the server's own zone, as `Log Upload Time` has it.
_UPLOADED = re.compile(r"^Log ?(?:Upload|LastModified) ?Time:.{0,80}?([+-]\d\d:?\d\d)\b", re.M)
# The first that matches counts: a driver quotes the command of its executors, and a client's stack traces the classes
# of the server that refused it.
_ROLES = (
    (
        Role.NAMENODE,
        re.compile(r"STARTUP_MSG: Starting NameNode| (?:INFO|WARN|ERROR|DEBUG) [\w.]*\.server\.namenode\."),
    ),
    (
        Role.DATANODE,
        re.compile(r"STARTUP_MSG: Starting DataNode| (?:INFO|WARN|ERROR|DEBUG) [\w.]*\.server\.datanode\."),
    ),
    (
        Role.RESOURCEMANAGER,
        re.compile(
            r"STARTUP_MSG: Starting ResourceManager| (?:INFO|WARN|ERROR|DEBUG) [\w.]*\.server\.resourcemanager\."
        ),
    ),
    (
        Role.NODEMANAGER,
        re.compile(r"STARTUP_MSG: Starting NodeManager| (?:INFO|WARN|ERROR|DEBUG) [\w.]*\.server\.nodemanager\."),
    ),
    (
        Role.DAEMON,
        re.compile(r"STARTUP_MSG: Starting |kafka\.server\.|zookeeper\.server\.|krb5kdc|hbase\.(?:master|region)"),
    ),
    (Role.JOBMANAGER, re.compile(r"ClusterEntry[Pp]oint\b|JobManagerRunner|\bJobMaster\b")),
    (Role.TASKMANAGER, re.compile(r"TaskExecutorRunner|TaskManagerRunner|taskexecutor\.TaskExecutor")),
    (
        Role.DRIVER,
        re.compile(
            r"\bApplicationMaster: |ApplicationAttemptId: |Running Spark version|\bSparkContext: |DAGScheduler: "
        ),
    ),
    (Role.EXECUTOR, re.compile(r"CoarseGrainedExecutorBackend|\bExecutor: (?:Starting|Running|Finished)")),
)
_NAMES = (
    (Role.NAMENODE, "namenode"),
    (Role.DATANODE, "datanode"),
    (Role.RESOURCEMANAGER, "resourcemanager"),
    (Role.NODEMANAGER, "nodemanager"),
    (Role.JOBMANAGER, "jobmanager"),
    (Role.TASKMANAGER, "taskmanager"),
    (Role.DRIVER, "driver"),
    (Role.EXECUTOR, "executor"),
    (Role.DAEMON, "journalnode"),
    (Role.DAEMON, "zookeeper"),
    (Role.DAEMON, "kafka.log"),
    (Role.DAEMON, "kdc.log"),
)
_MASTER = "_000001"


@dataclass(frozen=True)
class ScannedLog:
    """A file that was scanned: its name as a person knows it, and its sections."""

    name: str
    sections: Sequence[Section]


@dataclass(frozen=True)
class WrittenSection:
    """A section with its writer, the writer's zone if it is known, and the year for moments that lack one."""

    source: LogSource
    section: Section
    zone: tzinfo | None = None
    year: int | None = None


def written_sections(logs: Iterable[ScannedLog], zone: tzinfo | None) -> list[WrittenSection]:
    """Return all sections with their writers.

    `zone` is that of writers who don't say theirs: None is that of those who do if they agree, else UTC.
    """
    written = [each for log in logs for each in _of_log(log)]
    zones = {each.zone for each in written if each.zone}
    usual = zone or (zones.pop() if len(zones) == 1 else UTC)
    written = [replace(each, zone=each.zone or usual) for each in written]
    roles = _roles_of_containers(written)
    year = _year(written)
    return [replace(each, source=_known(each.source, roles), year=year) for each in written]


def masters_until(written: Iterable[WrittenSection]) -> datetime | None:
    """Return the moment of the last record of a driver or a JobManager, None if there is none with a moment."""
    masters = (each for each in written if each.source.role in {Role.DRIVER, Role.JOBMANAGER})
    heads = (head_of(each.section.tail, each.zone or UTC, each.year) for each in masters)
    return max((head.when for head in heads if head and head.when), default=None)


def _of_log(log: ScannedLog) -> Iterable[WrittenSection]:
    container = _first(_CONTAINER, log.name)
    for section in log.sections:
        container = _first(_CONTAINER, section.title) or container
        titled = _FILE.match(section.title)
        file = f"{log.name}#{container}/{titled[1]}" if titled and len(log.sections) > 1 else log.name
        role = _role(file, section.opening)
        yield WrittenSection(LogSource(file, container, role), section, _zone(section.opening))


def _role(file: str, opening: str) -> Role:
    named = next((role for role, name in _NAMES if name in file.lower()), None)
    return named or next((role for role, pattern in _ROLES if pattern.search(opening)), Role.UNKNOWN)


def _roles_of_containers(written: Iterable[WrittenSection]) -> Mapping[str, Role]:
    """A container's stdout has the role that its stderr tells."""
    return {
        each.source.container: each.source.role
        for each in written
        if each.source.container and each.source.role is not Role.UNKNOWN
    }


def _known(source: LogSource, roles: Mapping[str, Role]) -> LogSource:
    if source.role is not Role.UNKNOWN or not source.container:
        return source
    # An application's first container is its master's.
    master = Role.DRIVER if source.container.endswith(_MASTER) else Role.UNKNOWN
    return replace(source, role=roles.get(source.container, master))


def _zone(opening: str) -> tzinfo | None:
    found = _UPLOADED.search(opening)
    return zone_of_offset(found[1].replace(":", "")) if found else None


def _year(written: Iterable[WrittenSection]) -> int | None:
    """Return the year of the latest dated record: lines of the kernel have none."""
    heads = (head_of(each.section.tail, each.zone or UTC) for each in written)
    return max((head.when.year for head in heads if head and head.when), default=None)


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[0] if found else ""
