"""The facts of streams: what their claims tell, what runs of them and with what, what its driver shows, and whether its
staging folders are there. Those of running applications must be, those of ended ones must not. The JobManager of a
running Flink job shows its configuration behind YARN's proxy, for two GETs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from airflow_kstream.clients.container_logs import ContainerLogs
from airflow_kstream.clients.flink_pages import FlinkPages
from airflow_kstream.clients.spark_installations import jar_versions
from airflow_kstream.clients.spark_pages import SparkEnvironment, SparkPages
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.cluster_facts import (
    DriverFacts,
    EffectiveConf,
    NotKnown,
    Property,
    SparkClient,
    StagingFacts,
    StreamConf,
    StreamCredentials,
    StreamFacts,
)
from airflow_kstream.model.errors import KstreamError, LogsClosed, NotFound
from airflow_kstream.model.finding import NotChecked
from airflow_kstream.model.logs.container_log import LoggedContainer
from airflow_kstream.model.streams.contract import pushes
from airflow_kstream.model.streams.flink_job import APPLICATION_TYPE, job_of
from airflow_kstream.model.streams.generation import Claim, DesiredState, StreamId
from airflow_kstream.model.streams.spark_conf import FIXED
from airflow_kstream.model.streams.stream import EngineName, ProxyUserCredentials, StreamSpec
from airflow_kstream.model.streams.submission import SparkDefaults
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.policy.streams.horizon.launch_tokens import issued_at, logs_end
from airflow_kstream.policy.streams.horizon.refresh import is_refreshed
from airflow_kstream.policy.streams.spark.spark_argv import client_settings
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.tokens import earliest_issue, learn_lifetimes
from airflow_kstream.supervise.doctor.server_facts import hadoop_of
from airflow_kstream.supervise.doctor.try_ask import try_ask, unanswered
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.registry import RegisteredStream
from airflow_kstream.supervise.streams.folder.tagged_applications import running_application
from airflow_kstream.supervise.streams.look.renewals import with_tokens
from airflow_kstream.supervise.streams.look.watched_claim import completed

# Seconds: a JobManager that hangs must not hold up the others for long.
_WITHIN = 5.0
_CONF, _SURVIVES = "the configuration of its JobManager", "whether its checkpoints survive it"
_READABLE = "whether its JobManager's log can be read"
_UNREAD = NotChecked(_READABLE, "a look asks no NodeManager: `kstream doctor` does")


def flink_conf_of(session: ClusterSession, app: Application | None, job: str | None, *, asks_nodes: bool) -> StreamConf:
    """Return what an application's job runs with; where `job` is None, it is the only one that the JobManager lists.

    Nothing raises: each fact may be missing by itself. Without `asks_nodes` no NodeManager is asked whether it shows
    the logs: that is a login to each, and one that hangs holds up the other streams.
    """
    if app is None:
        nobody = NotChecked(_CONF, "none runs")
        return StreamConf(conf=nobody, engine=EngineName.FLINK, survives=nobody, readable=nobody)
    server = try_ask("the active ResourceManager", session.yarn.active)
    if isinstance(server, NotChecked):
        return StreamConf(conf=server, engine=EngineName.FLINK, survives=server, readable=server)
    with closing(FlinkPages(server, app.id, session.identity, session.cluster.tls, _WITHIN)) as pages:
        conf = try_ask(_CONF, pages.conf)
        survives = try_ask(_SURVIVES, lambda: pages.checkpointing(job or _only_job(pages)).survives)
    return StreamConf(
        conf=conf,
        conf_from=f"the JobManager of {app.id}",
        engine=EngineName.FLINK,
        survives=survives,
        readable=try_ask(_READABLE, lambda: _may_read_logs(session, app)) if asks_nodes else _UNREAD,
    )


def _only_job(pages: FlinkPages) -> str:
    jobs = pages.jobs()
    if len(jobs) != 1:
        raise NotFound(f"its JobManager lists {len(jobs)} jobs")
    return jobs[0]


def _may_read_logs(session: ClusterSession, app: Application) -> bool:
    container = LoggedContainer.of_link(app.logs_url)
    if container is None:
        raise NotFound(f"YARN links to no log of {app.id}")
    try:
        ContainerLogs(session.cluster, session.identity).live_tails(container, ("jobmanager.log",), 1, _WITHIN)
    except LogsClosed:
        return False
    return True


# One text for all, so that identical failures become one line.
_DRIVERS_ENVIRONMENT = "the environment of its driver"
_TO_VIEW = "the right to view the application (spark.ui.view.acls)"
# Seconds, for one driver and for all: one that hangs must not hold up the others.
_ONE_DRIVER, _ALL_DRIVERS, _DRIVERS_AT_ONCE = 5.0, 10.0, 8


@dataclass
class StagingFolders:
    """The staging folders of a cluster's users, each listed once."""

    session: ClusterSession
    _listed: dict[str, frozenset[str] | NotChecked] = field(default_factory=dict)

    def of(
        self, spec: StreamSpec, app: Application | None, ended: Sequence[Application]
    ) -> tuple[bool | NotChecked, tuple[str, ...]]:
        """Return whether the running application's folder is there, and those that ended applications left."""
        there = self._is_there(spec, app) if app else True
        left = [folder for one in ended for folder in self._folders(spec, one) if self._has(folder) is True]
        return there, tuple(left)

    def _is_there(self, spec: StreamSpec, app: Application) -> bool | NotChecked:
        answers = [self._has(folder) for folder in self._folders(spec, app)]
        return True if True in answers else next((one for one in answers if isinstance(one, NotChecked)), False)

    def _folders(self, spec: StreamSpec, app: Application) -> tuple[str, ...]:
        return tuple(engine_of(spec).leftovers(app, self.session.cluster, spec))

    def _has(self, folder: str) -> bool | NotChecked:
        parent, _, name = folder.rpartition("/")
        if parent not in self._listed:
            right = f"the right to list {parent}"
            self._listed[parent] = try_ask(f"the folders in {parent}", lambda: self.session.hdfs.names(parent), right)
        names = self._listed[parent]
        return names if isinstance(names, NotChecked) else name in names


log = logging.getLogger(__name__)

_NO_DRIVER = NotChecked("its driver", "none runs")
_OBJECTS = re.compile(r"\b(s3[an]?)://")
_KEYTABS = ("spark.kerberos.keytab", "spark.yarn.keytab", "security.kerberos.login.keytab")
# Of the pauses between batches all but the longest tenth are usual.
_USUAL = 0.9


@dataclass
class StreamExaminer:
    """The examiner of one cluster's streams. `drivers` are those that run, by the id of their application.

    `asks_nodes` is whether it speaks to NodeManagers.
    """

    session: ClusterSession
    client: SparkClient | NotChecked
    listed: Sequence[Application]
    drivers: Mapping[str, DriverFacts | NotChecked]
    now: datetime
    asks_nodes: bool = True
    staging: StagingFolders = field(init=False)

    def __post_init__(self) -> None:
        self.staging = StagingFolders(self.session)

    def facts(self, registered: RegisteredStream) -> StreamFacts:
        """Return the facts of a stream. An unreadable claim, or one of a newer version, leaves its own unknown."""
        name, claim = registered.stream.name, registered.newest
        if claim is None:
            return StreamFacts(name)
        if isinstance(claim, KstreamError):
            return StreamFacts(name, running=unanswered(f"the claim of {name}", claim))
        spec = claim.spec
        if isinstance(spec, UnknownSpec):
            return StreamFacts(name, running=NotChecked(f"the declaration of {name}", claim.doubt))
        try:
            return self._claimed(registered, claim, spec)
        except NotKnown as missing:
            return StreamFacts(name, running=missing.fact)
        except KstreamError as error:
            return StreamFacts(name, running=unanswered(f"the facts of {name}", error))
        except Exception as error:
            # A defect of ours, or what only its job can have written, costs no other stream its facts.
            log.error("The facts of %s could not be found", name, exc_info=error)
            return StreamFacts(name, running=NotChecked(f"the facts of {name}", repr(error)))

    def application(self, app: Application) -> StreamFacts:
        """Return the facts of an application that nobody claimed, by what it runs with."""
        job = self._unclaimed_job(app)
        facts = StreamFacts(
            name=app.id,
            running=app.id if app.alive else "",
            supervised=False,
            user=app.user,
            started=app.started,
            limit_ends=self._limit(app),
            job=job,
        )
        if isinstance(job.conf, NotChecked):
            # Whether it has a keytab decides about almost everything.
            return replace(facts, running=job.conf) if app.alive else facts
        keytab = any(job.conf.get(key) for key in _KEYTABS)
        launch = try_ask("the end of its launch's tokens", lambda: self._unclaimed_end(app))
        end = launch if isinstance(launch, datetime) else None
        return replace(
            facts,
            credentials=replace(
                facts.credentials, renews_itself=keytab, tokens_end=None if keytab else end, launch_tokens_end=end
            ),
        )

    def _unclaimed_job(self, app: Application) -> StreamConf:
        if app.type == APPLICATION_TYPE:
            return flink_conf_of(self.session, app if app.alive else None, None, asks_nodes=self.asks_nodes)
        driver = self.drivers.get(app.id, _NO_DRIVER)
        conf = driver if isinstance(driver, NotChecked) else driver.properties
        stores = () if isinstance(conf, NotChecked) else _object_stores(conf.values())
        return StreamConf(conf=conf, conf_from=f"the environment of {app.id}", driver=driver, object_stores=stores)

    def _unclaimed_end(self, app: Application) -> datetime:
        session = self.session
        return earliest_issue(app, session.identity) + learn_lifetimes(session.hdfs, session.identity).max_lifetime

    def _claimed(self, registered: RegisteredStream, claim: Claim, spec: StreamSpec) -> StreamFacts:
        session = self.session
        app = running_application(session, registered.stream, claim, self.listed)
        claim = with_tokens(registered.folder, completed(session, claim, app), registered.names)
        staged, left = self.staging.of(spec, app, self._ended(registered))
        return StreamFacts(
            name=spec.name,
            running=app.id if app else "",
            held=registered.desired().state is DesiredState.HELD,
            user=app.user if app else "",
            proxied=spec.credentials.user if isinstance(spec.credentials, ProxyUserCredentials) else "",
            credentials=StreamCredentials(
                renews_itself=spec.credentials.renews_itself,
                refreshed=is_refreshed(claim),
                tokens_end=self._tokens_end(registered, claim, spec),
                issued=issued_at(claim, spec.restart),
                launch_tokens_end=self._launch_tokens_end(claim, spec),
                uncounted=self._uncounted(spec, claim),
            ),
            started=app.started if app else None,
            limit_ends=self._limit(app),
            job=self._job(registered.stream, spec, claim, app),
            pause=self._pause(spec) if app and not spec.credentials.renews_itself else None,
            staging=StagingFacts(staged=staged, unused_staging=left),
        )

    def _job(self, stream: StreamId, spec: StreamSpec, claim: Claim, app: Application | None) -> StreamConf:
        if spec.engine is EngineName.FLINK:
            return flink_conf_of(self.session, app, job_of(stream, claim), asks_nodes=self.asks_nodes)
        driver = self.drivers.get(app.id, _NO_DRIVER) if app else _NO_DRIVER
        return StreamConf(
            conf=self._conf(spec, claim, driver),
            conf_from=f"the environment of {driver.application}"
            if isinstance(driver, DriverFacts)
            else "its declaration",
            driver=driver,
            object_stores=_object_stores((*spec.arguments, *spec.plain_conf.values())),
        )

    def _ended(self, registered: RegisteredStream) -> tuple[Application, ...]:
        return tuple(app for app in self.listed if registered.stream.tag in app.tags and not app.alive)

    def _limit(self, app: Application | None) -> datetime | None:
        return self.now + app.lifetime_left if app and app.lifetime_left is not None else None

    def _renewed(self, spec: StreamSpec) -> bool:
        return engine_of(spec).tokens_are_renewed(self.session.cluster, spec)

    def _tokens_end(self, registered: RegisteredStream, claim: Claim, spec: StreamSpec) -> datetime | None:
        issue = issued_at(claim, spec.restart)
        lifetimes = claim.credentials.lifetimes
        if spec.credentials.renews_itself or issue is None or lifetimes is None:
            return None
        if confirmed := pushes(registered.names, claim.generation).confirmed:
            return confirmed.until
        return issue + (lifetimes.max_lifetime if self._renewed(spec) else lifetimes.renew_interval)

    def _launch_tokens_end(self, claim: Claim, spec: StreamSpec) -> datetime | None:
        return logs_end(spec.restart, claim, renewed=self._renewed(spec), privileged=False)

    def _uncounted(self, spec: StreamSpec, claim: Claim) -> tuple[str, ...]:
        found = engine_of(spec).uncounted_tokens(self.session.cluster, spec, claim.credentials.tokens or ())
        return tuple(each.service for each in found)

    def _conf(self, spec: StreamSpec, claim: Claim, driver: DriverFacts | NotChecked) -> Mapping[str, str] | NotChecked:
        """Return what the job runs with, as its driver tells it or, of one that we submitted, as it was declared."""
        if isinstance(driver, DriverFacts):
            return driver.properties
        if not claim.submitted_by_us:
            return driver
        client = self.client if isinstance(self.client, SparkClient) else None
        settings = client_settings(SparkDefaults(), spec.credentials)
        ours = {key: str(setting.value) for key, setting in settings.items()}
        fixed = {key: value for key, (value, _) in FIXED.items()}
        connection = self.session.cluster.spark_conf
        return {**(client.defaults if client else {}), **ours, **connection, **spec.plain_conf, **fixed}

    def _pause(self, spec: StreamSpec) -> timedelta | None:
        """Return the longest usual time between two batches of a query; None if no checkpoint tells, or it has none."""
        if spec.engine is not EngineName.SPARK:
            return None
        pauses = [pause for path in spec.checkpoints for pause in self._pauses(path)]
        return max(pauses, default=None)

    def _pauses(self, path: str) -> Iterator[timedelta]:
        try:
            intervals = sorted(self.session.hdfs.checkpoint(path).intervals())
        except KstreamError:
            return
        if intervals:
            yield intervals[int(len(intervals) * _USUAL)]


def _object_stores(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({found for text in texts for found in _OBJECTS.findall(text)}))


def driver_facts(session: ClusterSession, applications: Iterable[str]) -> Mapping[str, DriverFacts | NotChecked]:
    """Return what each application's driver shows behind the ResourceManager's proxy, by the application's id.

    Nothing raises: each may be missing by itself.
    """
    ids = list(applications)
    server = try_ask("the active ResourceManager", session.yarn.active) if ids else ""
    if isinstance(server, NotChecked):
        return dict.fromkeys(ids, server)
    threads = ThreadPoolExecutor(_DRIVERS_AT_ONCE)
    try:
        questions = {each: threads.submit(_driver, session, server, each) for each in ids}
        wait(questions.values(), timeout=_ALL_DRIVERS)
        return {each: _answer(question) for each, question in questions.items()}
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _answer(question: Future[DriverFacts | NotChecked]) -> DriverFacts | NotChecked:
    return (
        question.result()
        if question.done()
        else NotChecked(_DRIVERS_ENVIRONMENT, f"drivers did not answer within {_ALL_DRIVERS:.0f}s")
    )


def _driver(session: ClusterSession, server: str, application: str) -> DriverFacts | NotChecked:
    def read() -> DriverFacts:
        with closing(SparkPages(server, application, session.identity, session.cluster.tls, _ONE_DRIVER)) as pages:
            return _facts(application, pages.environment())

    return try_ask(_DRIVERS_ENVIRONMENT, read, _TO_VIEW)


def _facts(application: str, environment: SparkEnvironment) -> DriverFacts:
    jars, who = jar_versions(environment.jars), f"the driver of {application}"
    origin = f"the environment of {application}"
    conf: EffectiveConf | NotChecked = NotChecked("its Hadoop configuration", f"{who} does not show it: Spark 3 does")
    if environment.hadoop is not None:
        conf = EffectiveConf(who, {key: Property(value, origin) for key, value in environment.hadoop.items()})
    return DriverFacts(application, environment.properties, conf, jars, hadoop_of(jars, f"the class path of {who}"))
