"""Flink on YARN in application mode, through the client's own command line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import cast

from airflow_kstream.clients import flink
from airflow_kstream.clients.client_process import check_conf_folder, check_secret_environment
from airflow_kstream.clients.flink_pages import JOB_MANAGER, TASK_MANAGER, FlinkPages
from airflow_kstream.clients.hadoop_conf import rpc_conf
from airflow_kstream.clients.hdfs.tokens import mint
from airflow_kstream.model.clusters.application import Application, ApplicationState
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.clusters.queue import Needs
from airflow_kstream.model.errors import Denied, InvalidInput
from airflow_kstream.model.kerberos.credentials_file import FreshToken, credentials_file
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.logs.container_log import Process
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.checkpoint_owner import OWNER_FOLDER
from airflow_kstream.model.streams.flink_conf import token_filesystems
from airflow_kstream.model.streams.flink_job import APPLICATION_TYPE, FlinkCheckpoints, job_of
from airflow_kstream.model.streams.generation import Claim, StreamId
from airflow_kstream.model.streams.horizon import LaunchToken, TokenRound, UncountedToken, WorkerTokens
from airflow_kstream.model.streams.installations import FlinkInstallation
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Stop
from airflow_kstream.model.streams.progress import CommittedBatch
from airflow_kstream.model.streams.resume import ResumePoint
from airflow_kstream.model.streams.stream import FlinkStreamSpec, StreamSpec
from airflow_kstream.model.streams.submission import Submission, SubmissionOrder, SubmitOutcome
from airflow_kstream.policy.streams.flink.flink_needs import flink_needs, heartbeat_timeout
from airflow_kstream.policy.streams.flink.flink_submission import flink_submission
from airflow_kstream.policy.streams.flink.flink_tokens import renewal_ratio, uncounted_tokens
from airflow_kstream.policy.streams.flink.jobmanager_log import last_error, token_rounds
from airflow_kstream.policy.streams.flink.resume import CLOCKS, given_up_before, superseded
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.flink.flink_adoption import adopted_job
from airflow_kstream.supervise.streams.flink.flink_examiner import FlinkExaminer, flink_processes
from airflow_kstream.supervise.streams.flink.flink_keeper import flink_worker_tokens
from airflow_kstream.supervise.streams.flink.flink_progress import CHECKPOINT, LOG, flink_progress
from airflow_kstream.supervise.streams.flink.flink_stop import FlinkStop
from airflow_kstream.supervise.streams.flink.resume_points import close_former, newest_savepoint, remove, resume
from airflow_kstream.supervise.streams.folder.engine import (
    Adopted,
    EngineWords,
    Examiner,
    Newest,
    StopResult,
    require_of_type,
)

_STAGING = "yarn.staging-directory"
_RENEWER = "yarn.resourcemanager.principal"
# Seconds that the JobManager's pages may take.
_PAGES_WITHIN = 20.0
_JAR = str(files("airflow_kstream") / "jobs/flink/kstream-flink.jar")


class FlinkEngine:
    """The engine for Flink jobs: one application, one JobManager, one job."""

    words = EngineWords(
        JOB_MANAGER,
        ("jobmanager.out", "jobmanager.err", "jobmanager.log"),
        refreshed="Flink jobs",
        worker=TASK_MANAGER,
        worker_logs=("taskmanager.out", "taskmanager.err", "taskmanager.log"),
    )

    def submission(self, order: SubmissionOrder) -> Submission:
        try:
            client = _client(order.cluster, order.spec)
        except InvalidInput as error:
            unknown = FlinkInstallation("FLINK_HOME", (1, 20), jar=_JAR)
            return replace(flink_submission(order, unknown), obstacle=error.message)
        return flink_submission(order, client)

    def draft(self, order: SubmissionOrder) -> Submission:
        """Build the same with all that is missing on this host at once."""
        plan, cluster = self.submission(order), order.cluster
        missing = dict.fromkeys((plan.obstacle, *_missing(cluster, order.spec)))
        return replace(plan, obstacle="; ".join(filter(None, missing)))

    def turn(self, within: timedelta) -> AbstractContextManager[None]:
        return flink.turn(within)

    def preflight(self, cluster: Cluster, spec: StreamSpec) -> None:
        check_conf_folder(cluster)
        flink.check_hadoop(cluster)
        secret = [key for key, value in spec.deploy.environment.items() if isinstance(value, SecretRef)]
        check_secret_environment(cluster, secret)
        for path in (spec.application, *spec.deploy.shipped):
            if "://" not in path and not Path(path).exists():
                raise InvalidInput(f"{path} does not exist on this host", tried=f"check the files of {spec.name}")
        _begins(spec)

    def needs(self, cluster: Cluster, spec: StreamSpec) -> Needs:
        return flink_needs(cluster, _flink(spec))

    def close_former(self, session: ClusterSession, observation: Observation) -> None:
        close_former(session, observation)

    def resume(self, session: ClusterSession, spec: StreamSpec, observation: Observation) -> ResumePoint | None:
        return resume(session, observation)

    def submit(
        self, submission: Submission, cluster: Cluster, ticket_cache: Path, folder: Path, timeout: timedelta
    ) -> SubmitOutcome:
        identity = submission.launched_as
        if identity is None:
            return flink.submit(submission, cluster, ticket_cache, folder, timeout)
        # The client gets none itself for a user whom it proxies.
        settings = {key: str(setting.value) for key, setting in submission.settings.items()}
        filesystems = token_filesystems(settings, cluster.default_fs)
        minted = tuple(self.launch_token(cluster, each, identity) for each in filesystems)
        outcome = flink.submit(submission, cluster, ticket_cache, folder, timeout, credentials_file(minted))
        return replace(outcome, tokens=tuple(map(_launched, minted)))

    def launch_token(self, cluster: Cluster, filesystem: str, identity: Identity) -> FreshToken:
        """Make a token of this filesystem for the user whom the client proxies; the ResourceManager renews it."""
        hadoop = rpc_conf(cluster)
        return mint(hadoop, filesystem, identity, hadoop.get(_RENEWER))

    def adopted(self, session: ClusterSession, spec: StreamSpec, app: Application) -> Adopted:
        require_of_type(app, APPLICATION_TYPE, spec)
        return adopted_job(session, spec, app)

    def progress(self, session: ClusterSession, spec: StreamSpec, newest: Newest) -> tuple[Checkpoint, ...]:
        stream, conf = StreamId(spec.name, session.cluster.state_dir), _conf(session.cluster, spec)
        # What an adopted job's JobManager said wins over the declaration: the job's own code may set it.
        conf |= newest.claim.adoption.settings if newest.claim else {}
        points = (flink_progress(session, path, newest, stream, conf) for path in spec.checkpoints)
        return tuple(_with_savepoint(session, point, newest, stream) for point in points)

    def committed(self, session: ClusterSession, point: Checkpoint) -> CommittedBatch | None:
        return None

    def limited(self, spec: StreamSpec, *, beside_kafka: bool = False) -> str:
        return f"{spec.name} is a job of Flink's, whose checkpoints don't tell what it has read"

    def stop_gracefully(
        self, session: ClusterSession, spec: StreamSpec, step: Stop, may_go_on: Callable[[], bool]
    ) -> StopResult | None:
        return FlinkStop(session, _flink(spec), step, may_go_on).run()

    def orphans_live(self, cluster: Cluster, spec: StreamSpec) -> timedelta:
        return heartbeat_timeout(_conf(cluster, spec))

    def leftovers(self, app: Application, cluster: Cluster, spec: StreamSpec) -> Iterable[str]:
        """Name what the client uploaded, with a copy of the keytab and the configuration in clear: a job that is killed
        leaves it there."""
        root = _conf(cluster, spec).get(_STAGING)
        yield f"{root.rstrip('/')}/.flink/{app.id}" if root else f"/user/{app.user}/.flink/{app.id}"

    def remove_superseded(self, session: ClusterSession, spec: StreamSpec, claims: Sequence[Claim]) -> Iterator[str]:
        stream, refused = StreamId(spec.name, session.cluster.state_dir), None
        for claim in superseded(stream, claims, _flink(spec).savepoints.keep):
            try:
                yield from remove(session.hdfs, _flink(cast(StreamSpec, claim.spec)), str(job_of(stream, claim)))
            except Denied as error:
                refused = error
        if refused:
            raise refused

    def given_up_before(self, session: ClusterSession, spec: StreamSpec, newest: Newest) -> datetime | None:
        stream = StreamId(spec.name, session.cluster.state_dir)
        return _given_up_before(session, spec, newest, stream) if isinstance(spec, FlinkStreamSpec) else None

    def renewal_ratio(self, cluster: Cluster, spec: StreamSpec) -> float:
        return renewal_ratio(_conf(cluster, spec))

    def tokens_are_renewed(self, cluster: Cluster, spec: StreamSpec) -> bool:
        """Return True: a supervisor names the ResourceManager as renewer."""
        return True

    def worker_tokens(self, session: ClusterSession, newest: Newest, names: Collection[str]) -> WorkerTokens | None:
        return flink_worker_tokens(session, newest, names)

    def token_rounds(self, log: str) -> tuple[TokenRound, ...]:
        return token_rounds(log)

    def token_filesystems(self, cluster: Cluster, spec: StreamSpec) -> tuple[str, ...]:
        return token_filesystems(_conf(cluster, spec), cluster.default_fs)

    def uncounted_tokens(
        self, cluster: Cluster, spec: StreamSpec, tokens: tuple[LaunchToken, ...] = ()
    ) -> tuple[UncountedToken, ...]:
        return uncounted_tokens(spec, _conf(cluster, spec), cluster.default_fs, tokens)

    def processes(self, session: ClusterSession, app: Application) -> tuple[Process, ...]:
        return flink_processes(session, app)

    def examiner(self, session: ClusterSession, app: Application, query: str) -> Examiner:
        return FlinkExaminer(session, app)

    def last_error(self, logs: Mapping[str, str]) -> str:
        return last_error(logs, LOG)


def _conf(cluster: Cluster, spec: StreamSpec) -> dict[str, str]:
    """Return the settings of a job, as far as the connection and the declaration have them."""
    return {**cluster.flink_conf, **spec.plain_conf}


def _with_savepoint(session: ClusterSession, point: Checkpoint, newest: Newest, stream: StreamId) -> Checkpoint:
    """Return the checkpoint, or the savepoint of a stop, which takes the checkpoints of its job away."""
    claim, app = newest.claim, newest.application
    job = job_of(stream, claim) if claim else None
    if claim is None or job is None or not isinstance(claim.spec, FlinkStreamSpec) or (app and app.alive):
        return point
    if plain_path(point.path) != plain_path(claim.spec.checkpoints[0]):
        return point
    owners = {claim.file.author, *([app.user] if app else [])}
    try:
        saved = newest_savepoint(session.hdfs, claim.spec, job, owners)
    except Denied:
        # Who only looks may not read what is in it; the job's own user may.
        return point
    if saved is None or saved.number < point.position.commit:
        return point
    times = {saved.number: saved.at}
    return replace(point, offsets=times, commits=times)


def _flink(spec: StreamSpec) -> FlinkStreamSpec:
    return cast(FlinkStreamSpec, spec)


def _client(cluster: Cluster, spec: StreamSpec) -> FlinkInstallation:
    """Return the Flink that submits the stream. Raises InvalidInput: when this host has none that can."""
    return replace(_installed(cluster, spec), renewer=_renewer(cluster), jar=_JAR)


def _installed(cluster: Cluster, spec: StreamSpec) -> FlinkInstallation:
    homes, name = cluster.client.flink_homes, _flink(spec).deploy.flink
    there = f"connection {cluster.name} has {', '.join(homes) or 'none'} in flink_homes"
    if name is None and len(homes) != 1:
        raise InvalidInput(f"deploy.flink does not say which Flink submits {spec.name}; {there}")
    if name is not None and name not in homes:
        raise InvalidInput(f"deploy.flink is {name!r}; {there}")
    return flink.installation(homes[name] if name else next(iter(homes.values())))


def _renewer(cluster: Cluster) -> str:
    if renewer := rpc_conf(cluster).get(_RENEWER):
        return renewer
    raise InvalidInput(
        f"{cluster.hadoop_conf_dir} has no {_RENEWER}: nobody could renew the tokens with which TaskManagers start"
    )


def _missing(cluster: Cluster, spec: StreamSpec) -> Iterator[str]:
    checks: tuple[Callable[[], object], ...] = (
        lambda: _installed(cluster, spec),
        lambda: _renewer(cluster),
        lambda: flink.check_hadoop(cluster),
        lambda: _begins(spec),
    )
    for check in checks:
        try:
            check()
        except InvalidInput as error:
            yield error.message


def _begins(spec: StreamSpec) -> None:
    """Check that somebody names the class with which the job begins; only a jar of this host is opened."""
    jar = Path(spec.application)
    if not _flink(spec).deploy.main_class and "://" not in spec.application and jar.is_file():
        flink.check_entry_class(jar)


def _launched(token: FreshToken) -> LaunchToken:
    read = token.read
    return LaunchToken(token.kind, token.service, read.issued, read.max_date, read.renewer)


def _given_up_before(
    session: ClusterSession, spec: FlinkStreamSpec, newest: Newest, stream: StreamId
) -> datetime | None:
    """Return the moment before which the job gave its part files up: one GET and four listings at most.

    Raises the errors of the JobManager's pages.
    """
    app, job = newest.application, job_of(stream, newest.claim) if newest.claim else None
    if app is None or app.state is not ApplicationState.RUNNING or job is None:
        return None
    where = session.yarn.active()
    with closing(FlinkPages(where, app.id, session.identity, session.cluster.tls, _PAGES_WITHIN)) as pages:
        seen = pages.checkpoints(job)
    (folder,) = map(plain_path, spec.checkpoints)
    kept = session.hdfs.matching(f"{folder}/{job}", lambda entry: bool(CHECKPOINT.fullmatch(entry.name)))
    retained = [int(entry.name.removeprefix("chk-")) for entry in kept]
    return given_up_before(seen, retained, others=_others(session, spec, f"{folder}/{job}", seen))


def _others(session: ClusterSession, spec: FlinkStreamSpec, own: str, seen: FlinkCheckpoints) -> bool:
    """Return whether checkpoints of another job, or savepoints that are older than the restart, lie beside its own."""
    folder, _, job = own.rpartition("/")
    if session.hdfs.matching(folder, lambda entry: entry.is_folder and entry.name not in {job, OWNER_FOLDER}):
        return True
    saved, resumed = spec.savepoints.folder, seen.resumed_from
    if saved is None or resumed is None:
        return False
    # The age of a folder is that of the newest in it, so the job's own is looked into.
    places = (plain_path(saved), f"{plain_path(saved)}/{job}")
    since = resumed.at + CLOCKS
    return any(
        session.hdfs.matching(place, lambda entry: entry.modified < since and entry.name != job) for place in places
    )
