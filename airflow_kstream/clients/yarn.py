"""The ResourceManager over REST: SPNEGO, client-side HA, and verified kills."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_kstream.clients.server_conf import served_conf
from airflow_kstream.clients.waiting import until
from airflow_kstream.clients.yarn_failover import ActiveResourceManager, ClusterInfo, NoSuchPage
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.clusters.queue import Queues
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.logs.container_log import LoggedContainer

if TYPE_CHECKING:
    from airflow_kstream.clients.yarn_rpc import ResourceManagerRpc


_LEAVE_OUT = "resourceRequests,appNodeLabelExpression,amNodeLabelExpression,resourceInfo"
_ALIVE = ",".join(state for state in ApplicationState if not state.terminal)
_KILL_EVERY = timedelta(seconds=0.5)
# ClusterUserInfo, and hadoop.http.staticuser.user: names for all who did not log in.
_NOBODY = frozenset({"UNKNOWN_USER", "dr.who"})
# RMWebServices.initForWritableEndpoints.
_WANTS_NO_PROOF = "its web server wants no proof of who asks (hadoop.http.authentication.type)"
_STATIC_USER = re.compile("static user|Unable to obtain user name, user not authenticated", re.IGNORECASE)
log = logging.getLogger(__name__)
_counter = itertools.count()
T = TypeVar("T")


@dataclass(frozen=True)
class ContainerPlace:
    """The node on which a container ran: its id, and the `host:port` of its NodeManager's web server."""

    node: str
    web: str


@dataclass(frozen=True)
class NodeStanding:
    """A node's state: RUNNING, UNHEALTHY, LOST, DECOMMISSIONED ... `checked` is when it last checked its own health, by
    its own clock in milliseconds, as its last heartbeat told: usually another value every two minutes
    (yarn.nodemanager.disk-health-checker.interval-ms). None if the ResourceManager doesn't tell."""

    state: str
    checked: int | None = None


def _no_rpc() -> ResourceManagerRpc:
    raise InvalidInput("the connection has no hadoop_conf_dir with its address")


class ResourceManager:
    """All ResourceManagers of one cluster as one, with one identity. Not safe for several threads at once.

    Raises Unavailable: when none, or more than one, is active, or the active one's answer is not YARN's JSON. That
    proves nothing about any application. `rpc` is the way for commands where their web server doesn't know who
    asks; the reading goes on over REST.
    """

    def __init__(
        self, addresses: tuple[str, ...], identity: Identity, tls: Tls, rpc: Callable[[], ResourceManagerRpc] = _no_rpc
    ) -> None:
        self._servers = ActiveResourceManager(addresses, identity, tls)
        self._identity = identity
        self._tls = tls
        self._make_rpc = rpc
        self._made_rpc: ResourceManagerRpc | None = None
        self._told_no_limits = False

    def info(self, address: str) -> ClusterInfo:
        """Return one ResourceManager's information about itself; a standby answers this too."""
        return self._servers.info(address)

    def active(self) -> str:
        """Return the address of the ACTIVE one. Raises Unavailable: when not exactly one reports as ACTIVE."""
        return self._servers.server().address

    def user(self) -> str | None:
        """Return this identity's short name by the ResourceManager's rules (hadoop.security.auth_to_local).

        None if the ResourceManager doesn't tell: an old one has no such page, and one whose pages need no login calls
        everybody by the same name.
        """
        try:
            return self._call("ask for our short name", "GET", "/ws/v1/cluster/userinfo", _requested_user)
        except (NotFound, Unavailable):
            return None

    @property
    def asks_who(self) -> bool:
        """Return whether the active one demanded a proof of who we are. Raises Unavailable: when none is active."""
        return self._servers.server().asks_who

    def way_to_stop(self) -> str:
        """Return in words how this identity can stop an application. Nothing is changed.

        Raises Denied: when the web server wants no proof of who asks, so that it refuses all commands, and the RPC
        refuses, too, or is not known. Raises Unavailable: when the RPC does not answer.
        """
        server = self._servers.server()
        if server.asks_who:
            return "over REST"
        try:
            self._rpc.prove()
        except KstreamError as error:
            kind = Unavailable if error.retryable else Denied
            why = f"{_WANTS_NO_PROOF}, and its RPC can't be used: {error.without_advice}"
            raise kind(why, tried="prove who we are", server=server.address, principal=str(self._identity)) from error
        return f"over the RPC of {self._rpc.servers}, because {_WANTS_NO_PROOF}"

    def confirm_absence(self, of: str, age: timedelta, settled: timedelta) -> None:
        """Make sure that an application whose id or tag is `of`, which the last answer lacked, is not in the cluster.

        `age` is how long ago it may have been submitted; `settled` is the time in which a new active ResourceManager's
        word about an older one proves nothing. See `ActiveResourceManager`.

        Raises Unavailable: when that can't be told now.
        """
        self._servers.confirm_absence(of, age, settled)

    def applications(self, tag: str) -> tuple[Application, ...]:
        """Return all applications with this tag that the ResourceManager still lists, alive and ended.

        A missing one is not proven to have ended: only the last thousand are kept in memory.
        """
        # Hadoop 3.4's optional cache of this call keeps an answer for 30 s; a varying limit bypasses it.
        params = {"applicationTags": tag, "deSelects": _LEAVE_OUT, "limit": 100_000 + next(_counter)}
        tried = f"list applications tagged {tag}"
        found = self._call(tried, "GET", "/ws/v1/cluster/apps", self._listed, params=params)
        self._servers.found([name for app in found for name in app.tags])
        return found

    def running_as(self, user: str) -> tuple[Application, ...]:
        """Return all applications of this user that live, whatever their tags, as far as our identity may view them."""
        params = {"user": user, "states": _ALIVE, "deSelects": _LEAVE_OUT, "limit": 100_000 + next(_counter)}
        return self._call(f"list what runs as {user}", "GET", "/ws/v1/cluster/apps", self._listed, params=params)

    def queues(self) -> Queues:
        """Return the queues of the scheduler. Raises Unavailable: also when its page is another version's."""
        return self._call("read the queues", "GET", "/ws/v1/cluster/scheduler", Queues.from_json)

    def queue_rights(self) -> Mapping[str, bool]:
        """Return for each queue whether our user may submit to it. Raises as `ResourceManagerRpc`.

        REST tells that to a queue's administrators alone, also of themselves (RMWebServices.checkUserAccessToQueue).
        """
        return self._rpc.queue_rights()

    def queue_of(self, application_id: str) -> str:
        """Return the queue in which it was placed: its path, or its last word."""
        path = f"/ws/v1/cluster/apps/{application_id}"
        return self._call(f"read the queue of {application_id}", "GET", path, lambda body: str(body["app"]["queue"]))

    def checks_rights(self) -> bool:
        """Return whether it says that it holds ACLs against a submission. Raises as `served_conf`."""
        conf = served_conf(self.active(), self._identity, self._tls).conf
        return (conf.get("yarn.acl.enable") or "").lower() == "true"

    def application(self, application_id: str) -> Application:
        path = f"/ws/v1/cluster/apps/{application_id}"
        app = self._call(f"read {application_id}", "GET", path, lambda body: self._app(body["app"]))
        self._servers.found([app.id])
        return app

    def am_container(self, application_id: str) -> str | None:
        """Return the container of the newest application attempt: the driver's, in cluster mode."""
        path = f"/ws/v1/cluster/apps/{application_id}/appattempts"
        return self._call(f"read the attempts of {application_id}", "GET", path, _driver_container)

    def driver_places(self, application_id: str) -> frozenset[ContainerPlace]:
        """Return where each attempt's driver ran, also after its end; none if none ever got a container."""
        path = f"/ws/v1/cluster/apps/{application_id}/appattempts"
        return self._call(f"read the attempts of {application_id}", "GET", path, _driver_places)

    def live_places(self, application_id: str) -> frozenset[ContainerPlace]:
        """Return where containers of the newest attempt run; none are listed once it has ended."""
        path = f"/ws/v1/cluster/apps/{application_id}/appattempts"
        attempt = self._call(f"read the attempts of {application_id}", "GET", path, _newest_attempt_id)
        if attempt is None:
            return frozenset()
        tried = f"read the containers of {application_id}"
        return self._call(tried, "GET", f"{path}/{attempt}/containers", _places)

    def live_containers(self, application_id: str) -> tuple[LoggedContainer, ...]:
        """Return the containers of the newest attempt that run; none are listed once it has ended."""
        path = f"/ws/v1/cluster/apps/{application_id}/appattempts"
        attempt = self._call(f"read the attempts of {application_id}", "GET", path, _newest_attempt_id)
        if attempt is None:
            return ()
        tried = f"read the containers of {application_id}"
        return self._call(tried, "GET", f"{path}/{attempt}/containers", _logged_containers)

    def node(self, node: str) -> NodeStanding:
        """Return how a node stands. Raises NotFound: if it is forgotten."""
        return self._call(f"read the state of node {node}", "GET", f"/ws/v1/cluster/nodes/{node}", _node_standing)

    def any_node(self) -> ContainerPlace | None:
        """Return a node that runs, with its NodeManager's web server; None if none does."""
        params = {"states": "RUNNING"}
        return self._call("list the nodes", "GET", "/ws/v1/cluster/nodes", _first_node, params=params)

    def running_nodes(self) -> int:
        """Return how many nodes run; none does for a while after the start of a whole cluster."""
        return self._call("count the nodes", "GET", "/ws/v1/cluster/metrics", _running_nodes)

    def time_since(self, moment: datetime) -> timedelta:
        """Return the time since a moment that the ResourceManager itself reported, by its own clock alone.

        Raises Unavailable: when it does not tell its time.
        """
        info = self.info(self.active())
        if info.age is None:
            raise self._servers.server().unavailable("read its clock", "its answer has no Date")
        return info.started + info.age - moment

    def signal_driver(self, application_id: str) -> str | None:
        """Send SIGTERM to the driver's container, and return its id; None if there is none."""
        container = self.am_container(application_id)
        if container is None:
            return None
        path = f"/ws/v1/cluster/containers/{container}/signal/GRACEFUL_SHUTDOWN"
        try:
            self._call(f"send SIGTERM to the driver of {application_id}", "POST", path, _nothing)
        except (Denied, NoSuchPage) as refusal:
            self._over_rpc(refusal).shut_down(container)
        return container

    def kill(self, application_id: str, diagnostics: str, wait: timedelta) -> Application:
        """Kill the application, and return it once the ResourceManager reports its end. Idempotent.

        Raises Denied: when this identity may not. Raises Unavailable: when it has not ended after `wait`.
        """
        tried, path = f"kill {application_id}", f"/ws/v1/cluster/apps/{application_id}/state"
        body = {"state": "KILLED", "diagnostics": diagnostics}

        def kill() -> Application | None:
            try:
                try:
                    self._call(tried, "PUT", path, _nothing, json=body)
                except (Denied, NoSuchPage) as refusal:
                    self._over_rpc(refusal).kill(application_id, diagnostics)
                app = self.application(application_id)
            except NotFound:
                # After a failover the new active one may not know it yet: that is not an end.
                return None
            return None if app.alive else app

        ended = until(kill, _KILL_EVERY, wait)
        if ended is None:
            message = f"its end is not confirmed after {format_duration(wait)}"
            raise self._servers.server().unavailable(tried, message)
        return ended

    def close(self) -> None:
        self._servers.close()
        if self._made_rpc:
            self._made_rpc.close()

    @property
    def _rpc(self) -> ResourceManagerRpc:
        self._made_rpc = self._made_rpc or self._make_rpc()
        return self._made_rpc

    def _over_rpc(self, refusal: KstreamError) -> ResourceManagerRpc:
        """Return the RPC if a web server that wants no proof has refused; what YARN's ACLs refuse stays refused.

        Raises the refusal otherwise.
        """
        if isinstance(refusal, Denied) and not _STATIC_USER.search(refusal.message):
            raise refusal
        try:
            return self._rpc
        except KstreamError as error:
            refusal.message = f"{refusal.message}; and its RPC can't be used: {error.message}"
            raise refusal from error

    def _listed(self, body: Mapping[str, Any]) -> tuple[Application, ...]:
        # Of no application it says {"apps": null} or {"apps": {}}; without that key the answer is somebody else's.
        return tuple(self._app(app) for app in (body["apps"] or {}).get("app", []))

    def _app(self, app: Mapping[str, Any]) -> Application:
        found = Application.from_json(app)
        if found.alive and found.started and "timeouts" not in app and not self._told_no_limits:
            self._told_no_limits = True
            log.warning("%s tells no lifetime limits: none is known for any stream", self.active())
        return found

    def _call(
        self, tried: str, method: str, path: str, understand: Callable[[Mapping[str, Any]], T], **options: Any
    ) -> T:
        """Send a request to the active one. If that fails, look up once more which one is active.

        A server that refuses may be a proxy in front of one that is gone: what YARN itself refuses stays refused.
        """
        if self._identity.do_as:
            options["params"] = {**options.get("params", {}), "doAs": self._identity.do_as}
        found_earlier = self._servers.known
        server = self._servers.server()
        try:
            return server.ask(tried, method, path, understand, **options)
        except (Unavailable, Denied) as error:
            self._servers.forget()
            if not found_earlier:
                raise
            active = self._servers.server()
            if active is server and isinstance(error, Denied):
                raise
            return active.ask(tried, method, path, understand, **options)


def _requested_user(body: Mapping[str, Any]) -> str | None:
    # Hadoop 3.3 has no outer object.
    user = str(body.get("clusterUserInfo", body)["requestedUser"])
    return None if user in _NOBODY else user


def _attempts(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list((body["appAttempts"] or {}).get("appAttempt", []))


def _newest_attempt(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return max(_attempts(body), key=lambda attempt: int(attempt["id"]), default={})


def _newest_attempt_id(body: Mapping[str, Any]) -> str | None:
    newest = _newest_attempt(body)
    return str(newest["appAttemptId"]) if newest else None


def _driver_container(body: Mapping[str, Any]) -> str | None:
    container = _newest_attempt(body).get("containerId")
    return str(container) if container else None


def _driver_places(body: Mapping[str, Any]) -> frozenset[ContainerPlace]:
    places = (_place(attempt["nodeId"], attempt["nodeHttpAddress"]) for attempt in _attempts(body))
    return frozenset(place for place in places if place)


def _places(body: Mapping[str, Any]) -> frozenset[ContainerPlace]:
    places = (_place(container["assignedNodeId"], container["nodeHttpAddress"]) for container in _containers(body))
    return frozenset(place for place in places if place)


def _logged_containers(body: Mapping[str, Any]) -> tuple[LoggedContainer, ...]:
    links = (LoggedContainer.of_link(str(container["logUrl"])) for container in _containers(body))
    return tuple(sorted((container for container in links if container), key=lambda container: container.id))


def _containers(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    # One container is not a list, and the outer object has come and gone between versions of Hadoop.
    listed = body.get("containers", body).get("container") or []
    return [listed] if isinstance(listed, Mapping) else list(listed)


def _place(node: str, web: str) -> ContainerPlace | None:
    return ContainerPlace(node, web.removeprefix("http://").removeprefix("https://")) if node and web else None


def _node_standing(body: Mapping[str, Any]) -> NodeStanding:
    return NodeStanding(str(body["node"]["state"]), body["node"].get("lastHealthUpdate"))


def _running_nodes(body: Mapping[str, Any]) -> int:
    return int(body["clusterMetrics"]["activeNodes"])


def _first_node(body: Mapping[str, Any]) -> ContainerPlace | None:
    nodes = (body["nodes"] or {}).get("node", [])
    return next((_place(node["id"], node["nodeHTTPAddress"]) for node in nodes), None)


def _nothing(body: Mapping[str, Any]) -> None:
    """Take any answer: the request was a command."""
