"""YARN: applications on nodes as they truly are, and ResourceManagers as they report them over REST (RMWebServices).

To add a request, write a method of ResourceManager and name it in ROUTES.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from tests.simulation.virtual import EPOCH
from tests.simulation.wire import Reply, Request

TERMINAL = {"FINISHED", "FAILED", "KILLED"}
# yarn.nodemanager.disk-health-checker.interval-ms: a heartbeat tells when the node last checked itself.
_HEALTH_CHECK = 120.0


@dataclass
class Node:
    """A host of NodeManagers. Cut off from the ResourceManager at `cut_at`, its containers live on."""

    name: str
    cut_off: bool = False
    cut_at: float = 0.0
    state: str = "RUNNING"


@dataclass
class App:
    """An application. `started` and `finished` are true times; `hidden_until` is when it shows in a listing."""

    id: str
    user: str
    name: str
    tags: tuple[str, ...]
    node: Node
    submitted: float
    state: str = "ACCEPTED"
    final: str = "UNDEFINED"
    started: float = 0.0
    finished: float = 0.0
    diagnostics: str = ""
    hidden_until: float = 0.0

    @property
    def alive(self) -> bool:
        return self.state not in TERMINAL

    @property
    def container(self) -> str:
        return self.id.replace("application", "container") + "_01_000001"


@dataclass
class Yarn:
    """The truth about applications, which the ResourceManagers' state store keeps. `end` is what a kill does."""

    now: Callable[[], float]
    apps: dict[str, App] = field(default_factory=dict)
    active: ResourceManager | None = None
    on_kill: Callable[[App, str, str], None] = lambda app, diagnostics, program: None
    on_signal: Callable[[App, str, str], None] = lambda app, command, program: None

    def submit(self, user: str, name: str, tags: tuple[str, ...], node: Node, hidden: float = 0.0) -> App:
        number = f"application_{int(EPOCH)}_{len(self.apps) + 1:04d}"
        lowered = tuple(tag.lower() for tag in tags)
        self.apps[number] = App(number, user, name, lowered, node, self.now(), hidden_until=self.now() + hidden)
        return self.apps[number]

    def end(self, app: App, state: str, final: str, diagnostics: str) -> None:
        if app.alive:
            app.state, app.final, app.diagnostics, app.finished = state, final, diagnostics, self.now()

    @property
    def served(self) -> bool:
        return self.active is not None and not self.active.down and self.active.frozen_until <= self.now()


@dataclass
class ResourceManager:
    """One of a pair, with a clock `skew` seconds ahead. `started` is when it became active, or a process if it never
    was, by the true time.

    Deposed while frozen, it believes to be active until it learns better, with the applications of `remembered`.
    From its start until `recovered` it knows no application.
    """

    address: str
    yarn: Yarn
    skew: float = 0.0
    started: float = -30 * 86400.0
    recovered: float = 0.0
    down: bool = False
    frozen_until: float = 0.0
    remembered: dict[str, App] | None = None

    @property
    def acts(self) -> bool:
        return self.yarn.active is self or self.remembered is not None

    def remember(self) -> None:
        self.remembered = {number: replace(app) for number, app in self.yarn.apps.items()}

    def answer(self, request: Request) -> Reply:
        return dated(self._answer(request), self.yarn.now() + self.skew)

    def _answer(self, request: Request) -> Reply:
        for method, pattern, known, carry_out in ROUTES:
            match = re.fullmatch(pattern, request.path)
            if match and method == request.method:
                request.require_known("doAs", "user.name", *known)
                if not self.acts and carry_out is not ResourceManager.info:
                    return self._elsewhere(request)
                return carry_out(self, request, *match.groups())
        raise request.unknown()

    def info(self, request: Request) -> Reply:
        state = "ACTIVE" if self.acts else "STANDBY"
        return Reply(
            200,
            {
                "clusterInfo": {
                    "id": self._millis(self.started),
                    "startedOn": self._millis(self.started),
                    "state": "STARTED",
                    "haState": state,
                    "rmStateStoreName": "org.apache.hadoop.yarn.server.resourcemanager.recovery.ZKRMStateStore",
                    "resourceManagerVersion": "3.4.1",
                    "hadoopVersion": "3.4.1",
                    "haZooKeeperConnectionState": "CONNECTED",
                }
            },
        )

    def listing(self, request: Request) -> Reply:
        tags = {tag for tag in request.params.get("applicationTags", "").lower().split(",") if tag}
        states, user = set(filter(None, request.params.get("states", "").split(","))), request.params.get("user")
        asked = [
            app
            for app in self._known().values()
            if (not tags or tags & set(app.tags))
            and (not states or app.state in states)
            and (not user or app.user == user)
        ]
        shown = [self._json(app) for app in asked if app.hidden_until <= self.yarn.now()]
        return Reply(200, {"apps": {"app": shown} if shown else None})

    def one(self, request: Request, number: str) -> Reply:
        app = self._known().get(number)
        return Reply(200, {"app": self._json(app)}) if app else _unknown_app(number)

    def scheduler(self, request: Request) -> Reply:
        queue = {"queuePath": "root.default", "queueName": "default", "state": "RUNNING"}
        root = {"type": "capacityScheduler", "queueName": "root", "queues": {"queue": [queue]}}
        return Reply(200, {"scheduler": {"schedulerInfo": root}})

    def executors(self, request: Request, number: str, _: str) -> Reply:
        """Pass on what the driver tells of itself, if it runs."""
        app = self._known().get(number)
        if app is None or app.state != "RUNNING":
            return Reply(302, b"", {"Location": f"{self.address}/cluster/app/{number}"})
        logs = {
            "stdout": f"http://{app.node.name}:8042/node/containerlogs/{app.container}/{app.user}/stdout?start=-4096"
        }
        driver = {"id": "driver", "hostPort": f"{app.node.name}:41121", "activeTasks": 0, "executorLogs": logs}
        return Reply(200, [driver])

    def who_asks(self, request: Request) -> Reply:
        return Reply(200, {"clusterUserInfo": {"rmLoginUser": "yarn", "requestedUser": "streamer"}})

    def attempts(self, request: Request, number: str) -> Reply:
        app = self._known().get(number)
        if app is None:
            return _unknown_app(number)
        attempt = {
            "id": 1,
            "startTime": self._millis(app.submitted),
            "finishedTime": self._millis(app.finished) if app.finished else 0,
            "containerId": app.container,
            "nodeHttpAddress": f"{app.node.name}:8042",
            "nodeId": f"{app.node.name}:8041",
            "logsLink": f"http://{app.node.name}:8042/node/containerlogs/{app.container}/{app.user}",
            "appAttemptId": number.replace("application", "appattempt") + "_000001",
            "appAttemptState": "RUNNING" if app.state == "RUNNING" else "LAUNCHED" if app.alive else app.state,
        }
        return Reply(200, {"appAttempts": {"appAttempt": [attempt]}})

    def containers(self, request: Request, number: str, attempt: str) -> Reply:
        app = self._known().get(number)
        if app is None:
            return _unknown_app(number)
        container = {
            "containerId": app.container,
            "containerState": "RUNNING" if app.alive else "COMPLETE",
            "assignedNodeId": f"{app.node.name}:8041",
            "nodeHttpAddress": f"http://{app.node.name}:8042",
            "startedTime": self._millis(app.started),
            "finishedTime": self._millis(app.finished) if app.finished else 0,
            "containerExitStatus": 0,
        }
        return Reply(200, {"container": [container] if app.alive else []})

    def metrics(self, request: Request) -> Reply:
        return Reply(200, {"clusterMetrics": {"activeNodes": 1}})

    def nodes(self, request: Request) -> Reply:
        nodes = {app.node.name: app.node for app in self.yarn.apps.values()}
        return Reply(200, {"nodes": {"node": [self._node(node) for node in nodes.values()]}})

    def node(self, request: Request, number: str) -> Reply:
        found = [app.node for app in self.yarn.apps.values() if f"{app.node.name}:8041" == number]
        return Reply(200, {"node": self._node(found[0])}) if found else _refused(404, "NotFoundException", number)

    def state(self, request: Request, number: str) -> Reply:
        app = self._known().get(number)
        return Reply(200, {"state": app.state}) if app else _unknown_app(number)

    def set_state(self, request: Request, number: str) -> Reply:
        app = self._known().get(number)
        body = request.json()
        if app is None:
            return _unknown_app(number)
        if body.get("state") != "KILLED":
            return _refused(400, "BadRequestException", "Only 'KILLED' is allowed as a target state.")
        if not app.alive:
            return Reply(200, {"state": app.state})
        if app.user != "streamer":
            return _refused(403, "ForbiddenException", f"User streamer cannot perform operation MODIFY_APP on {number}")
        if self.remembered is None:
            # A deposed one can't write to the state store: nothing comes of its word.
            self.yarn.on_kill(app, str(body.get("diagnostics", "")), request.program)
        return Reply(202, {"state": app.state})

    def signal(self, request: Request, container: str, command: str) -> Reply:
        app = next((app for app in self._known().values() if app.container == container and app.alive), None)
        if app is None:
            return _refused(500, "YarnException", "Trying to signal an absent container")
        if app.user != "streamer":
            return _refused(403, "ForbiddenException", f"User streamer cannot perform operation MODIFY_APP on {app.id}")
        if self.remembered is None:
            self.yarn.on_signal(app, command, request.program)
        return Reply(200)

    def _node(self, node: Node) -> dict[str, Any]:
        heard = node.cut_at if node.cut_off else self.yarn.now()
        checked = int((EPOCH + heard - heard % _HEALTH_CHECK) * 1000)
        return {"id": f"{node.name}:8041", "nodeHostName": node.name, "state": node.state, "lastHealthUpdate": checked}

    def _known(self) -> Mapping[str, App]:
        if self.remembered is not None:
            return self.remembered
        return {} if self.yarn.now() < self.recovered else self.yarn.apps

    def _elsewhere(self, request: Request) -> Reply:
        active = self.yarn.active
        body = f"This is standby RM. The redirect url is: {request.path}".encode()
        headers = {"Content-Type": "text/plain;charset=utf-8"}
        if active is None:
            return Reply(200, body, {**headers, "Refresh": f"3; url={request.path}"})
        return Reply(307, body, {**headers, "Location": f"{active.address}{request.path}"})

    def _millis(self, moment: float) -> int:
        return int((EPOCH + moment + self.skew) * 1000)

    def _json(self, app: App) -> dict[str, Any]:
        return {
            "id": app.id,
            "user": app.user,
            "name": app.name,
            "queue": "default",
            "state": app.state,
            "finalStatus": app.final,
            "progress": 10.0,
            "trackingUI": "ApplicationMaster",
            "diagnostics": app.diagnostics,
            "clusterId": int(EPOCH),
            "applicationType": "SPARK",
            "applicationTags": ",".join(app.tags),
            "priority": 0,
            "startedTime": self._millis(app.submitted),
            "finishedTime": self._millis(app.finished) if app.finished else 0,
            "amContainerLogs": f"http://{app.node.name}:8042/node/containerlogs/{app.container}/{app.user}",
            "amHostHttpAddress": f"{app.node.name}:8042",
            "timeouts": {"timeout": [{"type": "LIFETIME", "expiryTime": "UNLIMITED", "remainingTimeInSeconds": -1}]},
        }


_API = "/ws/v1/cluster"
_APP, _CONTAINER, _ATTEMPT = r"(application_\d+_\d+)", r"(container_\w+)", r"(appattempt_\w+)"
_LISTED = ("applicationTags", "deSelects", "limit", "states", "user")
# Method, path, parameters, and what answers.
ROUTES: tuple[tuple[str, str, tuple[str, ...], Callable[..., Reply]], ...] = (
    ("GET", f"{_API}/info", (), ResourceManager.info),
    ("GET", f"{_API}/apps", _LISTED, ResourceManager.listing),
    ("GET", f"{_API}/apps/{_APP}", (), ResourceManager.one),
    ("GET", f"{_API}/userinfo", (), ResourceManager.who_asks),
    ("GET", f"{_API}/scheduler", (), ResourceManager.scheduler),
    ("GET", f"/proxy/{_APP}/api/v1/applications/{_APP}/executors", (), ResourceManager.executors),
    ("GET", f"{_API}/apps/{_APP}/appattempts", (), ResourceManager.attempts),
    ("GET", f"{_API}/apps/{_APP}/appattempts/{_ATTEMPT}/containers", (), ResourceManager.containers),
    ("GET", f"{_API}/apps/{_APP}/state", (), ResourceManager.state),
    ("PUT", f"{_API}/apps/{_APP}/state", (), ResourceManager.set_state),
    ("POST", f"{_API}/containers/{_CONTAINER}/signal/(\\w+)", (), ResourceManager.signal),
    ("GET", f"{_API}/metrics", (), ResourceManager.metrics),
    ("GET", f"{_API}/nodes", ("states",), ResourceManager.nodes),
    ("GET", f"{_API}/nodes/([^/]+)", (), ResourceManager.node),
)


@dataclass
class NodeManager:
    """The NodeManager of a node, which alone sees processes: `runs` tells whether an application's driver is one.

    It learns from the ResourceManager that an application is over. Nobody reaches it behind a `firewall`, or while its
    node is cut off.
    """

    node: Node
    yarn: Yarn
    runs: Callable[[str], bool]
    firewall: bool
    frozen_until: float = 0.0

    @property
    def down(self) -> bool:
        return self.firewall or self.node.cut_off

    @down.setter
    def down(self, down: bool) -> None:
        """Leave it as it is: its node alone decides."""

    @property
    def address(self) -> str:
        return f"http://{self.node.name}:8042"

    def answer(self, request: Request) -> Reply:
        request.require_known("doAs", "user.name", "size")
        if (request.method, request.path) == ("GET", f"{_NODE_API}/info"):
            started = int((EPOCH - 30 * 86400.0) * 1000)
            return dated(Reply(200, {"nodeInfo": {"nmStartupTime": started}}), self.yarn.now())
        if log := re.fullmatch(f"{_NODE_API}/containers/{_CONTAINER}/logs/(\\w+)", request.path):
            return dated(self._log(*log.groups()), self.yarn.now())
        match = re.fullmatch(f"{_NODE_API}/apps/{_APP}", request.path)
        if match is None or request.method != "GET":
            raise request.unknown()
        return dated(self._application(match[1]), self.yarn.now())

    def _log(self, container: str, name: str) -> Reply:
        """Return a line while the application lives. It aggregates logs at once then, and HDFS loses them: what a
        history tries are the times and the order."""
        if not any(
            app.container == container and app.node is self.node and app.alive for app in self.yarn.apps.values()
        ):
            return Reply(404, {})
        end = f"End of LogType:{name}\n{'*' * 40}\n"
        return Reply(200, f"LogLength:6\nLogContents:\nwords\n{end}".encode(), {"Content-Type": "text/plain"})

    def _application(self, number: str) -> Reply:
        app, runs = self.yarn.apps.get(number), self.runs(number)
        if app is None or app.node is not self.node or not (app.alive or runs):
            return _refused(404, "NotFoundException", f"java.lang.Exception: app with id {number} not found")
        state = "RUNNING" if app.alive else "FINISHING_CONTAINERS_WAIT"
        return Reply(200, {"app": {"id": number, "state": state, "containerids": [app.container] if runs else []}})


_NODE_API = "/ws/v1/node"


def dated(reply: Reply, clock: float) -> Reply:
    """Return the reply with the Date of a server whose clock shows so many seconds."""
    date = format_datetime(datetime.fromtimestamp(int(EPOCH + clock), UTC), usegmt=True)
    return Reply(reply.status, reply.body, {**reply.headers, "Date": date})


def _unknown_app(number: str) -> Reply:
    return _refused(404, "NotFoundException", f"java.lang.Exception: app with id: {number} not found")


def _refused(status: int, java: str, message: str) -> Reply:
    body = {"exception": java, "javaClassName": f"org.apache.hadoop.yarn.webapp.{java}", "message": message}
    return Reply(status, {"RemoteException": body})
