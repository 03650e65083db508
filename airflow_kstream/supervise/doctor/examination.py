"""The doctor's run: all facts of a cluster, and what the checks make of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from airflow_kstream.clients.kerberos.krb5_conf import libdefaults
from airflow_kstream.clients.waiting import at_most
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.cluster_facts import (
    ClusterFacts,
    HdfsFacts,
    Impersonation,
    KerberosFacts,
    NamedServers,
    ServerClock,
    ServerConfs,
    SparkClient,
    StreamFacts,
    known,
)
from airflow_kstream.model.clusters.hdfs_health import HdfsInventory
from airflow_kstream.model.errors import NotFound
from airflow_kstream.model.finding import DoctorReport, NotChecked
from airflow_kstream.model.streams.flink_job import APPLICATION_TYPE
from airflow_kstream.model.streams.generation import ALL_STREAMS_TAG, Claim
from airflow_kstream.model.streams.stream import EngineName, StreamSpec
from airflow_kstream.policy.doctor.checks import examine
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.doctor.keytabs import KeytabCheck, KeytabUser, check_keytabs, users_among
from airflow_kstream.supervise.doctor.server_facts import (
    keytab_facts,
    refusal,
    server_facts,
    service_names,
    spark_client,
    watchers_ticket,
)
from airflow_kstream.supervise.doctor.state_dir_use import state_dir_facts
from airflow_kstream.supervise.doctor.stream_facts import StreamExaminer, driver_facts
from airflow_kstream.supervise.doctor.try_ask import in_slices, try_ask
from airflow_kstream.supervise.streams.folder.registry import RegisteredStream, registered, stream_ids
from airflow_kstream.supervise.streams.folder.state_folder import StreamFolder
from airflow_kstream.supervise.streams.look.blocked import needed_by_all

_UNTRIED = NotChecked("whom the KDC lets in", "a look tries no key: `kstream doctor` does")
_UNLISTED = NotChecked(
    "the state_dir", "a look asks for what will happen to streams: `kstream doctor` tells how they are"
)
# Seconds that a look waits for any answer.
_PATIENCE = 10.0
log = logging.getLogger(__name__)


class _NoStream(NotFound):
    """The lack of the subject itself, and not of something that it needs."""


@dataclass(frozen=True)
class Subjects:
    """The subjects beside the cluster itself: all streams, the one of a name, or an application that is none."""

    stream: str = ""
    application: str = ""


def examine_cluster(cluster: Cluster, subjects: Subjects = Subjects(), client: str = "") -> DoctorReport:
    """Ask everybody, as the connection's principal, and apply all checks. Changes nothing.

    `client` is a spark-submit other than this host's usual one. A server that is away, or refuses, leaves checks
    undecided. Raises NotFound: when there is no such stream or application.
    """
    with open_session(cluster, cluster.watcher) as session:
        return examine(cluster_facts(session, subjects, client))


def foretell(session: ClusterSession, stream: str = "") -> Mapping[str, tuple[str, ...]]:
    """Return what each stream has to expect, or one of them: sentences with dates; none for who has nothing to.

    It is for looks that come often: no key is tried at the KDC, and no client is started. It raises nothing, and tells
    nothing of what it can't ask: a look must not fail for what is only foretold.
    """
    try:
        with at_most(_PATIENCE):
            return foretold(examine(cluster_facts(session, Subjects(stream), tries_keys=False)))
    except _NoStream:
        # Nothing of it was claimed yet.
        return {}
    except Exception:
        log.warning("What will go wrong could not be examined", exc_info=True)
        return {}


def foretold(report: DoctorReport) -> Mapping[str, tuple[str, ...]]:
    """Return the sentences of a report about what will go wrong, by stream; none for a stream that has none."""
    names = {name for finding in report.findings for name in finding.streams}
    return {name: sentences for name in sorted(names) if (sentences := report.foretells(name))}


def cluster_facts(
    session: ClusterSession, subjects: Subjects = Subjects(), client: str = "", *, tries_keys: bool = True
) -> ClusterFacts:
    """Return all facts; with `tries_keys` off, none that needs another login at the KDC, a NodeManager's answer, or a
    JVM, and none of how the state_dir is set up.

    Raises NotFound: when there is no such stream or application.
    """
    cluster, now = session.cluster, datetime.now(UTC)
    servers = server_facts(session)
    here = try_ask("a Spark client on this host", lambda: spark_client(cluster, client, starts=tries_keys))
    population = _population(session, subjects)
    streams = try_ask("the streams", lambda: _streams(session, population, here, now, asks_nodes=tries_keys))
    users = _keytab_users(session, population) if tries_keys else ()
    checks = try_ask("the keytabs", lambda: tuple(check_keytabs(cluster, known=users))) if tries_keys else _UNTRIED
    inventory = servers.inventory
    return ClusterFacts(
        now=now,
        named=NamedServers(
            resourcemanagers=cluster.resourcemanagers,
            namenodes=cluster.namenodes,
            nameservice=cluster.default_fs.removeprefix("hdfs://").rstrip("/"),
        ),
        confs=ServerConfs(
            namenode=servers.namenode, resourcemanager=servers.resourcemanager, nodemanager=servers.nodemanager
        ),
        hdfs=HdfsFacts(
            namenode_version=inventory.version if isinstance(inventory, HdfsInventory) else inventory,
            datanodes=inventory.datanodes if isinstance(inventory, HdfsInventory) else inventory,
            coded_blocks=inventory.coded_blocks if isinstance(inventory, HdfsInventory) else inventory,
            lifetimes=servers.lifetimes,
        ),
        kerberos=KerberosFacts(
            clocks=(*servers.clocks, *_kdc_clock(checks)),
            services=try_ask("the names of services", lambda: service_names(cluster)),
            ticket=try_ask("a ticket", lambda: watchers_ticket(cluster)) if tries_keys else _UNTRIED,
            has_keytab=cluster.watcher.keytab is not None,
            krb5=try_ask("krb5.conf", lambda: libdefaults(cluster.krb5_conf)),
            impersonations=try_ask("whom it may act for", lambda: _impersonations(cluster, known(streams)))
            if tries_keys
            else _UNTRIED,
            keytabs=checks if isinstance(checks, NotChecked) else keytab_facts(checks, users),
        ),
        client=here,
        streams=streams,
        state_dir=try_ask("the state_dir", lambda: state_dir_facts(session, known(population.streams)))
        if tries_keys
        else _UNLISTED,
        user=servers.user,
        stops=servers.stops,
        open_webs=servers.open_webs,
        unbounded=_unbounded(cluster, population, foretells=not tries_keys),
    )


def _unbounded(cluster: Cluster, population: _Population, *, foretells: bool) -> Allow | NotChecked | None:
    """Return what the streams need of a connection without `allow`; None for one that has it."""
    if cluster.allow is not None:
        return None
    if foretells:
        return _UNLISTED
    return try_ask("what the streams use", lambda: needed_by_all(known(population.streams), cluster))


@dataclass(frozen=True)
class _Population:
    """The streams to examine, with the applications that YARN lists, and an application that is not a stream."""

    streams: tuple[RegisteredStream, ...] | NotChecked
    listed: tuple[Application, ...] | NotChecked
    alone: Application | None = None


def _population(session: ClusterSession, subjects: Subjects) -> _Population:
    """Find the subjects. Raises NotFound: when the one that was named is not there."""
    streams = try_ask("the streams", lambda: _registered(session, subjects.stream))
    if subjects.application:
        app = session.yarn.application(subjects.application)
        its = () if isinstance(streams, NotChecked) else tuple(one for one in streams if _runs_as(one, app))
        return _Population(its, (app,), None if its else app)
    if subjects.stream and streams == ():
        raise _NoStream(f"{session.cluster.state_dir} has no such stream", tried=f"look at stream {subjects.stream}")
    return _Population(streams, try_ask("the applications", lambda: session.yarn.applications(ALL_STREAMS_TAG)))


def _runs_as(stream: RegisteredStream, app: Application) -> bool:
    newest = stream.newest
    return stream.stream.tag in app.tags or (isinstance(newest, Claim) and newest.adoption.application == app.id)


def _registered(session: ClusterSession, name: str) -> tuple[RegisteredStream, ...]:
    session.hdfs.status(session.cluster.state_dir)
    wanted = [stream for stream in stream_ids(session) if name in {"", stream.name}]
    read = in_slices(session, wanted, lambda own, streams: [registered(own, stream) for stream in streams])
    return tuple(_in_session(session, stream) for stream in read)


def _in_session(session: ClusterSession, stream: RegisteredStream) -> RegisteredStream:
    """Return the stream with a folder that is read through this session: the one that read its claim is closed."""
    return replace(stream, folder=StreamFolder(session, stream.stream))


def _streams(
    session: ClusterSession,
    population: _Population,
    client: SparkClient | NotChecked,
    now: datetime,
    *,
    asks_nodes: bool,
) -> tuple[StreamFacts, ...]:
    drivers = driver_facts(session, _running(population))
    listed = known(population.listed)

    def examined(own: ClusterSession, streams: Sequence[RegisteredStream]) -> list[StreamFacts]:
        examiner = StreamExaminer(own, client, listed, drivers, now, asks_nodes)
        return [examiner.facts(_in_session(own, stream)) for stream in streams]

    if population.alone:
        return (StreamExaminer(session, client, listed, drivers, now).application(population.alone),)
    return in_slices(session, known(population.streams), examined)


def _running(population: _Population) -> Iterator[str]:
    """Yield the ids of the subjects' applications that run, or may: others' drivers are not asked."""
    alone = population.alone
    if alone and alone.state is ApplicationState.RUNNING and alone.type != APPLICATION_TYPE:
        yield alone.id
    streams = [each for each in known(population.streams) if _has_driver(each.newest)]
    tags = {each.stream.tag for each in streams}
    running = (app for app in known(population.listed) if app.state is ApplicationState.RUNNING)
    yield from (app.id for app in running if tags & app.tags)
    newest = (each.newest for each in streams)
    # One that somebody else had submitted has no tag of ours.
    yield from (
        claim.adoption.application for claim in newest if isinstance(claim, Claim) and claim.adoption.application
    )


def _has_driver(newest: object) -> bool:
    """Return False for a stream whose application is known to have no driver of Spark's."""
    spec = newest.spec if isinstance(newest, Claim) else None
    return not isinstance(spec, StreamSpec) or spec.engine is EngineName.SPARK


def _keytab_users(session: ClusterSession, population: _Population) -> tuple[KeytabUser, ...]:
    """Return the streams that log in with a keytab; none where they can't be asked: the watcher's own is checked."""
    streams, listed = population.streams, population.listed
    users = try_ask("the users of keytabs", lambda: users_among(session, known(streams), known(listed))[0])
    return () if isinstance(users, NotChecked) else users


def _kdc_clock(checks: tuple[KeytabCheck, ...] | NotChecked) -> tuple[ServerClock, ...]:
    offsets = () if isinstance(checks, NotChecked) else (check.kdc.offset for check in checks if check.kdc)
    return tuple(ServerClock("the KDC", offset) for offset in offsets if offset is not None)[:1]


def _impersonations(cluster: Cluster, streams: tuple[StreamFacts, ...]) -> tuple[Impersonation, ...]:
    users = sorted({stream.proxied for stream in streams if stream.proxied})
    return tuple(Impersonation(user, "the cluster", _refusal(cluster, user)) for user in users)


def _refusal(cluster: Cluster, user: str) -> str:
    with open_session(cluster, replace(cluster.watcher, do_as=user)) as session:
        return refusal(session)
