"""The demonstration's job of Flink on the minicluster: its submission by Flink's own client, and its processes."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from getpass import getuser
from pathlib import Path
from typing import Any

import psutil
import requests

from airflow_kstream.clients.flink_pages import FlinkPages
from airflow_kstream.demo.flink_job import MAIN_CLASS
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.flink import jobmanager_log, processes
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import HadoopCredentials
from airflow_kstream.model.kerberos.tokens import HDFS_TOKEN, DelegationToken
from airflow_kstream.supervise.clusters.session import ClusterSession
from tests.live.daemons import session_as
from tests.live.streams import await_that

Settings = Mapping[str, Any]
NOTHING_ELSE: Settings = {}


@dataclass(frozen=True)
class FlinkRun:
    """One generation of the job. All that its client is told stands in `folder`, which is its FLINK_CONF_DIR."""

    minicluster: Minicluster
    feature: Feature
    jar: Path
    folder: Path
    name: str
    number: int = 1
    has_ticket: bool = False

    @property
    def job(self) -> str:
        return hashlib.sha256(f"{self.name}-{self.number}".encode()).hexdigest()[:32]

    @property
    def tag(self) -> str:
        return f"{self.name}-{self.number}"

    @property
    def home(self) -> str:
        return f"/user/{getuser()}/{self.name}"

    @property
    def rows(self) -> str:
        return f"{self.home}/rows"

    @property
    def checkpoints(self) -> str:
        return f"{self.home}/checkpoints/{self.job}"

    def conf(self) -> dict[str, Any]:
        cluster = self.minicluster
        return {
            "yarn.application.name": self.name,
            "yarn.tags": f"{self.tag},flink-runs",
            "$internal.pipeline.job-id": self.job,
            "security.kerberos.login.keytab": str(cluster.keytab("streamer")),
            "security.kerberos.login.principal": cluster.principal("streamer"),
            "security.kerberos.login.use-ticket-cache": False,
            "security.kerberos.login.contexts": "KafkaClient",
            "parallelism.default": 1,
            "execution.checkpointing.interval": "2s",
            "execution.checkpointing.dir": f"{cluster.default_fs}{self.home}/checkpoints",
            "execution.checkpointing.savepoint-dir": f"{cluster.default_fs}{self.home}/savepoints",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "execution.checkpointing.num-retained": 3,
        }

    def submission(self, conf: Settings = NOTHING_ELSE, words: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        """Start the client with these further settings, and without those that are None. It finds no ticket but
        its own."""
        job = ("-c", MAIN_CLASS, str(self.jar), *(words or ("rate", "20", f"{self.minicluster.default_fs}{self.rows}")))
        settings = {key: value for key, value in {**self.conf(), **conf}.items() if value is not None}
        argv = self.minicluster.flink_client(self.folder, settings, job, self.feature)
        environment = self.minicluster.client_env("streamer") | {"FLINK_CONF_DIR": str(self.folder)}
        if not self.has_ticket:
            environment["KRB5CCNAME"] = "FILE:/nonexistent"
        with (self.folder / "client.out").open("wb") as output:
            return subprocess.Popen(
                argv,
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def submit(self, conf: Settings = NOTHING_ELSE, words: tuple[str, ...] = ()) -> FlinkRunning:
        """Submit it, and return once its application runs, as the client says."""
        client = self.submission(conf, words)
        code = client.wait(300)
        assert code == 0, (self.folder / "client.out").read_text()[-3000:]
        with session_as(self.minicluster, "streamer") as http:
            (app,) = applications(self.minicluster, http, self.tag)
        return FlinkRunning(self, app["id"])


@dataclass(frozen=True)
class FlinkRunning:
    """A generation that YARN knows."""

    run: FlinkRun
    application: str

    @property
    def proxy(self) -> str:
        return f"{self.run.minicluster.resourcemanagers[0]}/proxy/{self.application}"

    def ask(self, path: str, who: str = "streamer") -> Any:
        """Return the JobManager's answer behind YARN's proxy."""
        with session_as(self.run.minicluster, who) as http:
            answer = http.get(self.proxy + path, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def checkpoints(self) -> Any:
        return self.ask(f"/jobs/{self.run.job}/checkpoints")

    def require_not_ended(self) -> None:
        with session_as(self.run.minicluster, "streamer") as http:
            (app,) = applications(self.run.minicluster, http, self.run.tag)
        assert app["finalStatus"] == "UNDEFINED", (
            f"{self.application} ended: {app['finalStatus']}, {app['diagnostics']}"
        )

    def processes(self, role: str) -> list[psutil.Process]:
        return processes(self.run.minicluster.root, self.application, role)

    def place(self, role: str) -> Path:
        """Return the working folder of the container that has this role."""
        (process,) = self.processes(role)
        return Path(process.cwd())

    def log(self) -> str:
        return jobmanager_log(self.run.minicluster.root, self.application)


def applications(minicluster: Minicluster, http: requests.Session, tag: str) -> list[Any]:
    """Return the applications with this tag, as the ResourceManager shows them to this user."""
    answer = http.get(f"{minicluster.resourcemanagers[0]}/ws/v1/cluster/apps", params={"applicationTags": tag})
    answer.raise_for_status()
    return list((answer.json()["apps"] or {"app": []})["app"])


@contextmanager
def running(
    session: ClusterSession, run: FlinkRun, conf: Settings = NOTHING_ELSE, words: tuple[str, ...] = ()
) -> Iterator[FlinkRunning]:
    """The job past two checkpoints; killed at the end."""
    try:
        living = run.submit(conf, words)
        await_checkpoints(living, 2)
        yield living
    finally:
        for app in session.yarn.applications(run.tag):
            session.yarn.kill(app.id, "the test is over", timedelta(seconds=60))


def await_checkpoints(living: FlinkRunning, more: int) -> None:
    """Wait until so many checkpoints more have been completed."""

    def completed() -> int:
        try:
            return int(living.checkpoints()["counts"]["completed"])
        except requests.RequestException:
            # It may still start, or its port may not be known to YARN yet.
            living.require_not_ended()
            return 0

    wanted = completed() + more
    await_that(lambda: completed() >= wanted, f"{living.application} completes {more} checkpoints")


def rows_of(session: ClusterSession, folder: str) -> list[int]:
    """Return the rows that are committed: those in files that are not hidden."""
    hdfs, buckets = session.hdfs, sorted(session.hdfs.names(folder))
    files = [f"{folder}/{bucket}/{name}" for bucket in buckets for name in hdfs.names(f"{folder}/{bucket}")]
    visible = [path for path in files if "/." not in path]
    # Of a record in a topic, its number stands behind its place there.
    return [int(line.split("\t")[-1]) for path in visible for line in hdfs.read(path).splitlines()]


def pages_of(session: ClusterSession, living: FlinkRunning) -> FlinkPages:
    """Return the JobManager's pages; the caller closes them."""
    return FlinkPages(session.yarn.active(), living.application, session.identity, session.cluster.tls, 300)


def launch_token(container: Path) -> DelegationToken:
    """Return the HDFS token that YARN gave the container."""
    tokens = HadoopCredentials.read(SecretBytes((container / "container_tokens").read_bytes())).tokens
    (identifier,) = {token.identifier for token in tokens if token.kind == HDFS_TOKEN}
    assert isinstance(identifier, DelegationToken)
    return identifier


def staging(session: ClusterSession, application: str) -> frozenset[str]:
    """Return the names of what the application's client uploaded, as far as it is still there."""
    return session.hdfs.names(f"/user/{getuser()}/.flink/{application}")
