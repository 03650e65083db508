"""A YARN application as the ResourceManager reports it, and its containers as their NodeManagers do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any

from airflow_kstream.model.printable import storable
from airflow_kstream.model.secrets import without_secrets

_DIGITS = re.compile("[0-9]+")


class ApplicationState(StrEnum):
    NEW = "NEW"
    NEW_SAVING = "NEW_SAVING"
    SUBMITTED = "SUBMITTED"
    ACCEPTED = "ACCEPTED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    KILLED = "KILLED"

    @property
    def terminal(self) -> bool:
        return self in {ApplicationState.FINISHED, ApplicationState.FAILED, ApplicationState.KILLED}


@dataclass(frozen=True)
class Application:
    """An application at one moment. `succeeded` is the application's own finalStatus, not the state that YARN gave it.

    `logs_url` shows the container logs of its newest attempt. Times are the ResourceManager's, None if unknown.
    `lifetime_left` is what YARN's lifetime limit leaves it; None if it has no limit, or none is known: the caller may
    not view it, or the ResourceManager has no such limits (before Hadoop 2.9). `leader` is the host and port on which
    the process in its first container listens, as it told YARN; empty if that is not known.
    """

    id: str
    state: ApplicationState
    final_status: str
    user: str
    tags: frozenset[str]
    started: datetime | None
    finished: datetime | None
    diagnostics: str
    logs_url: str
    lifetime_left: timedelta | None = None
    type: str = ""
    """What its client called it, such as SPARK; empty if unknown."""
    leader: str = ""

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Return a key by which applications sort in the order of their submission.

        As text the ten thousandth of a ResourceManager comes before the thousand before it (ApplicationId pads to four
        digits).
        """
        return tuple(map(int, _DIGITS.findall(self.id)))

    @property
    def alive(self) -> bool:
        return not self.state.terminal

    @property
    def succeeded(self) -> bool:
        return self.final_status == "SUCCEEDED"

    @property
    def lasted(self) -> timedelta | None:
        """Return the time from its start to its end, None if either is unknown: both are the ResourceManager's."""
        return self.finished - self.started if self.started and self.finished else None

    @classmethod
    def from_json(cls, app: Mapping[str, Any]) -> Application:
        """Parse an `app` object of `/ws/v1/cluster/apps`. Its times are 0 if the caller may not view it."""
        return cls(
            id=app["id"],
            state=ApplicationState(app["state"]),
            final_status=app.get("finalStatus", "UNDEFINED"),
            user=app.get("user", ""),
            tags=frozenset(tag for tag in app.get("applicationTags", "").split(",") if tag),
            started=_moment(app.get("startedTime", 0)),
            finished=_moment(app.get("finishedTime", 0)),
            # It quotes the job's own errors, and goes into logs, XComs and the records of ends.
            diagnostics=storable(without_secrets(app.get("diagnostics", "").strip())),
            logs_url=app.get("amContainerLogs", ""),
            lifetime_left=_lifetime_left(app),
            type=app.get("applicationType", ""),
            leader=app.get("amRPCAddress", ""),
        )


def _moment(millis: int) -> datetime | None:
    return datetime.fromtimestamp(millis / 1000, UTC) if millis > 0 else None


def _lifetime_left(app: Mapping[str, Any]) -> timedelta | None:
    """Read `timeouts`, which both the list and the single application have (AppInfo); -1 stands for no limit."""
    limits = (app.get("timeouts") or {}).get("timeout") or []
    seconds = [int(limit["remainingTimeInSeconds"]) for limit in limits if limit.get("type") == "LIFETIME"]
    return timedelta(seconds=min(seconds)) if seconds and min(seconds) >= 0 else None


class NodeVerdict(StrEnum):
    """The verdict on an application's containers on one node.

    RESTARTED: its NodeManager started after the application and may not know the containers of its predecessor.
    Of one that can't be asked the ResourceManager's word counts. LOST: the node is none of the running ones. UNHEARD:
    it is, and nothing came from it since the application's end; nodes are LOST later than their ApplicationMasters, by
    a monitor of their own (NMLivelinessMonitor, AMLivelinessMonitor). UNREACHABLE: it has reported since then, and was
    told to end the application's containers with the answer.
    """

    COMPLETE = "all containers are complete"
    LIVE = "containers still run"
    RESTARTED = "its NodeManager was restarted"
    LOST = "the node is lost to YARN"
    UNHEARD = "YARN has not heard from the node since"
    UNREACHABLE = "its NodeManager can't be asked"


@dataclass(frozen=True)
class NodeReport:
    """A verdict on one node, given as `host:port` of its NodeManager's web server, with details for people."""

    node: str
    verdict: NodeVerdict
    detail: str = ""

    @property
    def cut_off(self) -> bool:
        """Return True if nobody has told the node that the application is over, as far as anybody knows."""
        return self.verdict in {NodeVerdict.LOST, NodeVerdict.UNHEARD}

    def __str__(self) -> str:
        return f"{self.node}: {self.verdict}{f' ({self.detail})' if self.detail else ''}"


@dataclass(frozen=True)
class Containers:
    """The reports on the nodes of one application. `executors` is None if their nodes are not known."""

    driver: NodeReport
    executors: tuple[NodeReport, ...] | None = None

    @property
    def reports(self) -> tuple[NodeReport, ...]:
        return (self.driver, *(self.executors or ()))

    def nodes(self, verdict: NodeVerdict) -> tuple[NodeReport, ...]:
        return tuple(report for report in self.reports if report.verdict is verdict)

    @property
    def complete(self) -> bool:
        """Return True if every container is known to be complete."""
        return self.executors is not None and len(self.nodes(NodeVerdict.COMPLETE)) == len(self.reports)
