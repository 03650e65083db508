"""Spark on YARN in cluster mode, through the client's spark-submit.

Its examiner reads what the driver's web UI shows of processes, threads and counts. What waits in Kafka for a query that
plans no batch tells whether it has no input or is blocked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Literal

from airflow_kstream.clients import spark
from airflow_kstream.clients.client_process import added_variables, check_conf_folder, check_secret_environment
from airflow_kstream.clients.spark_installations import client_defaults, installation, known_installation
from airflow_kstream.clients.spark_pages import DRIVER, SparkPages
from airflow_kstream.clients.waiting import until
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.queue import Needs
from airflow_kstream.model.errors import Denied, InvalidInput, KstreamError, NotFound, Unavailable
from airflow_kstream.model.logs.container_log import DumpRound, LoggedContainer, Process, Stillness, ThreadDump
from airflow_kstream.model.secrets import SecretRef, is_secret, secrets_in
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.contract import started_marker
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.model.streams.horizon import LaunchToken, TokenRound, UncountedToken, WorkerTokens
from airflow_kstream.model.streams.installations import SparkInstallation
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Stop
from airflow_kstream.model.streams.progress import CommittedBatch
from airflow_kstream.model.streams.resume import ResumePoint
from airflow_kstream.model.streams.spark_conf import STAGING, connection_conf_errors, staging_elsewhere
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.stream_policies import Backlog, backlog, planned_offsets, reads_more
from airflow_kstream.model.streams.submission import SparkDefaults, Submission, SubmissionOrder, SubmitOutcome
from airflow_kstream.policy.streams.pulse.heartbeat import rests
from airflow_kstream.policy.streams.restart.watchable import is_watchable
from airflow_kstream.policy.streams.spark.driver_error import last_error
from airflow_kstream.policy.streams.spark.hanging import Share, runs_others, stillness
from airflow_kstream.policy.streams.spark.spark_argv import with_client_defaults
from airflow_kstream.policy.streams.spark.spark_needs import layered_setting, limited, spark_needs
from airflow_kstream.policy.streams.spark.spark_stream import Helpers, stream_submission
from airflow_kstream.policy.streams.spark.spark_tokens import (
    renewal_ratio,
    rounds_in,
    token_filesystems,
    tokens_are_renewed,
    uncounted_tokens,
)
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.folder.engine import Adopted, EngineWords, Newest, StopResult, require_of_type
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder

log = logging.getLogger(__name__)

# By which a declaration may give its applications another type (Spark 3.1).
_TYPE = "spark.yarn.applicationType"
# Seconds that the list of executors, and one round of dumps, may take.
_LIST, _ROUND = 10.0, 10.0
# A round asks so many executors at most, the busiest first.
_EXECUTORS = 20
# YARN starts a further attempt some seconds after the end of one.
_ATTEMPT_EVERY = timedelta(seconds=0.5)


def spark_processes(session: ClusterSession, app: Application) -> tuple[Process, ...]:
    """Return what the driver tells; nothing if it doesn't."""
    try:
        with closing(_pages(session, app, _LIST)) as pages:
            return pages.processes()
    except KstreamError:
        return ()


class SparkExaminer:
    """The engine's `Examiner` for Spark. With the id of a `query`, what counts is that query's, if others run, too."""

    def __init__(self, session: ClusterSession, app: Application, query: str) -> None:
        self._session, self._app, self._query = session, app, query
        self._rounds: list[DumpRound] = []
        self._share: Share | None = None

    def dump(self) -> DumpRound:
        dumps: list[ThreadDump] = []
        missing: list[KstreamError] = []
        counts = ""
        with closing(_pages(self._session, self._app, _ROUND)) as pages:
            for number, process in enumerate(_asked(pages.processes())):
                try:
                    dumps.append(pages.threads(process))
                except KstreamError as error:
                    missing.append(error)
                if number == 0:
                    # Right after the driver's threads, which tell whether it runs other queries.
                    counts = self._counted(pages, dumps)
        self._rounds.append(DumpRound(tuple(dumps), counts, tuple(missing)))
        return self._rounds[-1]

    def stillness(self) -> Stillness:
        return stillness(self._rounds, self._share)

    def _counted(self, pages: SparkPages, dumps: Sequence[ThreadDump]) -> str:
        if not self._query or not runs_others(dumps, self._query):
            return pages.progress()
        counts, stages = pages.progress_of(self._query)
        self._share = Share(self._query, stages | (self._share.stages if self._share else frozenset()))
        return counts


def _pages(session: ClusterSession, app: Application, within: float) -> SparkPages:
    return SparkPages(session.yarn.active(), app.id, session.identity, session.cluster.tls, within)


def _asked(processes: Iterable[Process]) -> list[Process]:
    """Return the driver, and the executors that run most tasks."""
    busiest = sorted(processes, key=lambda process: (process.tasks is not None, -(process.tasks or 0), process.name))
    return [process for process in busiest[: _EXECUTORS + 1] if process.tasks != 0]


def with_backlog(session: ClusterSession, spec: StreamSpec, point: Checkpoint) -> Checkpoint:
    """Return the checkpoint with its backlog, if it has rested long enough for it to decide and brokers are declared.

    Whatever goes wrong while Kafka is asked is not an error of the look: the backlog is then unknown, and says why.
    """
    if spec.kafka.bootstrap_servers is None or not rests(spec.heartbeat, point, session.hdfs.now()):
        return point
    try:
        planned = planned_offsets(session.hdfs.read(f"{point.path}/offsets/{point.position.offset}"))
        if not planned:
            return point
        return replace(point, backlog=backlog(planned, session.topic_ends(spec.kafka, planned)))
    except (NotFound, InvalidInput):
        # A batch that was just purged, or a topic that was deleted: nothing waits that anybody could name.
        return point
    except KstreamError as error:
        return replace(point, backlog=Backlog(None, why=str(error)))
    except Exception as error:
        log.exception("What waits for %s in Kafka can't be told", spec.name)
        return replace(point, backlog=Backlog(None, why=f"asking for it failed: {error!r}"))


# Confs that become environment variables of the driver and of the executors.
_ENVIRONMENTS = ("spark.yarn.appMasterEnv.", "spark.executorEnv.")
# Shipped with PySpark jobs; referred to by path, because no module of the package imports them.
_JOBS = files("airflow_kstream") / "jobs"
DRIVER_HELPER = str(_JOBS / "kstream_driver.py")
# How a client of this host is looked at: it is asked, or nothing is started.
_Look = Callable[[str, Mapping[str, str]], SparkInstallation | None]
_HELPERS = Helpers(DRIVER_HELPER, str(_JOBS / "kstream_tokens.py"), str(_JOBS / "kstream_launcher.py"))
_OUT, _ERR = "stdout", "stderr"


class SparkEngine:
    """The engine for Structured Streaming. `defaults` returns the `spark` connection's part; it is called when needed.

    `spark_submit` is the client that a person names, which may be a path. It wins over the declaration's, and that
    one over the connection's.
    """

    words = EngineWords(DRIVER, (_OUT, _ERR), refreshed="PySpark jobs", worker="executor")

    def __init__(self, defaults: Callable[[], SparkDefaults] = SparkDefaults, spark_submit: str = "") -> None:
        self._read_defaults = defaults
        self._spark_submit = spark_submit

    def submission(self, order: SubmissionOrder) -> Submission:
        return self._submission(order, installation)

    def draft(self, order: SubmissionOrder) -> Submission:
        return self._submission(order, known_installation)

    def turn(self, within: timedelta) -> AbstractContextManager[None]:
        return nullcontext()

    def preflight(self, cluster: Cluster, spec: StreamSpec) -> None:
        check_conf_folder(cluster)
        check_secret_environment(cluster, _secret_variables(cluster, spec))
        self._check_staging(cluster, spec)
        for path in _local_files(spec):
            if not Path(path).exists():
                raise InvalidInput(f"{path} does not exist on this host", tried=f"check the files of {spec.name}")

    def needs(self, cluster: Cluster, spec: StreamSpec) -> Needs:
        client = self._client(cluster, spec.deploy)[0]
        defaults = client_defaults(client.installation)
        setting = layered_setting(spec.plain_conf, cluster.spark_conf, default=lambda key: defaults.get(key, ""))
        return spark_needs(spec, setting, client.queue, cluster.default_fs)

    def close_former(self, session: ClusterSession, observation: Observation) -> None:
        """Do nothing: its successor writes the same checkpoint."""

    def resume(self, session: ClusterSession, spec: StreamSpec, observation: Observation) -> ResumePoint | None:
        """Return None: a query finds its batch in its checkpoint."""
        if observation.start_word:
            raise InvalidInput(
                f"a Spark stream goes on where its checkpoint stands: run `kstream streams start {spec.name}` without "
                "--resume, --fresh and --allow-non-restored-state",
                tried=f"start {spec.name}",
            )
        return None

    def submit(
        self, submission: Submission, cluster: Cluster, ticket_cache: Path, folder: Path, timeout: timedelta
    ) -> SubmitOutcome:
        environment = spark.environment(cluster, ticket_cache, submission.binary)
        return spark.submit(submission, environment, folder, timeout)

    def adopted(self, session: ClusterSession, spec: StreamSpec, app: Application) -> Adopted:
        require_of_type(app, spec.plain_conf.get(_TYPE, "SPARK"), spec)
        return Adopted()

    def progress(self, session: ClusterSession, spec: StreamSpec, newest: Newest) -> tuple[Checkpoint, ...]:
        """Read the checkpoints. One on another filesystem is not known to move."""
        here = {path: is_watchable(path, session.cluster) for path in spec.checkpoints}
        return tuple(
            with_backlog(session, spec, session.hdfs.checkpoint(path)) if here[path] else Checkpoint(path, None)
            for path in here
        )

    def committed(self, session: ClusterSession, point: Checkpoint) -> CommittedBatch | None:
        number = point.newest_committed
        if number is None:
            return None
        text = session.hdfs.read(f"{point.path}/offsets/{number}")
        return CommittedBatch(number, point.offsets[number], planned_offsets(text), reads_more(text))

    def limited(self, spec: StreamSpec, *, beside_kafka: bool = False) -> str:
        return limited(spec, beside_kafka=beside_kafka)

    def stop_gracefully(
        self, session: ClusterSession, spec: StreamSpec, step: Stop, may_go_on: Callable[[], bool]
    ) -> StopResult | None:
        """Let a driver with the helper stop itself at the marker. A driver without it gets SIGTERM right after a
        commit, so that no batch is redone."""
        policy, every = spec.stop, spec.watch.look_every
        folder = StreamFolder(session, StreamId(spec.name, session.cluster.state_dir))
        if started_marker(step.generation) in folder.names():
            ended = _ended(session, step.application, every, policy.marker_grace)
            if ended:
                return StopResult(ended, "its driver stopped at the marker")
        until(lambda: self._quiescent(session, spec) or None, every, policy.quiescent_wait)
        if may_go_on() and (container := _signalled(session, step.application)):
            ended = _ended_with(session, step.application, container, policy.signal_grace)
            if ended:
                return StopResult(ended, "SIGTERM ended its driver")
        return None

    def orphans_live(self, cluster: Cluster, spec: StreamSpec) -> timedelta:
        """Return nothing beside `stop.silence`: executors exit when they lose their driver."""
        return timedelta()

    def leftovers(self, app: Application, cluster: Cluster, spec: StreamSpec) -> Iterable[str]:
        """Name the staging folder, which holds a copy of the keytab: the 250 ms that YARN leaves between SIGTERM and
        SIGKILL are too short for Spark to delete it (SPARK-17340)."""
        root = {**cluster.spark_conf, **spec.plain_conf}.get(STAGING)
        if root is None:
            yield f"/user/{app.user}/.sparkStaging/{app.id}"
            return
        # Since Spark 2.3 each user has a folder of their own in it (Client.submitApplication).
        yield f"{root.rstrip('/')}/{app.user}/.sparkStaging/{app.id}"
        yield f"{root.rstrip('/')}/.sparkStaging/{app.id}"

    def given_up_before(self, session: ClusterSession, spec: StreamSpec, newest: Newest) -> datetime | None:
        """Return None: which files a job writes is not declared."""
        return None

    def remove_superseded(self, session: ClusterSession, spec: StreamSpec, claims: Sequence[Claim]) -> Iterator[str]:
        """Delete nothing: a checkpoint is one for all generations."""
        return iter(())

    def renewal_ratio(self, cluster: Cluster, spec: StreamSpec) -> float:
        return renewal_ratio(cluster.spark_conf, spec.plain_conf)

    def tokens_are_renewed(self, cluster: Cluster, spec: StreamSpec) -> bool:
        return tokens_are_renewed(cluster.default_fs, cluster.spark_conf, spec.plain_conf)

    def worker_tokens(self, session: ClusterSession, newest: Newest, names: Collection[str]) -> WorkerTokens | None:
        return None

    def token_rounds(self, log: str) -> tuple[TokenRound, ...]:
        return rounds_in(log)

    def token_filesystems(self, cluster: Cluster, spec: StreamSpec) -> tuple[str, ...]:
        return token_filesystems(spec, cluster.spark_conf, cluster.default_fs)

    def uncounted_tokens(
        self, cluster: Cluster, spec: StreamSpec, tokens: tuple[LaunchToken, ...] = ()
    ) -> tuple[UncountedToken, ...]:
        return uncounted_tokens(spec, cluster.spark_conf, cluster.default_fs, tokens)

    def processes(self, session: ClusterSession, app: Application) -> tuple[Process, ...]:
        return spark_processes(session, app)

    def examiner(self, session: ClusterSession, app: Application, query: str) -> SparkExaminer:
        return SparkExaminer(session, app, query)

    def last_error(self, logs: Mapping[str, str]) -> str:
        return last_error(logs.get(_OUT, ""), logs.get(_ERR, ""))

    def _check_staging(self, cluster: Cluster, spec: StreamSpec) -> None:
        """Check the staging folder that the client's own defaults name; a declared one was checked before."""
        client = self._client(cluster, spec.deploy)[0]
        if STAGING in {**cluster.spark_conf, **spec.conf}:
            return
        named, binary = client_defaults(client.installation).get(STAGING, ""), client.binary
        if named and (errors := [*connection_conf_errors({STAGING: named})]):
            raise InvalidInput(f"spark-defaults.conf of {binary} {errors[0]}", tried=f"check the client of {spec.name}")
        if elsewhere := staging_elsewhere({STAGING: named}, cluster.default_fs):
            raise InvalidInput(
                f"spark-defaults.conf of {binary} puts {STAGING} on {elsewhere}; set it in conf to a path on "
                f"{cluster.default_fs}, on which the fence is used in place",
                tried=f"check the client of {spec.name}",
            )

    def _quiescent(self, session: ClusterSession, spec: StreamSpec) -> bool:
        return all(point.quiescent for point in self.progress(session, spec, Newest()))

    def _submission(self, order: SubmissionOrder, look: _Look) -> Submission:
        client, obstacle = self._client(order.cluster, order.spec.deploy, look)
        plan = stream_submission(order, client, _HELPERS)
        return replace(plan, obstacle=obstacle) if obstacle else with_client_defaults(plan, client.installation)

    def _client(self, cluster: Cluster, deploy: Deploy, look: _Look = installation) -> tuple[SparkDefaults, str]:
        """Return the client's settings and, if this host has no such client, why."""
        named = self._spark_submit or deploy.spark_submit or self._defaults.binary
        try:
            binary = spark.find_spark_submit(named)
        except InvalidInput as error:
            return replace(self._defaults, binary=named), f"this host has no Spark client: {error.message}"
        return replace(self._defaults, binary=binary, installation=look(binary, added_variables(cluster))), ""

    @cached_property
    def _defaults(self) -> SparkDefaults:
        return self._read_defaults()


def _ended(session: ClusterSession, application: str, every: timedelta, within: timedelta) -> Application | None:
    def ended_application() -> Application | None:
        app = session.yarn.application(application)
        return None if app.alive else app

    return until(ended_application, every, within)


def _ended_with(session: ClusterSession, application: str, container: str, within: timedelta) -> Application | None:
    """Wait for the application's end, but not beyond its driver's container.

    YARN answers the end of a driver with another attempt, where it has any left: the kill has to come before that one
    works.
    """

    def ended_or_followed() -> Application | Literal[False] | None:
        app = session.yarn.application(application)
        if not app.alive:
            return app
        link = LoggedContainer.of_link(app.logs_url)
        if link and link.id == container:
            return None
        with suppress(NotFound):
            return None if session.yarn.am_container(application) == container else False
        return None

    return until(ended_or_followed, _ATTEMPT_EVERY, within) or None


def _signalled(session: ClusterSession, application: str) -> str | None:
    """Signal the driver, and return its container if that worked. Whatever YARN answers, the kill can follow.

    It answers 500 for a container that it lacks, as after a failover (ClientRMService.signalToContainer).
    """
    try:
        return session.yarn.signal_driver(application)
    except (Denied, NotFound, Unavailable):
        return None


def _secret_variables(cluster: Cluster, spec: StreamSpec) -> list[str]:
    """Return the names of the containers' environment variables that hold a secret of the stream or its connection."""
    ours = {f"{_ENVIRONMENTS[0]}{name}": value for name, value in spec.deploy.environment.items()} | {**spec.conf}
    secret = [key for key, value in ours.items() if isinstance(value, SecretRef)]
    secret += [key for key, value in cluster.spark_conf.items() if is_secret(key) and secrets_in(key, value)]
    return sorted({key.rpartition(".")[2] for key in secret if key.startswith(_ENVIRONMENTS)})


def _local_files(spec: StreamSpec) -> list[str]:
    deploy = spec.deploy
    named = [spec.application, *deploy.files, *deploy.jars, *deploy.py_files, *deploy.archives]
    return [path.partition("#")[0].removeprefix("file:") for path in named if _is_local(path)]


def _is_local(path: str) -> bool:
    return "://" not in path and not path.startswith("local:")
