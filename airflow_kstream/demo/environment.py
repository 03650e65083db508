"""The environment of the demonstration: the cluster, Airflow with its connection and declarations, the shipper."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from airflow_kstream.dags import STUBS
from airflow_kstream.dags.ids import stream_id
from airflow_kstream.demo import config as demo_plan
from airflow_kstream.demo.airflow_api import AirflowApi, Connection
from airflow_kstream.demo.airflow_home import AirflowHome
from airflow_kstream.demo.airflow_settings import CrashSettings
from airflow_kstream.demo.config import CONNECTION, STREAMER, SUPERVISOR, TOPIC, DemoConfig
from airflow_kstream.demo.console import DemoConsole
from airflow_kstream.demo.flink_job import build_job, javac, job_jar
from airflow_kstream.demo.supervisor import Child, Happening, ProcessSupervisor, SupervisorEvent
from airflow_kstream.minicluster import Minicluster, MiniclusterConfig
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.folders import Folders
from airflow_kstream.minicluster.jars import are_cached
from airflow_kstream.minicluster.processes import Launch
from airflow_kstream.model.errors import MiniclusterError
from airflow_kstream.model.streams.stream import EngineName, StreamSpec
from airflow_kstream.policy.streams.horizon.rotation import identity_of
from airflow_kstream.supervise.clusters.connection import cluster_of, connection_fields
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.streams.engines import engine_of
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.orders.desired import start_from

# The folder of the settings with which Flink's client submits the control.
CONTROL_CONF = "control"


@dataclass(frozen=True)
class Environment:
    """All running parts, and where to find them."""

    root: Path
    minicluster: Minicluster
    supervisor: ProcessSupervisor
    home: AirflowHome
    streams: tuple[StreamSpec, ...]
    control: StreamSpec

    def connection(self) -> dict[str, Any]:
        return self.minicluster.connection(SUPERVISOR)


def make_environment(plan: DemoConfig, console: DemoConsole, stack: ExitStack) -> Environment:
    """Start all parts; `stack` stops them in any case."""
    plan.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    former = require_own_folder(plan.root)
    minicluster = _minicluster(plan, console, stack)
    if former:
        forget_former_run(plan.root)
    clients = minicluster.client_env(SUPERVISOR)
    os.environ |= {name: clients[name] for name in ("KRB5_CONFIG", "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")}
    kafka_keytab = plan.root / "kafka-client.keytab"
    shutil.copy(minicluster.keytab(STREAMER), kafka_keytab)
    streams = demo_plan.streams(plan, minicluster, kafka_keytab)
    _write_declarations(plan.root, minicluster, streams)
    home = _airflow_home(plan, minicluster)
    supervisor = ProcessSupervisor(lambda event: tell_deaths(console, event))
    stack.callback(supervisor.stop)
    control = demo_plan.naive(plan, minicluster, kafka_keytab)
    environment = Environment(plan.root, minicluster, supervisor, home, streams, control)
    _start_airflow(environment, console)
    return environment


class Shipper:
    """The shipper's process, with a supervisor of its own because it ends before all other parts."""

    def __init__(self, environment: Environment, stack: ExitStack) -> None:
        self._log = environment.root / "shipper.log"
        self._supervisor = ProcessSupervisor()
        stack.callback(self._supervisor.stop)
        settings = environment.root / "shipper.json"
        settings.write_text(json.dumps(_shipping(environment.minicluster)))
        argv = (sys.executable, "-m", "airflow_kstream.demo.shipper", "--settings", str(settings))
        env = {
            "PATH": os.environ["PATH"],
            "KRB5_CONFIG": str(environment.minicluster.krb5_conf),
            "PYTHONUNBUFFERED": "1",
        }
        self._supervisor.start(Child("shipper", Launch(argv, env, environment.root, self._log), grace=30))

    def finish(self) -> Mapping[str, int]:
        """Let it ship all complete lines, stop it, and return the byte up to which each file was shipped."""
        self._supervisor.stop()
        last = self._log.read_text().strip().splitlines()[-1]
        try:
            ends: Mapping[str, int] = json.loads(last)
        except ValueError as error:
            raise MiniclusterError(f"its last word was {last!r}", tried="stop the shipper") from error
        return ends


def _minicluster(plan: DemoConfig, console: DemoConsole, stack: ExitStack) -> Minicluster:
    console.say("starting a kerberized cluster: KDC, HDFS with two NameNodes, YARN, Kafka")
    config = MiniclusterConfig(plan.root / "minicluster", plan.features, plan.renew_interval, plan.max_lifetime)
    minicluster = brought_up(config, console, stack)
    console.say(f"the cluster serves; delegation tokens live {plan.max_lifetime.total_seconds():.0f} s at most")
    return minicluster


def require_own_folder(root: Path) -> bool:
    """Return whether a demonstration ran in this folder before.

    Raises MiniclusterError: when none did, and its folders' names are taken: an Airflow of somebody's is at home there.
    """
    former = Folders(root / "minicluster").record.exists()
    taken = [name for name in ("airflow", "streams", CONTROL_CONF) if (root / name).exists()]
    if taken and not former:
        why = f"{root} has a folder {taken[0]} that no demonstration made; name an empty one with --root"
        raise MiniclusterError(why, tried="start the demonstration")
    return former


def forget_former_run(root: Path) -> None:
    """Remove what a demonstration left that ran in this folder before: its cluster is gone, with all that Airflow knew
    of it. DAGs that are unpaused already would start their streams in another order."""
    for folder in ("airflow", f"streams/{CONNECTION}", CONTROL_CONF):
        if (root / folder).exists():
            shutil.rmtree(root / folder)


def brought_up(config: MiniclusterConfig, console: DemoConsole, stack: ExitStack) -> Minicluster:
    """Start the cluster, and build its job of Flink's where it has Flink; `stack` stops what it started in any case.

    Raises MiniclusterError: when a part does not start, a cluster runs in the folder, or Java has no compiler.
    """
    flink = Feature.FLINK in config.features
    if flink:
        javac("-version")
        if not are_cached("flink", "flink-kafka"):
            console.say("Flink is downloaded, 240 MB, the first time")
    # One that does not start ends what it started. What runs in the folder already is another one's.
    minicluster = Minicluster.up(config)
    stack.callback(minicluster.down)
    if flink:
        build_job(Feature.FLINK, job_jar(minicluster))
    return minicluster


def say_where_they_begin(minicluster: Minicluster, specs: Iterable[StreamSpec]) -> None:
    """Order Flink's streams among these to begin without a state: none begins before a person has said with which."""
    if asked := [spec for spec in specs if spec.engine is EngineName.FLINK]:
        with ExitStack() as stack:
            session = session_of(minicluster, stack)
            for spec in asked:
                start_from(StreamRun(session, spec, engine_of(spec)), "it begins with no state", fresh=True)


def session_of(minicluster: Minicluster, stack: ExitStack, spec: StreamSpec | None = None) -> ClusterSession:
    """Open a session of the supervisor's own or, with a stream's spec, with that stream's rights."""
    # Airflow's logging, which is imported here, would show each of its sessions.
    logging.getLogger("hdfs.client").setLevel(logging.WARNING)
    fields = connection_fields("demo", minicluster.connection(SUPERVISOR))
    cluster = stack.enter_context(cluster_of("demo", fields))
    return stack.enter_context(open_session(cluster, identity_of(spec, cluster) if spec else cluster.watcher))


def _shipping(minicluster: Minicluster) -> dict[str, Any]:
    return {
        "bootstrap_servers": minicluster.bootstrap_servers,
        "topic": TOPIC,
        "files": {name: str(path) for name, path in minicluster.event_logs().items()},
        "principal": minicluster.principal(STREAMER),
        "keytab": str(minicluster.keytab(STREAMER)),
    }


def _write_declarations(root: Path, minicluster: Minicluster, streams: tuple[StreamSpec, ...]) -> None:
    (root / "cluster.yaml").write_text(yaml.safe_dump(minicluster.connection(SUPERVISOR)))
    folder = root / "streams" / CONNECTION
    folder.mkdir(parents=True, exist_ok=True)
    for spec in streams:
        (folder / f"{spec.name}.yaml").write_text(yaml.safe_dump(spec.to_mapping()))


def _airflow_home(plan: DemoConfig, minicluster: Minicluster) -> AirflowHome:
    env = {"KRB5_CONFIG": str(minicluster.krb5_conf)}
    # The minicluster's Java options are long; the whole rendered command line should be visible.
    overrides = {
        "core": {"max_templated_field_length": "16384"},
        "kstream": {"streams_folder": str(plan.root / "streams"), "retry_delay": "3s"},
    }
    return AirflowHome(plan.root / "airflow", STUBS, env, crash=CrashSettings.brisk(), overrides=overrides)


def _start_airflow(environment: Environment, console: DemoConsole) -> None:
    console.say("starting Airflow: API server, scheduler, triggerer, DAG processor")
    environment.home.prepare()
    for component in environment.home.components():
        environment.supervisor.start(component)
    environment.home.wait_until_healthy(environment.supervisor)
    api = environment.home.api()
    api.put_connection(Connection(CONNECTION, "kstream", "The demonstration's cluster", extra=environment.connection()))
    await_dags(api, [stream_id(CONNECTION, spec.name) for spec in environment.streams])
    say_where_they_begin(environment.minicluster, environment.streams)
    console.say(f"Airflow serves at {environment.home.url}; user admin, password {environment.home.login.password}")


def await_dags(api: AirflowApi, wanted: Collection[str]) -> None:
    """Return once Airflow has parsed these DAGs. Raises RetryError: when it has not within two minutes."""
    Retrying(
        retry=retry_if_result(lambda dag_ids: not set(wanted) <= set(dag_ids)),
        stop=stop_after_delay(120),
        wait=wait_fixed(0.5),
    )(api.dag_ids)


def tell_deaths(console: DemoConsole, event: SupervisorEvent) -> None:
    """Say what died and what became of it."""
    if event.happening in {Happening.DIED, Happening.RESPAWNED, Happening.GAVE_UP}:
        console.say(f"{event.child} {event.happening} {event.detail}", "supervisor")


def end_on_signals() -> None:
    """Make SIGTERM end the demonstration as Ctrl-C does, in good order at any moment."""

    def interrupted(number: int, _: object) -> None:
        # A second signal must not interrupt the cleanup.
        for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(ending, signal.SIG_IGN)
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, interrupted)
