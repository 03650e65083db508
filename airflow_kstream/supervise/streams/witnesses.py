"""What NodeManagers say about the containers of an ended application."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from airflow_kstream.clients.nodemanagers import NodeManager
from airflow_kstream.clients.yarn import ContainerPlace
from airflow_kstream.model.application import Application
from airflow_kstream.model.containers import Containers, NodeReport, NodeVerdict
from airflow_kstream.model.contract import stopped_marker
from airflow_kstream.model.errors import KstreamError, NotFound, Unavailable
from airflow_kstream.model.generation import DesiredState
from airflow_kstream.model.observation import Observation
from airflow_kstream.supervise.clusters.session import ClusterSession

# In these states YARN still hears from a node, so a NodeManager that can't be asked is behind a firewall.
_HEARD_FROM = {"RUNNING", "UNHEALTHY", "DECOMMISSIONING", "NEW"}


@dataclass
class Witnesses:
    """The NodeManagers of a stream's applications. It remembers what is final: containers that are complete stay so."""

    session: ClusterSession
    _places: dict[str, frozenset[ContainerPlace]] = field(default_factory=dict)
    _complete: dict[tuple[str, str], NodeReport] = field(default_factory=dict)

    def remember_places(self, application_id: str) -> None:
        """Note where a living application's containers are: the ResourceManager forgets it with the end."""
        try:
            self._places[application_id] = self.session.yarn.live_places(application_id)
        except KstreamError:
            # The stop goes on: without this, the executors get `stop.silence` to notice that their driver is gone.
            self._places.pop(application_id, None)

    def asked(self, observation: Observation) -> Observation:
        """Return the observation with the reports on its newest application's nodes, if its death has to be proven."""
        app = observation.current
        needless = observation.desired.state is not DesiredState.RUNNING or observation.claim is None
        if needless or app is None or app.alive or stopped_marker(observation.generation) in observation.files:
            return observation
        return replace(observation, containers=self._containers(app))

    def _containers(self, app: Application) -> Containers | None:
        """Ask the driver's NodeManager, and those of its executors if they are known."""
        try:
            driver = self.session.yarn.driver_place(app.id)
        except Unavailable:
            raise
        except KstreamError:
            return None
        if driver is None:
            return None
        known = self._places.get(app.id)
        executors = (
            None if known is None else tuple(self._report(place, app) for place in sorted(known - {driver}, key=str))
        )
        return Containers(self._report(driver, app), executors)

    def _report(self, place: ContainerPlace, app: Application) -> NodeReport:
        key = (place.web, app.id)
        report = self._complete.get(key) or self._ask(place, app)
        if report.verdict is NodeVerdict.COMPLETE:
            self._complete[key] = report
        return report

    def _ask(self, place: ContainerPlace, app: Application) -> NodeReport:
        scheme = self.session.yarn.active().partition("://")[0]
        node = NodeManager(f"{scheme}://{place.web}", self.session.identity, self.session.cluster.tls)
        try:
            return self._verdict(node, place, app)
        except KstreamError as error:
            return self._unheard(place, error)
        finally:
            node.close()

    def _verdict(self, node: NodeManager, place: ContainerPlace, app: Application) -> NodeReport:
        found = node.application(app.id)
        if found and (found.containers or not found.finishing):
            return NodeReport(place.web, NodeVerdict.LIVE, ", ".join(found.containers))
        # A NodeManager that was killed leaves its containers alone, and its successor may know nothing of them.
        if app.started is None or node.uptime() <= self.session.yarn.time_since(app.started):
            return NodeReport(place.web, NodeVerdict.RESTARTED)
        return NodeReport(place.web, NodeVerdict.COMPLETE)

    def _unheard(self, place: ContainerPlace, error: KstreamError) -> NodeReport:
        try:
            state = self.session.yarn.node_state(place.node)
        except NotFound:
            state = "forgotten"
        verdict = NodeVerdict.UNREACHABLE if state in _HEARD_FROM else NodeVerdict.LOST
        return NodeReport(place.web, verdict, f"{state}; {error.message}")
