"""Streams on the minicluster, and how to wait for them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from getpass import getuser
from pathlib import Path
from typing import Any

from airflow_kstream.clients.spark import find_spark_submit
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Report
from airflow_kstream.model.streams.stream import (
    KeytabCredentials,
    ProxyUserCredentials,
    StreamSpec,
    TicketCredentials,
)
from airflow_kstream.model.streams.stream_policies import RestartPolicy, StopPolicy, WatchPolicy
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.policy.streams.pulse.heartbeat import verified
from airflow_kstream.supervise.clusters.connection import ConnectionFields, cluster_of, connection_fields
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.engine import Engine
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.look.observe import observe
from airflow_kstream.supervise.streams.orders.desired import set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.streams.spark.spark_engine import DRIVER_HELPER

# What is submitted.
JOBS = Path(__file__).with_name("jobs")
# A job that has no helper.
UNAWARE = str(JOBS / "plain_rate.py")

# Of a job to which tokens are pushed by hand: with a secret of its own it would take none.
PUSHABLE_BY_HAND = {"spark.authenticate": "false"}

BRISK_RESTART = RestartPolicy(jitter_ratio=0.0)
BRISK_STOP = StopPolicy(
    marker_grace=timedelta(seconds=60),
    quiescent_wait=timedelta(seconds=10),
    signal_grace=timedelta(seconds=10),
    silence=timedelta(seconds=5),
)
BRISK_WATCH = WatchPolicy(
    every=timedelta(seconds=1), look_every=timedelta(seconds=0.5), recovery_wait=timedelta(seconds=20)
)


def fields(minicluster: Minicluster, who: str = "streamer", **more: Any) -> ConnectionFields:
    """Return the fields of a connection to the minicluster as one of its principals."""
    return connection_fields("minicluster", minicluster.connection(who) | more)


@contextmanager
def cluster(minicluster: Minicluster, who: str = "streamer") -> Iterator[Cluster]:
    with cluster_of("minicluster", fields(minicluster, who)) as opened:
        yield opened


def rate_stream(
    name: str, credentials: KeytabCredentials | TicketCredentials | ProxyUserCredentials, **more: Any
) -> StreamSpec:
    folder = f"/user/{getuser()}/{name}"
    return replace(
        StreamSpec(
            name=name,
            credentials=credentials,
            application=str(JOBS / "rate.py"),
            arguments=(folder,),
            checkpoints=(f"{folder}/checkpoint",),
            restart=BRISK_RESTART,
            stop=BRISK_STOP,
            watch=BRISK_WATCH,
        ),
        **more,
    )


def at_pace(spec: StreamSpec, seconds: int) -> StreamSpec:
    """Return the stream with a batch every so many seconds: each costs all processes together 0.3 s of CPU."""
    return replace(spec, arguments=(*spec.arguments, f"{seconds} seconds"))


def submit_by_hand(minicluster: Minicluster, spec: StreamSpec, tag: str, **more: str) -> None:
    """Submit the spec's job with plain spark-submit, as a user that knows nothing of streams; `more` are confs."""
    own = {"spark.yarn.tags": tag, "spark.yarn.submit.waitAppCompletion": "false"}
    conf = {**minicluster.spark_conf(), **own, **more}
    argv = [find_spark_submit(), "--master", "yarn", "--deploy-mode", "cluster", "--py-files", DRIVER_HELPER]
    argv += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    subprocess.run([*argv, spec.application, *spec.arguments], env=minicluster.client_env("streamer"), check=True)


@contextmanager
def reconciler(
    minicluster: Minicluster, spec: StreamSpec, who: str = "streamer", engine: Engine | None = None
) -> Iterator[Reconciler]:
    """A reconciler that keeps what it told to itself."""
    with cluster(minicluster, who) as opened, open_session(opened, identity_of(spec, opened)) as session:
        yield Reconciler(StreamRun(session, spec, engine or engine_of(spec)), tell=lambda line: None)


def look(session: ClusterSession, spec: StreamSpec) -> Observation:
    return observe(StreamRun(session, spec, engine_of(spec)))


def stopped(observation: Observation) -> bool:
    return not any(app.alive for _, app in observation.applications)


def await_commits(session: ClusterSession, spec: StreamSpec, generation: int = 1) -> None:
    """Wait until the generation has committed to every checkpoint; fail as soon as its application has ended."""

    def committed() -> bool:
        seen = look(session, spec)
        require_not_ended(spec, seen, generation)
        return seen.claim is not None and seen.claim.generation == generation and verified(seen)

    await_that(committed, f"generation {generation} of {spec.name} commits")


def kept_logs(minicluster: Minicluster, application: str, folder: Path) -> Path:
    """Link the logs of an application's containers: YARN removes its own names of them at the end."""
    logs = minicluster.root / "logs" / "containers" / application
    (folder / application).mkdir(exist_ok=True)
    for file in logs.glob("container_*/*"):
        link = folder / application / file.relative_to(logs)
        link.parent.mkdir(exist_ok=True)
        with suppress(FileExistsError, FileNotFoundError):
            os.link(file, link)
    return folder / application


def require_not_ended(spec: StreamSpec, seen: Observation, generation: int) -> None:
    app = dict(seen.applications).get(generation)
    assert app is None or app.alive, f"{spec.name}: generation {generation} ended: {app.state}, {app.diagnostics}"


def await_that(condition: Callable[[], bool], what: str, seconds: float = 400) -> None:
    """Poll until the condition holds; fail with its name after a timeout that suits a busy machine."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain until {what}"
        time.sleep(0.5)


@contextmanager
def running(minicluster: Minicluster, spec: StreamSpec, who: str = "streamer") -> Iterator[Reconciler]:
    """The stream, submitted and past its first commit; stopped at the end."""
    with reconciler(minicluster, spec, who) as supervisor:
        supervisor.run()
        await_commits(supervisor.session, spec)
        try:
            yield supervisor
        finally:
            stop(supervisor)


def stop(supervisor: Reconciler) -> Report:
    set_desired(supervisor.subject, DesiredState.STOPPED, "the test is over")
    return supervisor.run()
