"""The containers of an ended application, as their NodeManagers report them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
