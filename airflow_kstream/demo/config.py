"""The configuration of the demonstration: its streams and durations."""

from __future__ import annotations

import getpass
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow_kstream.demo import jobs
from airflow_kstream.demo.flink_job import of_flink
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.minicluster.config import DEFAULT_FEATURES, Feature
from airflow_kstream.minicluster.jars import kafka_connector_jars
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.stream import (
    EngineName,
    FlinkStreamSpec,
    KeytabCredentials,
    StreamSpec,
    TicketCredentials,
)
from airflow_kstream.model.streams.stream_policies import (
    HeartbeatPolicy,
    RefreshPolicy,
    RestartPolicy,
    StopPolicy,
    SubmitPolicy,
    WatchPolicy,
)

# Who looks after the streams, and who runs them: a stream's job can't speak for the others.
SUPERVISOR, STREAMER = "supervisor", "streamer"
CONNECTION = "kstream_demo"
TOPIC = "cluster-events"
WITH_KEYTAB, WITHOUT_KEYTAB = "events-keytab", "events-ticket"
PUSHED, NAIVE = "events-pushed", "events-naive"

# A restart has to fit between plan and horizon on two busy cores; on a cluster with 7-day tokens the defaults do.
BRISK_RESTART = RestartPolicy(plan_ratio=0.55, jitter_ratio=0.0)
BRISK_STOP = StopPolicy(
    marker_grace=timedelta(seconds=40),
    quiescent_wait=timedelta(seconds=15),
    signal_grace=timedelta(seconds=15),
    kill_wait=timedelta(seconds=30),
    silence=timedelta(seconds=10),
)
BRISK_SUBMIT = SubmitPolicy(timeout=timedelta(seconds=90), ttl=timedelta(seconds=60))
BRISK_HEARTBEAT = HeartbeatPolicy(start_timeout=timedelta(minutes=3))
# Each push wakes a task of Airflow, which takes seconds of a minute and a half, and may have been killed: it is back
# within 40 s, and then 20 s for an answer and 9 s for a restart are left.
BRISK_REFRESH = RefreshPolicy(push_ratio=0.25, confirm_within=timedelta(seconds=20))
BRISK_WATCH = WatchPolicy(
    every=timedelta(seconds=3), look_every=timedelta(seconds=1), recovery_wait=timedelta(seconds=20)
)
_BRISK: dict[str, Any] = {
    "restart": BRISK_RESTART,
    "refresh": BRISK_REFRESH,
    "stop": BRISK_STOP,
    "submit": BRISK_SUBMIT,
    "heartbeat": BRISK_HEARTBEAT,
    "watch": BRISK_WATCH,
}
# A JobManager answers a push within a minute, each one before a restart would be planned.
_OF_FLINK: dict[str, Any] = {
    "restart": replace(BRISK_RESTART, plan_ratio=0.65),
    "refresh": replace(BRISK_REFRESH, confirm_within=timedelta(seconds=75)),
}


@dataclass(frozen=True)
class DemoConfig:
    """The settings of one run: it lasts `lives` max-lifetimes; `with_crashes` kills Airflow's parts twice."""

    root: Path
    renew_interval: timedelta = timedelta(seconds=90)
    max_lifetime: timedelta = timedelta(minutes=3)
    lives: int = 3
    with_crashes: bool = False
    once: bool = False
    features: frozenset[Feature] = DEFAULT_FEATURES

    @classmethod
    def of_flink(cls, root: Path, *, once: bool) -> DemoConfig:
        """Return a run with jobs of Flink's. They answer a push within a minute, so that tokens live longer."""
        lives = timedelta(seconds=210), timedelta(minutes=4)
        return cls(root, *lives, once=once, features=DEFAULT_FEATURES | {Feature.FLINK})

    @property
    def engine(self) -> EngineName:
        return EngineName.FLINK if Feature.FLINK in self.features else EngineName.SPARK


def streams(plan: DemoConfig, minicluster: Minicluster, kafka_keytab: Path) -> tuple[StreamSpec, ...]:
    """Return the same job several times: one that logs in by itself, one that gets fresh tokens while it runs, and one
    of Spark's that lives on the tokens of its submission."""
    principal, keytab = minicluster.principal(STREAMER), str(minicluster.keytab(STREAMER))
    credentials: dict[str, KeytabCredentials | TicketCredentials] = {
        WITH_KEYTAB: KeytabCredentials(principal, keytab),
        PUSHED: TicketCredentials(principal, keytab, refresh=True),
    }
    if plan.engine is EngineName.SPARK:
        credentials[WITHOUT_KEYTAB] = TicketCredentials(principal, keytab)
    return tuple(_SPECS[plan.engine](minicluster, name, each, kafka_keytab) for name, each in credentials.items())


def naive(plan: DemoConfig, minicluster: Minicluster, kafka_keytab: Path) -> StreamSpec:
    """Return the control: declared like the others, but submitted with the engine's plain client and unsupervised."""
    credentials = TicketCredentials(minicluster.principal(STREAMER), str(minicluster.keytab(STREAMER)))
    return _SPECS[plan.engine](minicluster, NAIVE, credentials, kafka_keytab)


def table(name: str) -> str:
    return f"{_home()}/{name}/table"


def checkpoint(name: str) -> str:
    return f"{_home()}/{name}/checkpoint"


def _home() -> str:
    """Return the home of the user that runs this: the minicluster maps its principal to it for log aggregation."""
    return f"/user/{getpass.getuser()}"


def _spark(
    minicluster: Minicluster, name: str, credentials: KeytabCredentials | TicketCredentials, kafka_keytab: Path
) -> StreamSpec:
    arguments = {
        "--bootstrap-servers": minicluster.bootstrap_servers,
        "--topic": TOPIC,
        "--table": minicluster.default_fs + table(name),
        "--checkpoint": minicluster.default_fs + checkpoint(name),
        "--kafka-principal": minicluster.principal(STREAMER),
        "--kafka-keytab": kafka_keytab.name,
        "--trigger-seconds": "5",
    }
    return StreamSpec(
        name=name,
        credentials=credentials,
        application=str(Path(jobs.__file__).with_name("cluster_events.py")),
        arguments=tuple(word for pair in arguments.items() for word in pair),
        checkpoints=(checkpoint(name),),
        # The job reads Kafka with a keytab of its own; Spark's Kafka delegation tokens are not used.
        conf={"spark.security.credentials.kafka.enabled": "false", "spark.security.credentials.retryWait": "5s"},
        deploy=Deploy(
            files=(str(kafka_keytab),),
            jars=tuple(str(jar) for jar in kafka_connector_jars()),
            executors=1,
        ),
        **_BRISK,
    )


def _flink(
    minicluster: Minicluster, name: str, credentials: KeytabCredentials | TicketCredentials, kafka_keytab: Path
) -> StreamSpec:
    login = minicluster.principal(STREAMER), kafka_keytab.name
    return FlinkStreamSpec(
        name=name,
        credentials=credentials,
        arguments=("kafka", minicluster.bootstrap_servers, TOPIC, *login, minicluster.default_fs + table(name)),
        checkpoints=(checkpoint(name),),
        outputs=(table(name),),
        # The job's jar is on its JobManager's class path, too: of classes that both have, one must win.
        conf={"execution.checkpointing.interval": "5s", "classloader.resolve-order": "parent-first"},
        **of_flink(minicluster, kafka_keytab),
        **_BRISK | _OF_FLINK,
    )


_SPECS = {EngineName.SPARK: _spark, EngineName.FLINK: _flink}
