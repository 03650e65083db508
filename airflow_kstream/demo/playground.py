"""The playground: a kerberized cluster and an Airflow with five streams and a stuck file, to meet the pages in."""

from __future__ import annotations

import getpass
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from airflow_kstream.dags import STUBS
from airflow_kstream.dags.ids import keytabs_id, leases_id, stream_id, tickets_id
from airflow_kstream.demo import jobs
from airflow_kstream.demo.airflow_api import Connection
from airflow_kstream.demo.airflow_home import AirflowHome
from airflow_kstream.demo.airflow_settings import CrashSettings
from airflow_kstream.demo.config import BRISK_RESTART, BRISK_STOP, BRISK_SUBMIT, BRISK_WATCH, STREAMER, SUPERVISOR
from airflow_kstream.demo.console import DemoConsole
from airflow_kstream.demo.environment import await_dags, brought_up, say_where_they_begin, tell_deaths
from airflow_kstream.demo.flink_job import of_flink
from airflow_kstream.demo.supervisor import ProcessSupervisor
from airflow_kstream.minicluster import Minicluster, MiniclusterConfig
from airflow_kstream.minicluster.clients import first_stream
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.model.errors import MiniclusterError
from airflow_kstream.model.streams.stream import FlinkStreamSpec, KeytabCredentials, StreamSpec, TicketCredentials
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy, RefreshPolicy

CONNECTION = "playground"
# One that nothing declares yet, to play with.
YOURS = "sales"
STREAMS = ("prices", "orders", "shipments", "clicks", "visits")
LANDING = f"/user/{getpass.getuser()}/landing"
STUCK = f"{LANDING}/part-00007.avro.tmp"
# Long enough to look around in, and short enough to see a restart and a push.
RENEW_INTERVAL, MAX_LIFETIME = timedelta(minutes=4), timedelta(minutes=8)
_HANGS_AFTER = 12
_BRISK: Mapping[str, Any] = {
    "restart": BRISK_RESTART,
    "stop": BRISK_STOP,
    "submit": BRISK_SUBMIT,
    "watch": replace(BRISK_WATCH, every=timedelta(seconds=5)),
}


@dataclass(frozen=True)
class Playground:
    """A running playground. `cluster_file` is what `kstream --cluster` takes."""

    root: Path
    minicluster: Minicluster
    home: AirflowHome
    cluster_file: Path

    @property
    def commands(self) -> tuple[str, ...]:
        """Return five commands to try, each with what it shows."""
        return (
            "./kstream streams status                        # the same fleet, asked of the cluster itself",
            "./kstream streams evidence clicks               # once it is STALLED: which task stands still",
            './kstream streams hold orders --reason "lunch"  # nobody restarts it; then look at its page',
            f"./kstream leases explain {STUCK}",
            "./kstream doctor                                # what will go wrong, for which stream, and from when on",
        )


def streams(minicluster: Minicluster) -> tuple[StreamSpec, ...]:
    """Return five streams: with a keytab, with a short horizon, with pushed tokens, one that hangs, and one of Flink's
    where the cluster has it."""
    principal, keytab = minicluster.principal(STREAMER), str(minicluster.keytab(STREAMER))
    own, once = KeytabCredentials(principal, keytab), TicketCredentials(principal, keytab)
    pushed = replace(once, refresh=True)
    brisk = HeartbeatPolicy(start_timeout=timedelta(minutes=3), stall_floor=timedelta(seconds=30))
    return (
        _stream("prices", own),
        _stream("orders", once),
        _stream("shipments", pushed, refresh=RefreshPolicy(confirm_within=timedelta(minutes=1))),
        _stream("clicks", own, str(_HANGS_AFTER), heartbeat=brisk),
        *((_visits(minicluster, own),) if Feature.FLINK in minicluster.plan.features else ()),
    )


def _stream(name: str, credentials: Any, *arguments: str, **more: Any) -> StreamSpec:
    folder = _folder(name)
    return StreamSpec(
        name=name,
        credentials=credentials,
        application=str(Path(jobs.__file__).with_name("ticking.py")),
        arguments=(folder, *arguments),
        checkpoints=(f"{folder}/checkpoint",),
        **_BRISK,
        **more,
    )


def _visits(minicluster: Minicluster, credentials: KeytabCredentials) -> FlinkStreamSpec:
    folder = _folder("visits")
    return FlinkStreamSpec(
        name="visits",
        credentials=credentials,
        arguments=("rate", "5", f"{minicluster.default_fs}{folder}/rows"),
        checkpoints=(f"{folder}/checkpoints",),
        outputs=(f"{folder}/rows",),
        conf={"execution.checkpointing.interval": "10s"},
        **of_flink(minicluster),
        **_BRISK,
    )


def _folder(stream: str) -> str:
    return f"/user/{getpass.getuser()}/playground/{stream}"


def start_cluster(root: Path, console: DemoConsole, stack: ExitStack, *, flink: bool = True) -> Minicluster:
    """Start a cluster whose tokens live for minutes, with Flink unless that is not wanted; `stack` stops it."""
    console.say("starting a kerberized cluster (the first time some minutes): KDC, HDFS with two NameNodes, YARN")
    plan = MiniclusterConfig(
        root / "minicluster",
        frozenset({Feature.HA, Feature.FLINK} if flink else {Feature.HA}),
        renew_interval=RENEW_INTERVAL,
        max_lifetime=MAX_LIFETIME,
    )
    return brought_up(plan, console, stack)


def start_playground(
    minicluster: Minicluster, root: Path, console: DemoConsole, stack: ExitStack, only: Collection[str] = STREAMS
) -> Playground:
    """Start an Airflow with the streams of these names on the cluster, and leave a file open; `stack` ends all of it.

    Raises MiniclusterError: when a part does not start.
    """
    folders = {kind: root / kind for kind in ("streams", "leases", "tickets")}
    specs = tuple(spec for spec in streams(minicluster) if spec.name in only)
    _declare(folders, specs)
    cluster_file = root / "cluster.yaml"
    cluster_file.write_text(yaml.safe_dump(minicluster.connection(SUPERVISOR)))
    yours = first_stream(YOURS, minicluster.principal(STREAMER), minicluster.keytab(STREAMER))
    (root / f"{YOURS}.yaml").write_text(yaml.safe_dump(yours, sort_keys=False))
    home = _home(minicluster, root, folders)
    supervisor = ProcessSupervisor(lambda event: tell_deaths(console, event))
    stack.callback(supervisor.stop)
    console.say("starting Airflow: API server, scheduler, triggerer, DAG processor")
    home.prepare()
    for component in home.components():
        supervisor.start(component)
    leave_a_file_open(minicluster, stack)
    _let_supervisor_recover(minicluster, specs)
    home.wait_until_healthy(supervisor, timeout=300)
    say_where_they_begin(minicluster, specs)
    _unpause(home, minicluster, specs)
    return Playground(root, minicluster, home, cluster_file)


def _client_settings(minicluster: Minicluster) -> Mapping[str, str]:
    """Return the settings of Kerberos and of Spark's client that Airflow's workers inherit."""
    clients = minicluster.client_env(SUPERVISOR)
    return {name: clients[name] for name in ("KRB5_CONFIG", "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")}


def _declare(folders: Mapping[str, Path], specs: tuple[StreamSpec, ...]) -> None:
    declared = {f"streams/{CONNECTION}/{spec.name}": spec.to_mapping() for spec in specs}
    # A file whose writer lives is left alone until a person approves it, as with the page's form.
    declared[f"leases/{CONNECTION}"] = {"paths": [LANDING], "min_age": "5s", "leak_after": "20s", "every": "2m"}
    declared[f"tickets/{CONNECTION}"] = {"every": "5m", "check_every": "1h"}
    for name, declaration in declared.items():
        kind, _, rest = name.partition("/")
        file = folders[kind] / f"{rest}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(declaration))


def _let_supervisor_recover(minicluster: Minicluster, specs: Iterable[StreamSpec]) -> None:
    for words in rights_to_recover(specs):
        done = minicluster.hdfs("dfs", *words, as_=STREAMER)
        if done.returncode:
            raise MiniclusterError(done.stderr.strip()[-500:], tried=f"hdfs dfs {' '.join(words)}")


def rights_to_recover(specs: Iterable[StreamSpec]) -> Iterator[tuple[str, ...]]:
    """Yield the words of `hdfs dfs` that let the supervisor write, and so recover, part files that are still to come.

    A job of Flink's creates them with mode 644.
    """
    for folder in [folder for spec in specs for folder, _ in spec.part_files]:
        yield "-mkdir", "-p", folder
        yield "-setfacl", "-m", f"default:user:{SUPERVISOR}:rwx", folder


def _home(minicluster: Minicluster, root: Path, folders: Mapping[str, Path]) -> AirflowHome:
    kstream = {f"{kind}_folder": str(folder) for kind, folder in folders.items()} | {"retry_delay": "3s"}
    env = _client_settings(minicluster)
    overrides = {"kstream": kstream, "dag_processor": {"min_file_process_interval": "60"}}
    return AirflowHome(root / "airflow", STUBS, env, crash=CrashSettings.brisk(), overrides=overrides)


def _unpause(home: AirflowHome, minicluster: Minicluster, specs: tuple[StreamSpec, ...]) -> None:
    api = home.api()
    api.put_connection(
        Connection(CONNECTION, "kstream", "The playground's cluster", extra=minicluster.connection(SUPERVISOR))
    )
    wanted = [stream_id(CONNECTION, spec.name) for spec in specs]
    wanted += [leases_id(CONNECTION), tickets_id(CONNECTION), keytabs_id(CONNECTION)]
    await_dags(api, wanted)
    for dag in wanted:
        api.unpause_dag(dag)


def leave_a_file_open(minicluster: Minicluster, stack: ExitStack) -> None:
    """Have a program write a file and forget it; `stack` ends the program.

    Raises MiniclusterError: when it could not write.
    """
    argv = [sys.executable, "-m", "airflow_kstream.demo.forgetful_writer", minicluster.default_fs, STUCK]
    env = minicluster.client_env(STREAMER)
    writer = subprocess.Popen(argv, env=env, cwd=minicluster.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stack.callback(writer.communicate)
    assert writer.stdout is not None
    if not writer.stdout.readline():
        raise MiniclusterError(f"its writer ended with {writer.wait()}", tried=f"write {STUCK}")
