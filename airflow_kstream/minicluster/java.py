"""Command lines of the minicluster's JVMs."""

from __future__ import annotations

import os
from pathlib import Path

from airflow_kstream.minicluster import class_archive
from airflow_kstream.minicluster.jars import hadoop_jars, kafka_jars, native_library
from airflow_kstream.minicluster.site import Site
from airflow_kstream.minicluster.tools import java_home


def hadoop(site: Site, conf: Path, name: str, *options: str, beside: tuple[Path, ...] = ()) -> list[str]:
    """Return the start of a Hadoop program's command line; its main class and arguments follow.

    `beside` are folders of further jars.
    """
    jars = hadoop_jars()
    archive = class_archive.options(jars, site.folders.hadoop_classes / name)
    # The jars come before the folder: a class archive fits classpaths that begin with the jars it was made from.
    classpath = os.pathsep.join([*(f"{folder}/*" for folder in (jars, *beside)), str(conf)])
    return [*_java(site), *archive, f"-Djava.library.path={native_library()}", *options, "-cp", classpath]


def kafka(site: Site, name: str) -> list[str]:
    """Return the start of a Kafka program's command line."""
    jars = kafka_jars()
    archive = class_archive.options(jars, site.folders.kafka_classes / name)
    return [*_java(site), *archive, *logging(site, name), "-cp", f"{jars}/*"]


def logging(site: Site, name: str, configuration: str = "log4j.properties") -> list[str]:
    """Return the options that send a program's log to a file of that name."""
    log4j = site.folders.daemon_conf / configuration
    return [f"-Dlog4j.configuration={log4j.as_uri()}", f"-Dkstream.log={site.folders.log(name)}"]


def environment(site: Site, conf: Path) -> dict[str, str]:
    """Return the environment of daemons and administration, without the caller's own Kerberos and Hadoop."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(site.folders.homes),
        "TMPDIR": str(site.folders.temporary),
        "JAVA_HOME": str(java_home()),
        "HADOOP_CONF_DIR": str(conf),
        "KRB5_CONFIG": str(site.folders.krb5_conf),
        "KRB5_KDC_PROFILE": str(site.folders.kdc / "kdc.conf"),
        "KRB5CCNAME": "FILE:/nonexistent",
    }


def _java(site: Site) -> list[str]:
    return [str(java_home() / "bin/java"), *site.java_options_outside_yarn()]
