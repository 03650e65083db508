"""Flink streams that the product submits on the minicluster, and what their supervisor told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from getpass import getuser
from pathlib import Path

import psutil

from airflow_kstream.demo.flink_job import MAIN_CLASS
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.flink import JOB_MANAGER, TASK_MANAGER, lose_taskmanager, processes
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.clusters.hdfs_path import plain_path
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import HadoopCredentials
from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN, DelegationToken
from airflow_kstream.model.streams.deploy import FlinkDeploy
from airflow_kstream.model.streams.flink_conf import BACKOFF
from airflow_kstream.model.streams.flink_contract import CONFIRM_EVERY, LOOK_EVERY, ROUND_EVERY
from airflow_kstream.model.streams.generation import Claim
from airflow_kstream.model.streams.horizon import Horizon
from airflow_kstream.model.streams.plan import Report
from airflow_kstream.model.streams.stream import FlinkStreamSpec, StreamCredentials
from airflow_kstream.model.streams.submission import Setting, Submission, SubmissionOrder, from_kstream
from airflow_kstream.policy.streams.horizon.horizon import horizon_of
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.clusters.tokens import cancel_at
from airflow_kstream.supervise.streams.flink.flink_engine import FlinkEngine
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from tests.live.streams import BRISK_RESTART, BRISK_STOP, BRISK_WATCH, await_that, look

OFTEN = {LOOK_EVERY: "1 s", ROUND_EVERY: "3 s", CONFIRM_EVERY: "10 s", BACKOFF: "3 s"}


class BriskEngine(FlinkEngine):
    """An engine whose jobs ask for pushed tokens each three seconds, which end after two minutes here."""

    def submission(self, order: SubmissionOrder) -> Submission:
        ours = super().submission(order)
        brisk = {key: Setting(value, from_kstream("a test")) for key, value in OFTEN.items()}
        return replace(ours, settings={**ours.settings, **brisk})


@dataclass
class Stream:
    """The stream, and what its supervisor told."""

    minicluster: Minicluster
    session: ClusterSession
    spec: FlinkStreamSpec
    rows: str
    told: list[str]
    engine: FlinkEngine = field(default_factory=FlinkEngine)

    @property
    def run(self) -> StreamRun:
        return StreamRun(self.session, self.spec, self.engine)

    def reconcile(self) -> Report:
        return Reconciler(self.run, tell=self._tell).run()

    def _tell(self, line: str) -> None:
        print(line)
        self.told.append(line)

    @property
    def claim(self) -> Claim:
        claim = look(self.session, self.spec).claim
        assert claim is not None
        return claim

    @property
    def application(self) -> Application:
        current = look(self.session, self.spec).current
        assert current is not None
        return current

    def await_checkpoints(self, more: int) -> None:
        def reached() -> int:
            assert self.application.alive, self.application.diagnostics
            (point,) = look(self.session, self.spec).checkpoints
            return point.position.offset

        wanted = reached() + more
        await_that(lambda: reached() >= wanted, f"{self.application.id} completes {more} checkpoints")

    @property
    def horizon(self) -> Horizon:
        ends = horizon_of(self.spec, look(self.session, self.spec))
        assert ends is not None
        return ends

    def files(self) -> frozenset[str]:
        return self.run.folder.names()

    def processes(self, role: str) -> list[psutil.Process]:
        return processes(self.minicluster.root, self.application.id, role)

    def kill_job_manager(self) -> None:
        for process in self.processes(JOB_MANAGER):
            process.kill()

    def cancel_launch_token(self) -> DelegationToken:
        """End the token of its launch before its time, as its owner: the ResourceManager would renew it for an hour.

        It is read from the NodeManager's own copy: a keeper rewrites the one that the JobManager has.
        """
        (file,) = self.minicluster.root.glob(f"data/containers/nmPrivate/{self.application.id}/*_000001/*.tokens")
        content = SecretBytes(file.read_bytes())
        tokens = HadoopCredentials.read(content).tokens
        (token,) = {token.identifier: token for token in tokens if token.kind == HDFS_TOKEN}.values()
        assert isinstance(token.identifier, DelegationToken)
        cluster, identity = self.session.cluster, self.session.identity
        cancel_at(cluster.default_fs, cluster, identity, content.reveal()[token.identifier_place])
        return token.identifier

    def lose_its_taskmanager(self, while_waiting: Callable[[], object] = lambda: None) -> None:
        """Kill it, as on a node that fails, and wait until another one has made checkpoints."""
        (old,) = lose_taskmanager(self.minicluster.root, self.application.id)

        def another() -> bool:
            while_waiting()
            return any(process.pid != old for process in self.processes(TASK_MANAGER))

        await_that(another, "another TaskManager runs")
        self.await_checkpoints(2)

    def end(self) -> None:
        for app in self.session.yarn.applications(self.run.id.tag):
            if app.alive:
                self.session.yarn.kill(app.id, "the test is over", self.spec.stop.kill_wait)


def flink_stream(
    minicluster: Minicluster, feature: Feature, jar: str, credentials: StreamCredentials, name: str
) -> FlinkStreamSpec:
    """A cheap stream of the demonstration's job, 20 rows a second; `jar` is on this host or, as a URI, on HDFS."""
    name = f"{name}-{feature}"
    home = f"/user/{getuser()}/{name}"
    return FlinkStreamSpec(
        name=name,
        credentials=credentials,
        application=jar,
        arguments=("rate", "20", f"{minicluster.default_fs}{home}/rows"),
        checkpoints=(f"{home}/checkpoints",),
        conf={"execution.checkpointing.interval": "2s"},
        deploy=FlinkDeploy(flink=str(feature), main_class=MAIN_CLASS, lib_dirs=(minicluster.flink_lib_dir(feature),)),
        restart=BRISK_RESTART,
        stop=BRISK_STOP,
        watch=BRISK_WATCH,
    )


def rows_folder(spec: FlinkStreamSpec) -> str:
    """Return the plain path of the folder into which the job writes its rows."""
    return plain_path(spec.arguments[-1])


def declared(
    flinks: Minicluster, session: ClusterSession, feature: Feature, jar: Path, credentials: StreamCredentials, name: str
) -> Stream:
    placed = f"/user/{getuser()}/{name}-{feature}/rows.jar"
    session.hdfs.write(placed, jar.read_bytes())
    spec = flink_stream(flinks, feature, f"{flinks.default_fs}{placed}", credentials, name)
    return Stream(flinks, session, spec, rows_folder(spec), [])
