"""What NodeManagers tell of an ended application: whether each container is complete, and the error in its driver's
log.

Where they tell nothing of its containers, its outputs are looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.clients.hdfs.webhdfs import Contents
from airflow_kstream.clients.nodemanagers import NodeManager
from airflow_kstream.clients.yarn import ContainerPlace, NodeStanding
from airflow_kstream.model.clusters.application import Application, Containers, NodeReport, NodeVerdict
from airflow_kstream.model.errors import KstreamError, NotFound, Unavailable
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.streams.contract import stopped_marker
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.observation import Observation, OutputsLook
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.policy.streams.ends.death import only_silence_proves, silence_for
from airflow_kstream.policy.streams.ends.ends import log_is_asked
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.run import StreamRun

# Bytes of each file, and seconds for all: a restart waits for it. Spark prints an error in a foreachBatch as three
# nested stack traces, 28 kB in stdout and 60 kB in stderr, and the address that did not answer stands in the first.
_SIZE, _SECONDS = 100_000, 10.0

# Looks within the silence that is needed, after the one at its begin: each makes a NameNode walk the whole tree.
_LOOKS_AT_OUTPUTS = 4
# In these states YARN hears from a node, or has not missed it yet.
_RUNNING = {"RUNNING", "UNHEALTHY", "DECOMMISSIONING", "NEW"}
# Seconds of one look after which no further node is asked: a rack that is cut off must not keep a supervisor for hours.
_ONE_LOOK = 30.0
# The least known first: what one driver may still do is not outweighed by another's end.
_BY_DOUBT = (
    NodeVerdict.LIVE,
    NodeVerdict.LOST,
    NodeVerdict.UNHEARD,
    NodeVerdict.RESTARTED,
    NodeVerdict.UNREACHABLE,
    NodeVerdict.COMPLETE,
)


@dataclass
class Witnesses:
    """The NodeManagers of a stream's applications. It remembers what is final: containers that are complete stay so.

    It also remembers what YARN had heard from a node at its first look after the end: news since then have come from
    there. No two clocks are compared for that, and a node that is cut off brings none.
    """

    session: ClusterSession
    _places: dict[str, frozenset[ContainerPlace]] = field(default_factory=dict)
    _complete: dict[tuple[str, str], NodeReport] = field(default_factory=dict)
    _heard: dict[tuple[str, str], int | None] = field(default_factory=dict)
    _asked: dict[ContainerPlace, float] = field(default_factory=dict)

    def remember_places(self, application_id: str) -> None:
        """Note where a living application's containers are, right before each means that ends it abruptly: the
        ResourceManager forgets it with the end, and executors come and go until then."""
        try:
            places = self.session.yarn.live_places(application_id)
        except KstreamError:
            # The stop goes on: without this, the executors get `stop.silence` to notice that their driver is gone.
            self._places.pop(application_id, None)
            return
        # A driver that lives is listed itself: an empty list is that of an application that has ended.
        if places:
            self._places[application_id] = self._places.get(application_id, frozenset()) | places

    def asked(self, observation: Observation) -> Observation:
        """Return the observation with the reports on its newest application's nodes, if its death has to be proven."""
        app = observation.current
        needless = observation.desired.state is not DesiredState.RUNNING or observation.claim is None
        if needless or app is None or app.alive or stopped_marker(observation.generation) in observation.files:
            return observation
        return replace(observation, yarn=replace(observation.yarn, containers=self._containers(app)))

    def _containers(self, app: Application) -> Containers | None:
        """Ask the NodeManagers of its drivers, and those of its executors if they are known.

        An adopted job may have had several attempts: YARN starts another one when it only lost the first.
        """
        try:
            drivers = self.session.yarn.driver_places(app.id)
        except Unavailable:
            raise
        except KstreamError:
            return None
        if not drivers:
            return None
        ends, known = time.monotonic() + _ONE_LOOK, self._places.get(app.id)
        executors = None if known is None else self._executors(known - drivers, app, ends)
        return Containers(min(self._drivers(drivers, app), key=_doubt), executors)

    def _drivers(self, places: frozenset[ContainerPlace], app: Application) -> tuple[NodeReport, ...]:
        return tuple(self._report(place, app) for place in sorted(places, key=str))

    def _executors(self, places: frozenset[ContainerPlace], app: Application, ends: float) -> tuple[NodeReport, ...]:
        """Ask until this moment; those that wait for the longest time come first, so each is asked in its turn."""
        reports: dict[ContainerPlace, NodeReport] = {}
        for place in sorted(places, key=lambda place: (self._asked.get(place, 0.0), str(place))):
            if time.monotonic() < ends or (place.web, app.id) in self._complete:
                reports[place] = self._report(place, app)
            else:
                reports[place] = NodeReport(place.web, NodeVerdict.UNREACHABLE, "other nodes kept this look too long")
        return tuple(reports[place] for place in sorted(places, key=str))

    def _report(self, place: ContainerPlace, app: Application) -> NodeReport:
        key = (place.web, app.id)
        report = self._complete.get(key) or self._ask(place, app)
        if report.verdict is NodeVerdict.COMPLETE:
            self._complete[key] = report
        return report

    def _ask(self, place: ContainerPlace, app: Application) -> NodeReport:
        self._asked[place] = time.monotonic()
        scheme = self.session.yarn.active().partition("://")[0]
        node = NodeManager(f"{scheme}://{place.web}", self.session.identity, self.session.cluster.tls)
        try:
            return self._verdict(node, place, app)
        except KstreamError as error:
            return self._unanswered(place, app, error)
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

    def _unanswered(self, place: ContainerPlace, app: Application, error: KstreamError) -> NodeReport:
        try:
            node = self.session.yarn.node(place.node)
        except NotFound:
            return NodeReport(place.web, NodeVerdict.LOST, f"forgotten; {error.message}")
        verdict = self._heard_from(place, app, node) if node.state in _RUNNING else NodeVerdict.LOST
        return NodeReport(place.web, verdict, f"{node.state}; {error.message}")

    def _heard_from(self, place: ContainerPlace, app: Application, node: NodeStanding) -> NodeVerdict:
        news = node.checked != self._heard.setdefault((place.node, app.id), node.checked)
        return NodeVerdict.UNREACHABLE if news else NodeVerdict.UNHEARD


@dataclass
class SilentOutputs:
    """The outputs of a stream's newest generation, while silence alone can prove it dead.

    They are summed up at its begin, after each quarter of it, and at no other time.
    """

    run: StreamRun
    _generation: int = 0
    _sums: tuple[Contents | None, ...] = ()
    _look: OutputsLook | None = None
    _first: float = 0.0
    _last: float = 0.0

    def seen(self, observation: Observation) -> Observation:
        """Return the observation with a look at the outputs, if they take part in the proof."""
        claim = observation.claim
        spec = claim.spec if claim else None
        needless = observation.desired.state is not DesiredState.RUNNING or observation.any_alive
        if needless or not isinstance(spec, StreamSpec) or not spec.part_files:
            return observation
        if not only_silence_proves(observation):
            return observation
        # What the dead generation wrote counts, and not what is declared now.
        paths = tuple(path for path, _ in spec.part_files)
        outputs = self._outputs(observation.generation, paths, silence_for(self.run.spec, observation))
        return replace(observation, folder=replace(observation.folder, outputs=outputs))

    def _outputs(self, generation: int, paths: tuple[str, ...], needed: timedelta) -> OutputsLook:
        begun, known = time.monotonic(), self._look if self._generation == generation else None
        if known and not self._due(known, begun, needed):
            return known
        same = self._sums if known else ()
        self._generation, self._last = generation, begun
        try:
            sums = tuple(map(self._sum, paths))
        except KstreamError as error:
            self._sums, self._look = (), OutputsLook(paths, doubt=error.without_advice)
            return self._look
        if sums != same:
            self._sums, self._first = sums, time.monotonic()
        self._look = OutputsLook(paths, timedelta(seconds=max(begun - self._first, 0.0)))
        return self._look

    def _due(self, known: OutputsLook, now: float, needed: timedelta) -> bool:
        """Return whether it is time for another look: a quarter of the silence has passed, or all of it."""
        if known.unchanged < needed <= timedelta(seconds=now - self._first) and not known.doubt:
            return True
        return now - self._last >= needed.total_seconds() / _LOOKS_AT_OUTPUTS

    def _sum(self, path: str) -> Contents | None:
        with suppress(NotFound):
            return self.run.session.hdfs.contents(path)
        return None


def _doubt(report: NodeReport) -> int:
    return _BY_DOUBT.index(report.verdict)


def with_log_error(run: StreamRun, observation: Observation, tell: Callable[[str], None]) -> Observation:
    """Return the observation with the error that the driver's log ends with, if nothing else names one.

    Costs up to ten seconds, once for each end. A log that can't be read is not an obstacle: `tell` gets the reason, and
    the end is recorded without it.
    """
    app = observation.current
    container = LoggedContainer.of_link(app.logs_url) if app and log_is_asked(observation) else None
    if container is None:
        return observation
    logs, names = ContainerLogs(run.cluster, run.session.identity), run.engine.words.logs
    try:
        tails = logs.tails(container, names, _SIZE, _SECONDS)
    except KstreamError as error:
        tell(f"the log of {container.id}, which may name the error, can't be read: {error.without_advice}")
        return observation
    log_error = run.engine.last_error({name: tail.text for name, tail in tails.items()})
    return replace(observation, driver=replace(observation.driver, log_error=log_error))
