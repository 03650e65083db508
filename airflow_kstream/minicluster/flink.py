"""Flink of a minicluster: its jars on HDFS, from where containers get them, and what clients and jobs need here.

It has no daemon: each application brings its JobManager.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil
import yaml

from airflow_kstream.clients.flink import LOG4J
from airflow_kstream.minicluster import hdfs
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.jars import flink_jars, hadoop_jars, native_library
from airflow_kstream.minicluster.java import hadoop
from airflow_kstream.minicluster.site import NAMESERVICE, Site
from airflow_kstream.minicluster.tools import java_home
from airflow_kstream.model.streams.flink_conf import BACKOFF

# Words of the command lines of an application's processes.
JOB_MANAGER, TASK_MANAGER = "YarnApplicationClusterEntryPoint", "YarnTaskExecutorRunner"
_MAIN = "org.apache.flink.client.cli.CliFrontend"
# Since Java 17 Flink's serializers and its closure cleaner need these.
_OPENED = ("io", "lang", "lang.reflect", "net", "nio", "text", "time", "util", "util.concurrent")


def release(feature: Feature) -> str:
    """Return the number of this Flink's release."""
    return next(flink_jars(feature).glob("flink-dist-*.jar")).stem.removeprefix("flink-dist-")


def put_on_hdfs(site: Site, feature: Feature) -> None:
    """Copy the jars to HDFS, readable by all: NodeManagers fetch them as themselves, without a job's tokens."""
    folder = _lib(feature)
    for words in (("-mkdir", "-p", folder), ("-put", *map(str, sorted(flink_jars(feature).glob("*.jar"))), folder)):
        command = [*hadoop(site, site.folders.client_conf, "client"), hdfs.COMMANDS["dfs"], *words]
        hdfs.with_ticket(site, "hdfs", command, site.folders.client_conf).check()


def conf(site: Site, feature: Feature) -> dict[str, str]:
    """Return the settings that a job of Flink on this minicluster needs; a real cluster needs none of them."""
    return {
        "yarn.provided.lib.dirs": lib_dir(feature),
        **defaults(site),
        "env.java.opts.all": _java_options(site),
    }


def defaults(site: Site) -> dict[str, str]:
    """Return those of them that are a connection's, and not a Flink's own."""
    return {
        # On YARN `localhost` is dropped, and each process listens on all addresses of the host.
        "rest.bind-address": "127.0.0.1",
        "jobmanager.bind-host": "127.0.0.1",
        "taskmanager.bind-host": "127.0.0.1",
        "taskmanager.host": "127.0.0.1",
        "jobmanager.memory.process.size": "768m",
        "taskmanager.memory.process.size": "768m",
        "taskmanager.memory.managed.size": "32m",
        "taskmanager.memory.network.min": "32m",
        "taskmanager.memory.network.max": "32m",
        # A JobManager that is killed leaves its folder there.
        "web.tmpdir": str(site.folders.root / "tmp"),
        # Tokens live for minutes here.
        BACKOFF: "20 s",
        # Of the containers' logs on NodeManagers, too.
        "yarn.view.acls": "supervisor",
    }


def client(site: Site, feature: Feature, conf_dir: Path, settings: Mapping[str, Any], job: Iterable[str]) -> list[str]:
    """Return the command line of Flink's client that submits a job in application mode: its options, jar and words.

    All its settings are written into `conf_dir`, a new folder, with which it has to run as FLINK_CONF_DIR.
    """
    conf_dir.mkdir(mode=0o700)
    own = {"execution.target": "yarn-application", "yarn.application-attempts": 1}
    (conf_dir / "config.yaml").write_text(yaml.safe_dump({**conf(site, feature), **own, **settings}))
    (conf_dir / "log4j.properties").write_text(LOG4J)
    logging = [
        f"-Dlog.file={conf_dir}/client.log",
        f"-Dlog4j.configurationFile={(conf_dir / 'log4j.properties').as_uri()}",
    ]
    java = [str(java_home() / "bin/java"), *site.java_options_outside_yarn(), *_opened(), *logging, "-Xmx256m"]
    # Its own logging comes before Hadoop's.
    classpath = os.pathsep.join([f"{flink_jars(feature)}/*", str(site.folders.client_conf), f"{hadoop_jars()}/*"])
    # What starts an application changed with Flink 2.
    verb = "run-application" if feature is Feature.FLINK else "run"
    return [*java, f"-Djava.library.path={native_library()}", "-cp", classpath, _MAIN, verb, *job]


def home(site: Site, feature: Feature) -> Path:
    """Return a folder that is laid out as a distribution's FLINK_HOME, and make it if there is none yet.

    Its client does what a distribution's does, except that it knows Java's options itself.
    """
    folder = site.folders.root / str(feature)
    if not (folder / "bin/flink").exists():
        for name in ("bin", "conf"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "lib").symlink_to(flink_jars(feature))
        (folder / "conf/config.yaml").write_text(f"env:\n  java:\n    opts:\n      all: {_java_options(site)}\n")
        (folder / "conf/log4j.properties").write_text(LOG4J)
        (folder / "bin/flink").write_text(_script(site))
        (folder / "bin/flink").chmod(0o755)
    return folder


def hadoop_classpath() -> str:
    """Return what `hadoop classpath` prints at a site."""
    return f"{hadoop_jars()}/*"


def lib_dir(feature: Feature) -> str:
    """Return the folder on HDFS with this Flink's jars."""
    return f"hdfs://{NAMESERVICE}{_lib(feature)}"


def processes(root: Path, application: str, role: str) -> list[psutil.Process]:
    """Return the application's JVMs that have this role; the shells that started them wait beside them."""
    return [process for process in psutil.process_iter() if _has(process, root, application, role)]


def empty_the_nodes_cache(root: Path, application: str) -> None:
    """Make the node like one that never ran the application: take away what was localised for it.

    Processes that run keep their files, as on another node: a JobManager reads its keytab again and again.
    """
    here = f"data/containers/usercache/*/appcache/{application}"
    for file in root.glob(f"{here}/filecache/*"):
        file.rename(file.parent.with_name(f"taken-{file.name}"))
    for link in root.glob(f"{here}/container_*/*"):
        if link.is_symlink() and not link.exists():
            taken = str(link.readlink()).replace("/filecache/", "/taken-")
            link.unlink()
            link.symlink_to(taken)


def lose_taskmanager(root: Path, application: str) -> list[int]:
    """Kill the application's TaskManager, as on a node that fails and is replaced by another; return its pid."""
    empty_the_nodes_cache(root, application)
    killed = processes(root, application, TASK_MANAGER)
    for process in killed:
        process.kill()
    return [process.pid for process in killed]


def jobmanager_log(root: Path, application: str) -> str:
    """Return the log of the JobManager, while YARN has not taken it away."""
    logs = root / "logs/containers" / application
    return "".join(file.read_text(errors="replace") for file in logs.glob("*/jobmanager.log"))


def _script(site: Site) -> str:
    java = [*site.java_options_outside_yarn(), *_opened(), f"-Djava.library.path={native_library()}"]
    logging = '-Dlog.file="$FLINK_LOG_DIR/flink-client.log"'
    log4j = '-Dlog4j.configurationFile="file:$FLINK_CONF_DIR/log4j-cli.properties"'
    classpath = '"$FLINK_HOME/lib/*:$HADOOP_CLASSPATH:$HADOOP_CONF_DIR"'
    words = [str(java_home() / "bin/java"), *map(shlex.quote, java), "$JVM_ARGS", logging, log4j, "-cp", classpath]
    return f'#!/bin/sh\nexec {" ".join(words)} {_MAIN} "$@"\n'


def _java_options(site: Site) -> str:
    return " ".join([*site.java_options(), *_opened()])


def _opened() -> list[str]:
    return [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED]


def _lib(feature: Feature) -> str:
    return f"/flink/{release(feature)}/lib"


def _has(process: psutil.Process, root: Path, application: str, role: str) -> bool:
    try:
        folder, words = process.cwd(), process.cmdline()
        inside = folder.startswith(f"{root}/") and application in folder
        return inside and words[0].endswith("java") and any(role in word for word in words)
    except (psutil.Error, IndexError):
        return False
