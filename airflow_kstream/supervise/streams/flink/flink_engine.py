"""Flink on YARN in application mode, through the client's own command line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from pathlib import Path

from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.clusters.queue import Needs
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.logs.container_log import Process
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.model.streams.horizon import LaunchToken, TokenRound, UncountedToken, WorkerTokens
from airflow_kstream.model.streams.plan import Stop
from airflow_kstream.model.streams.progress import CommittedBatch
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.submission import Submission, SubmissionOrder, SubmitOutcome
from airflow_kstream.policy.streams.flink.flink_tokens import renewal_ratio, token_filesystems, uncounted_tokens
from airflow_kstream.policy.streams.flink.jobmanager_log import last_error, token_rounds
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.streams.flink.flink_keeper import flink_worker_tokens
from airflow_kstream.supervise.streams.flink.flink_progress import LOG, flink_progress
from airflow_kstream.supervise.streams.folder.engine import EngineWords, Examiner, Newest, StopResult


class FlinkEngine:
    """The engine for Flink jobs: one application, one JobManager, one job."""

    words = EngineWords("JobManager", ("jobmanager.out", "jobmanager.err", "jobmanager.log"), refreshed="Flink jobs")

    def submission(self, order: SubmissionOrder) -> Submission:
        return Submission("flink", (), obstacle="this release does not submit Flink jobs")

    def draft(self, order: SubmissionOrder) -> Submission:
        return self.submission(order)

    def preflight(self, cluster: Cluster, spec: StreamSpec) -> None:
        raise InvalidInput("this release does not submit Flink jobs", tried=f"check the client of {spec.name}")

    def needs(self, cluster: Cluster, spec: StreamSpec) -> Needs:
        return Needs(spec.deploy.queue or "default", bool(spec.deploy.queue), {}, files=(), stops_itself=False)

    def submit(
        self, submission: Submission, cluster: Cluster, ticket_cache: Path, folder: Path, timeout: timedelta
    ) -> SubmitOutcome:
        raise InvalidInput("this release does not submit Flink jobs", tried="submit")

    def progress(self, session: ClusterSession, spec: StreamSpec, newest: Newest) -> tuple[Checkpoint, ...]:
        stream, conf = StreamId(spec.name, session.cluster.state_dir), _conf(session.cluster, spec)
        return tuple(flink_progress(session, path, newest, stream, conf) for path in spec.checkpoints)

    def committed(self, session: ClusterSession, point: Checkpoint) -> CommittedBatch | None:
        return None

    def limited(self, spec: StreamSpec, *, beside_kafka: bool = False) -> str:
        return "a checkpoint of Flink's does not tell what its job has read"

    def stop_gracefully(
        self, session: ClusterSession, spec: StreamSpec, step: Stop, may_go_on: Callable[[], bool]
    ) -> StopResult | None:
        return None

    def leftovers(self, app: Application, cluster: Cluster, spec: StreamSpec) -> Iterable[str]:
        yield f"/user/{app.user}/.flink/{app.id}"

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
        return ()

    def examiner(self, session: ClusterSession, app: Application, query: str) -> Examiner:
        raise InvalidInput("this release takes no thread dumps of Flink jobs", tried=f"look into {app.id}")

    def last_error(self, logs: Mapping[str, str]) -> str:
        return last_error(logs, LOG)


def _conf(cluster: Cluster, spec: StreamSpec) -> Mapping[str, str]:
    """Return the settings of a job, as far as they are declared."""
    return spec.plain_conf
