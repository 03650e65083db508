"""The minicluster and its verbs."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow_kstream.minicluster import flink, hdfs, jars, record, yarn
from airflow_kstream.minicluster.answers import not_serving, patiently
from airflow_kstream.minicluster.bringup import begin, processes, start, steps
from airflow_kstream.minicluster.clients import client_environment, spark_conf
from airflow_kstream.minicluster.config import FLINKS, Feature, MiniclusterConfig
from airflow_kstream.minicluster.daemons import Daemon, daemons_of
from airflow_kstream.minicluster.java import hadoop
from airflow_kstream.minicluster.processes import Identity, end
from airflow_kstream.minicluster.site import NAMESERVICE, Site
from airflow_kstream.minicluster.startup import Listener, Progress, run_steps
from airflow_kstream.minicluster.status import DaemonStatus, without_active
from airflow_kstream.minicluster.tools import require
from airflow_kstream.minicluster.web import kerberos_of
from airflow_kstream.model.errors import InvalidInput, MiniclusterError

_TOOLS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "java")
_KILL_SECONDS = 10


class Minicluster:
    """A real kerberized cluster on loopback, in a folder of its own.

    It outlives the process that started it, and any process can use it with `Minicluster.at(root)`. Daemons are named
    kdc, journalnode, nn1, nn2, datanode, resourcemanager, nodemanager, httpfs and kafka; with the feature `rm-ha`
    zookeeper, rm1 and rm2 take the place of resourcemanager; further DataNodes are datanode2 and datanode3. Every
    method raises MiniclusterError: when it fails. Keep no data that matters in it: `up` in the same folder deletes
    everything.
    """

    nameservice = NAMESERVICE
    default_fs = f"hdfs://{NAMESERVICE}"

    def __init__(self, site: Site) -> None:
        self._site = site
        self._folders = site.folders
        self._daemons = {daemon.name: daemon for daemon in daemons_of(site)}

    @classmethod
    def up(cls, plan: MiniclusterConfig, progress: Listener | None = None) -> Minicluster:
        """Start all daemons and return when each serves; on failure nothing is left running.

        Raises MiniclusterError: when a step fails, with its name and the line of its log that says why.
        """
        require(*_TOOLS, *jars.tools_of_a_download(plan.features))
        site = begin(plan)
        minicluster = cls(site)
        try:
            with kerberos_of(site):
                run_steps(steps(site), progress or _silence)
        except BaseException:
            minicluster.down()
            raise
        return minicluster

    @classmethod
    def at(cls, root: Path) -> Minicluster:
        """Return the minicluster that was brought up in this folder, running or not."""
        return cls(record.read_site(Path(root).resolve()))

    def down(self) -> None:
        """Stop every daemon, every YARN container and their children. Logs and data stay. Idempotent."""
        for _ in range(3):
            running = processes(self._folders)
            if not running:
                return
            end(running)
        raise MiniclusterError(
            f"Still running in {self.root}: {[identity.pid for identity in processes(self._folders)]}"
        )

    # Settings for clients.

    @property
    def plan(self) -> MiniclusterConfig:
        return self._site.plan

    @property
    def root(self) -> Path:
        return self._folders.root

    @property
    def realm(self) -> str:
        return self._site.plan.realm

    @property
    def krb5_conf(self) -> Path:
        return self._folders.krb5_conf

    @property
    def conf_dir(self) -> Path:
        """Return the HADOOP_CONF_DIR of clients."""
        return self._folders.client_conf

    @property
    def resourcemanagers(self) -> tuple[str, ...]:
        return tuple(self._site.url(f"{name}-web") for name in self._site.resourcemanagers)

    @property
    def namenodes(self) -> tuple[str, ...]:
        return tuple(self._site.url(f"{name}-web") for name in self._site.namenodes)

    @property
    def httpfs(self) -> str:
        self._require("httpfs")
        return self._site.url("httpfs-web")

    @property
    def bootstrap_servers(self) -> str:
        self._require("kafka")
        return self._site.address("kafka")

    def event_logs(self) -> dict[str, Path]:
        """Return the logs about tokens and applications: plain files that only grow while the minicluster is up."""
        log, names = self._folders.log, self._site.namenodes
        services = {f"{name}-service": log(name) for name in names}
        audits = {f"{name}-audit": log(f"{name}-audit") for name in names}
        return {**services, **audits, **{name: log(name) for name in self._site.resourcemanagers}}

    # Principals.

    def principal(self, name: str) -> str:
        return self._site.kdc.principal(name)

    def keytab(self, name: str) -> Path:
        return self._site.kdc.keytab(name)

    def add_principal(self, *names: str) -> None:
        self._site.kdc.add(*names)

    def rotate(self, name: str) -> None:
        """Give the principal a new key, and a keytab that holds only that key."""
        self._site.kdc.rotate(name)

    def limit_life(self, name: str, life: timedelta, renewable: timedelta | None = None) -> None:
        """Limit the life of the principal's future tickets, and for how long in all they can be renewed."""
        self._site.kdc.limit_life(name, life, renewable)

    def change_key(self, name: str, *options: str) -> None:
        """Change the key in the KDC, with options of kadmin's `cpw`; the keytab does not change."""
        self._site.kdc.change_key(name, *options)

    def export_keytab(self, name: str) -> None:
        """Write the KDC's present key into the principal's keytab."""
        self._site.kdc.export(name)

    def client_env(self, name: str) -> dict[str, str]:
        """Return the whole environment for a child process of that principal, with a fresh ticket cache of its own."""
        return client_environment(self._site, name)

    def spark_conf(self) -> dict[str, str]:
        """Return the confs that a Spark job on this minicluster needs; a real cluster needs none of them."""
        return spark_conf(self._site)

    def flink_client(
        self, conf_dir: Path, settings: Mapping[str, Any], job: Iterable[str], feature: Feature = Feature.FLINK
    ) -> list[str]:
        """Return the command line of Flink's client that submits a job, for `client_env` and this FLINK_CONF_DIR."""
        return flink.client(self._site, feature, conf_dir, settings, job)

    def connection(self, name: str = "streamer") -> dict[str, Any]:
        """Return the fields of a connection to this minicluster as one of its principals."""
        return {
            "principal": self.principal(name),
            "keytab_path": str(self.keytab(name)),
            "hadoop_conf_dir": str(self.conf_dir),
            "krb5_conf": str(self.krb5_conf),
            "state_dir": "/kstream",
            "spark_conf": self.spark_conf(),
            **self._flink_fields(),
            **({"tls_ca": str(self._folders.ca)} if self._site.scheme == "https" else {}),
        }

    def _flink_fields(self) -> dict[str, Any]:
        homes = {
            str(feature): str(flink.home(self._site, feature)) for feature in FLINKS if feature in self.plan.features
        }
        if not homes:
            return {}
        environment = {"HADOOP_CLASSPATH": flink.hadoop_classpath()}
        return {"flink_homes": homes, "flink_conf": flink.defaults(self._site), "client_environment": environment}

    def flink_lib_dir(self, feature: Feature = Feature.FLINK) -> str:
        """Return the folder on HDFS with the jars of this Flink."""
        return flink.lib_dir(feature)

    # Hadoop's own programs.

    def hdfs(
        self, *arguments: str, as_: str = "hdfs", stdin: int = subprocess.DEVNULL
    ) -> subprocess.CompletedProcess[str]:
        """Run the command `hdfs`: dfs, dfsadmin, haadmin, fsck, crypto or debug, with its arguments."""
        command, *rest = arguments
        if command not in hdfs.COMMANDS:
            raise InvalidInput(f"{command!r} is not a command of hdfs here; there are {', '.join(hdfs.COMMANDS)}")
        return self.hadoop_main(hdfs.COMMANDS[command], *rest, as_=as_, stdin=stdin)

    def hadoop_main(
        self, main_class: str, *arguments: str, as_: str = "hdfs", stdin: int = subprocess.DEVNULL
    ) -> subprocess.CompletedProcess[str]:
        """Run a main class of the minicluster's jars as that principal; the caller checks the exit code.

        It works in the minicluster's folder, and takes relative paths of this host from the caller's.
        """
        java, *words = self.hadoop_command(main_class, *arguments)
        command = [java, f"-Duser.dir={Path.cwd()}", *words]
        return hdfs.with_ticket(self._site, as_, command, self.conf_dir, stdin).completed

    def hadoop_command(self, main_class: str, *arguments: str) -> list[str]:
        """Return the command line of a main class of the minicluster's jars, for `client_env`."""
        return [*hadoop(self._site, self.conf_dir, "client"), main_class, *arguments]

    def active_namenode(self) -> str:
        """Return the active NameNode's name. Raises MiniclusterError: when none is active within a minute."""
        return patiently(self._active_namenode)

    def _active_namenode(self) -> str:
        # Not held between two questions: the process that makes one active needs it too.
        with kerberos_of(self._site):
            return hdfs.active_namenode(self._site)

    def failover(self) -> str:
        """Make the other NameNode the active one, and return its name. A dead active NameNode is fenced."""
        self._require("nn2")
        with kerberos_of(self._site):
            return hdfs.fail_over(self._site)

    def active_resourcemanager(self) -> str:
        """Return the active ResourceManager's name. Raises MiniclusterError: when none is active within a minute."""
        return patiently(self._active_resourcemanager)

    def _active_resourcemanager(self) -> str:
        with kerberos_of(self._site):
            return yarn.active_resourcemanager(self._site)

    def failover_rm(self) -> str:
        """Make the other ResourceManager the active one, and return its name; applications keep running.

        They elect the active one themselves, and Hadoop lets nobody choose: the active one ends (SIGTERM, so that it
        leaves the election at once), the other one takes over, and the first starts again as the standby. One that is
        killed or paused stays elected until its session with ZooKeeper has ended, 10 s later; one that is resumed after
        that says for a second or two that it is active, as its successor does. It may then hang on its way to standby,
        in no election (YARN-11935): if nobody takes over within a minute, the other one is killed and started again.
        """
        self._require("rm2")
        active = self.active_resourcemanager()
        other = next(name for name in self._site.resourcemanagers if name != active)
        if (state := self._identity(other).state()) != "running":
            raise MiniclusterError(f"{other} is {state}: it can't take over from {active}")
        end([self._identity(active)])
        try:
            elected = self.active_resourcemanager()
        except MiniclusterError:
            self.kill(other)
            self.start(other)
            elected = self.active_resourcemanager()
        self.start(active)
        return elected

    # Daemons.

    def status(self) -> list[DaemonStatus]:
        with kerberos_of(self._site):
            return [self._status(daemon) for daemon in self._daemons.values()]

    def without_active(self, status: Iterable[DaemonStatus]) -> list[str]:
        """Return a sentence for each pair of servers none of which is active, with what to do."""
        return list(without_active(self._site, status))

    def log(self, daemon: str) -> Path:
        return self._folders.log(self._require(daemon).name)

    def kill(self, daemon: str) -> None:
        """SIGKILL the daemon and wait until it is gone. YARN containers of a killed NodeManager keep running."""
        identity = self._identity(daemon)
        identity.send(signal.SIGKILL)
        if not identity.wait(_KILL_SECONDS):
            raise MiniclusterError(f"{daemon} survived SIGKILL")

    def start(self, daemon: str) -> None:
        """Restart a dead daemon with its data, ports and identity, and return when it serves."""
        row = self._require(daemon)
        if self._identity(daemon).state() != "dead":
            raise MiniclusterError(f"{daemon} is not dead: it can't be started")
        with kerberos_of(self._site):
            start(self._site, row, threading.Event())

    def pause(self, daemon: str) -> None:
        """SIGSTOP the daemon: from now on nothing answers, and its connections stay open."""
        self._identity(daemon).pause()

    def resume(self, daemon: str) -> None:
        self._identity(daemon).resume()

    def _status(self, daemon: Daemon) -> DaemonStatus:
        identity = record.read_processes(self._folders).get(daemon.name)
        state = identity.state() if identity else "dead"
        pid = identity.pid if identity and state != "dead" else None
        serves, answer = self._answer(daemon) if state == "running" else (False, "")
        return DaemonStatus(daemon.name, pid, state, self._site.address(daemon.ports[0]), answer, serves)

    def _answer(self, daemon: Daemon) -> tuple[bool, str]:
        try:
            return True, daemon.ask(self._site)
        except not_serving() as error:
            return False, str(error)

    def _require(self, daemon: str) -> Daemon:
        if daemon not in self._daemons:
            raise InvalidInput(f"This minicluster has no {daemon!r}; it has {', '.join(self._daemons)}")
        return self._daemons[daemon]

    def _identity(self, daemon: str) -> Identity:
        identities = record.read_processes(self._folders)
        if self._require(daemon).name not in identities:
            raise MiniclusterError(f"{daemon} was never started")
        return identities[daemon]


def _silence(_: Progress) -> None:
    return None
