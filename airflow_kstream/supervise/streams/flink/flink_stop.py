"""Stopping a Flink job with a savepoint, by its marker or on its JobManager's port; and what may not be killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from typing import Literal

from airflow_kstream.clients.flink_pages import FlinkPages, stop_with_savepoint
from airflow_kstream.clients.waiting import until
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.cluster import Tls
from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import Conflict, KstreamError, Unavailable
from airflow_kstream.model.streams.contract import started_marker, stop_marker, stopped_marker
from airflow_kstream.model.streams.flink_conf import CLIENT_CERTIFICATE, SSL, is_on
from airflow_kstream.model.streams.flink_contract import StopState, read_resume, resume_file
from airflow_kstream.model.streams.flink_job import job_of
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.model.streams.plan import Stop
from airflow_kstream.model.streams.stream import FlinkStreamSpec
from airflow_kstream.policy.streams.flink.flink_submission import savepoints_folder
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.flink.resume_points import checkpoints_of, newest_savepoint
from airflow_kstream.supervise.streams.folder.engine import StopResult
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder

# In seconds: all questions about one job.
_PAGES = 20.0
# How often a stop that failed is begun again while the JobManager remembers that it failed.
_TRIES = 20


@dataclass(frozen=True)
class FlinkStop:
    """The stop of one generation. What proves it is the savepoint on HDFS, below a folder that this job alone has.

    Whatever is lost on the way, an answer or this process, the next one finds the savepoint there.
    """

    session: ClusterSession
    spec: FlinkStreamSpec
    step: Stop
    may_go_on: Callable[[], bool]

    def run(self) -> StopResult | None:
        """Return the ended application; None if it is to be killed: its successor begins with its newest checkpoint.

        Raises Conflict: when it is left running, because its checkpoints would end with it.
        """
        claim = self._claim
        job = job_of(self._stream, claim)
        if job is None:
            raise self._left("the claim does not tell the job")
        survives = self._survives(claim, job)
        if self.step.hung and survives:
            # While a task hangs, no savepoint is completed either: waiting for the marker would be in vain.
            return None
        why: list[str] = []
        for means in (self._by_marker, self._by_port):
            if not self.may_go_on():
                if not survives:
                    # The caller asks `may_go_on` again, and would kill it if the freeze has ended meanwhile.
                    raise self._left("; ".join((*why, "the cluster is frozen")))
                return None
            try:
                if ended := means(job):
                    return self._ended(job, ended)
            except KstreamError as error:
                why.append(error.without_advice)
        if not survives:
            self._take_back()
            raise self._left("; ".join(why) or "nothing can stop it with a savepoint")
        return None

    def _take_back(self) -> None:
        """Remove the marker of a stop that nothing in the job will obey any longer: a person may want the job to go on.

        The jar makes one savepoint for each marker, so the next try needs a new one.
        """
        number, names = self.step.generation, self._folder.names()
        if started_marker(number) not in names or self._answer() is StopState.FAILED:
            self._folder.forget([resume_file(number), stop_marker(number)])

    def _left(self, why: str) -> Conflict:
        return Conflict(
            f"its checkpoints may be deleted at its end, and no savepoint was made: {why}. It is left running; "
            f"`kstream streams start {self.spec.name}` takes back an order to stop or restart it",
            tried=f"stop {self.step.application}",
        )

    @property
    def _stream(self) -> StreamId:
        return StreamId(self.spec.name, self.session.cluster.state_dir)

    @cached_property
    def _claim(self) -> Claim:
        return self._folder.claim_of(self.step.generation)

    @cached_property
    def _ran_with(self) -> FlinkStreamSpec:
        """The spec that it was submitted with, and not the one declared now."""
        spec = self._claim.spec
        return spec if isinstance(spec, FlinkStreamSpec) else self.spec

    @property
    def _folder(self) -> StreamFolder:
        return StreamFolder(self.session, self._stream)

    def _survives(self, claim: Claim, job: str) -> bool:
        """Return whether a kill loses no checkpoint. A job of ours keeps them by its settings, unless its code says
        otherwise."""
        told = self._checkpoints_survive(job)
        if not claim.submitted_by_us:
            return told is True
        return told is not False or not checkpoints_of(self.session.hdfs, self._ran_with, job)

    def _checkpoints_survive(self, job: str) -> bool | None:
        """Return whether the JobManager says that its job's checkpoints outlive it, None if it says nothing."""
        try:
            with closing(self._pages()) as pages:
                return pages.checkpointing(job).survives
        except KstreamError:
            return None

    def _by_marker(self, job: str) -> Application | None:
        """Wait for the jar in the JobManager, which obeys the marker that already stands there."""
        names = self._folder.names()
        if started_marker(self.step.generation) not in names:
            return None
        ended = until(self._ended_or_failed, self.spec.watch.look_every, self.spec.stop.marker_grace)
        return ended or None

    def _ended_or_failed(self) -> Application | Literal[False] | None:
        """Return the application once it has ended, False once its jar says that the stop failed."""
        app = self.session.yarn.application(self.step.application)
        if not app.alive:
            return app
        return False if self._answer() is StopState.FAILED else None

    def _answer(self) -> StopState | None:
        """Return what the jar says of the stop, None if it said nothing."""
        name = resume_file(self.step.generation)
        if name not in self._folder.names():
            return None
        return read_resume(self._folder.text(name), self.step.generation).state

    def _by_port(self, job: str) -> Application | None:
        app = self.session.yarn.application(self.step.application)
        if not app.alive:
            return app
        # A job that was adopted without them can only be stopped by what is declared now.
        reachable = self._ran_with.deploy.rest_ports or self.spec.deploy.rest_ports
        if not reachable or not app.leader:
            return None
        if self._answer() is StopState.ASKED:
            raise Unavailable("a savepoint is still being made for its marker", tried=f"stop {app.id}")
        tls = self._tls()
        trigger = next((one for one in _triggers(job) if not self._failure(job, one)), job)
        stop_with_savepoint(app.leader, job, dict(self._terms(job, trigger)), tls)
        wait, failed = self.spec.stop.marker_grace, partial(self._gone_or_failed, job, trigger)
        ended = until(failed, self.spec.watch.look_every, wait) or f"none was complete in {format_duration(wait)}"
        if isinstance(ended, str):
            raise Unavailable(ended, tried="make a savepoint through its port", server=app.leader)
        return ended

    def _tls(self) -> Tls | None:
        """Return how the JobManager's port is spoken to, None if in clear. Raises Conflict: when it wants a
        client's certificate."""
        conf = {**self.session.cluster.flink_conf, **self._ran_with.plain_conf}
        if not self._claim.submitted_by_us:
            # What its own submission said is nowhere else.
            with suppress(KstreamError), closing(self._pages()) as pages:
                conf |= pages.conf()
        if not is_on(conf, SSL):
            return None
        if is_on(conf, CLIENT_CERTIFICATE):
            why = f"{CLIENT_CERTIFICATE} is set, and kstream has no certificate"
            raise Conflict(why, tried=f"stop {self.step.application} on its port")
        return self.session.cluster.tls

    def _terms(self, job: str, trigger: str) -> Iterator[tuple[str, object]]:
        yield "targetDirectory", self.session.cluster.default_fs.rstrip("/") + savepoints_folder(self._ran_with, job)
        yield "drain", False
        yield "formatType", self._ran_with.savepoints.format.name
        # Known before, so that it is begun once, however often it is sent.
        yield "triggerId", trigger

    def _gone_or_failed(self, job: str, trigger: str) -> Application | str | None:
        app = self.session.yarn.application(self.step.application)
        return (self._failure(job, trigger) or None) if app.alive else app

    def _failure(self, job: str, trigger: str) -> str:
        """Return why a stop through the port failed, empty if it didn't or nobody tells."""
        try:
            with closing(self._pages()) as pages:
                return pages.savepoint_failure(job, trigger)
        except KstreamError:
            return ""

    def _ended(self, job: str, app: Application) -> StopResult:
        """Say what ended it. That it left a savepoint, after which nothing of it writes, is marked for everybody."""
        made = newest_savepoint(self.session.hdfs, self._ran_with, job, {self.session.state.user, app.user})
        if made is None or not app.succeeded:
            return StopResult(app, "it ended by itself")
        self._folder.mark(stopped_marker(self.step.generation))
        return StopResult(app, f"it stopped with savepoint {made.path}")

    def _pages(self) -> FlinkPages:
        yarn, app = self.session.yarn, self.step.application
        return FlinkPages(yarn.active(), app, self.session.identity, self.session.cluster.tls, _PAGES)


def _triggers(job: str) -> Iterator[str]:
    """Yield the ids of stops through the port: a JobManager begins none again under the id of one that failed."""
    yield job
    for number in range(1, _TRIES):
        yield sha256(f"{job}-{number}".encode()).hexdigest()[:32]
