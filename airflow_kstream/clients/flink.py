"""Flink's client as a child process, configured by a private folder alone; two of them run on a host at most."""

from __future__ import annotations

import fcntl
import math
import os
import re
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import yaml

from airflow_kstream.clients.client_process import (
    JAVA_BRISK,
    added_variables,
    java_kerberos,
    not_started,
    run_client,
    said_in,
    told,
)
from airflow_kstream.clients.kerberos.krb5_conf import krb5_conf_of_a_child
from airflow_kstream.clients.local.private import write_private
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, Unavailable
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.streams.flink_conf import line_breaks
from airflow_kstream.model.streams.horizon import launch_tokens
from airflow_kstream.model.streams.installations import FlinkInstallation
from airflow_kstream.model.streams.submission import Submission, SubmitOutcome

_DIST = re.compile(r"flink-dist[-_]([\d.]+)[\w.-]*\.jar")
_ENTRY_CLASS = re.compile(rb"^(?:program-class|Main-Class):[ ]*\S", re.MULTILINE | re.IGNORECASE)
_JAVA_OPTIONS = "env.java.opts"
# Variables that a child may inherit from this process: never credentials (KRB5CCNAME, HADOOP_TOKEN_FILE_LOCATION).
_INHERITED = ("PATH", "JAVA_HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "HOME", "USER", "HADOOP_CLASSPATH")
# Each is a JVM of 280 MB, which waits until its application runs.
_AT_ONCE, _MEMORY = 2, "-Xmx256m"
_TURN_EVERY, _WITHDRAWS_IN = 1.0, 60.0
_ERROR = re.compile(r"[ ]*The program finished with the following exception|Exception in thread |Could not ")
# What containers log with where the installation has nothing for them: without it they log nothing.
LOG4J = """\
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = FILE
appender.file.name = FILE
appender.file.type = RollingFile
appender.file.append = true
appender.file.fileName = ${sys:log.file}
appender.file.filePattern = ${sys:log.file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %-60c %x - %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 100MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 10
"""
_CLIENT_LOG = """\
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = FILE
appender.file.name = FILE
appender.file.type = File
appender.file.fileName = ${sys:log.file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %-60c %x - %m%n
"""
_LONGEST_LOG = 4 << 20


def installation(home: str) -> FlinkInstallation:
    """Look at a folder with a Flink; start nothing. Raises InvalidInput: when there is none."""
    folder = Path(home)
    if not (folder / "bin/flink").exists():
        raise InvalidInput(f"{home} has no bin/flink on this host")
    if not os.access(folder / "bin/flink", os.X_OK):
        raise InvalidInput(f"{home}/bin/flink is not executable")
    versions = [match[1] for jar in (folder / "lib").glob("*.jar") if (match := _DIST.fullmatch(jar.name))]
    if len(versions) != 1:
        raise InvalidInput(f"{home}/lib has {len(versions)} jars flink-dist-*, which tell the version; needed is one")
    version = tuple(int(part) for part in versions[0].strip(".").split("."))
    return FlinkInstallation(home, version, _java_options(folder / "conf"))


def check_entry_class(jar: Path) -> None:
    """Check that a jar of this host names the class with which it begins, as Flink's client looks for it
    (PackagedProgram.getEntryPointClassNameFromJar).

    Raises InvalidInput: when it names none, or can't be read.
    """
    try:
        with ZipFile(jar) as archive:
            manifest = archive.read("META-INF/MANIFEST.MF")
    except KeyError:
        manifest = b""
    except (OSError, BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        # The last two: it is compressed in a strange way, or encrypted.
        raise InvalidInput(f"{jar} can't be read as a jar: {error}") from error
    if not _ENTRY_CLASS.search(manifest):
        raise InvalidInput(f"{jar} names no Main-Class: declare deploy.main_class, the class with which the job begins")


def check_hadoop(cluster: Cluster) -> None:
    """Raises InvalidInput: when the client would find no Hadoop (YarnClusterDescriptor needs it)."""
    if not _variables(cluster).get("HADOOP_CLASSPATH"):
        raise InvalidInput(
            "Flink's client needs HADOOP_CLASSPATH, which is not set: set it to what `hadoop classpath` prints, on "
            f"this host or in client_environment of connection {cluster.name}"
        )


def environment(cluster: Cluster, home: str, ticket_cache: Path, folder: Path) -> dict[str, str]:
    """Return the whole environment of the client in `home`, whose configuration is in `folder`."""
    conf_dir, variables = cluster.hadoop_conf_dir or "", _variables(cluster)
    krb5_conf = krb5_conf_of_a_child(cluster.krb5_conf)
    java = [variables.pop("JVM_ARGS", ""), _MEMORY, *JAVA_BRISK, *(java_kerberos(krb5_conf) if krb5_conf else ())]
    return {
        **variables,
        **({"KRB5_CONFIG": krb5_conf} if krb5_conf else {}),
        "JVM_ARGS": " ".join(java).strip(),
        "FLINK_HOME": home,
        "FLINK_CONF_DIR": str(folder),
        "FLINK_LOG_DIR": str(folder),
        "HADOOP_CONF_DIR": conf_dir,
        "YARN_CONF_DIR": conf_dir,
        "KRB5CCNAME": f"FILE:{ticket_cache}",
    }


def submit(
    submission: Submission,
    cluster: Cluster,
    ticket_cache: Path,
    folder: Path,
    timeout: timedelta,
    tokens: SecretBytes | None = None,
) -> SubmitOutcome:
    """Run the client once; withdraw what waits for the queue for longer than `timeout`.

    `folder` is private, and outlives this process for as long as the client works in it. `tokens` are a credentials
    file, for the user whom this one proxies.

    Raises SubmissionFailed: when it can't be started. Raises InvalidInput: when a secret has several lines.
    """
    home = str(Path(submission.binary).parent.parent)
    try:
        conf_dir = _write_conf(submission, Path(home), folder)
        env = environment(cluster, home, ticket_cache, conf_dir)
        if submission.launched_as and submission.launched_as.do_as and tokens:
            env |= {
                "HADOOP_PROXY_USER": submission.launched_as.do_as,
                "HADOOP_TOKEN_FILE_LOCATION": str(write_private(folder / "launch-tokens", tokens.reveal())),
            }
    except OSError as error:
        raise not_started(submission.binary, error) from error
    exit_code, said = run_client(submission.argv(), env, folder, timeout, withdraws_in=_WITHDRAWS_IN)
    log = _log(conf_dir)
    return SubmitOutcome(
        exit_code, told(without_secrets(said or log), _ERROR), launch_tokens(log), withdrawn=exit_code is None
    )


def _variables(cluster: Cluster) -> dict[str, str]:
    return {name: os.environ[name] for name in _INHERITED if name in os.environ} | added_variables(cluster)


def _write_conf(submission: Submission, home: Path, folder: Path) -> Path:
    """Write all settings, secrets among them, and what containers log with."""
    conf_dir = folder / "flink-conf"
    conf_dir.mkdir(0o700)
    secrets = submission.revealed()
    if message := "; ".join(line_breaks(secrets)):
        raise InvalidInput(f"a secret of the declaration {message}")
    settings = {key: setting.value for key, setting in submission.settings.items()} | secrets
    lines = yaml.safe_dump({key: str(value) for key, value in settings.items()}, width=math.inf)
    write_private(conf_dir / "config.yaml", lines.encode())
    logging = home / "conf/log4j.properties"
    write_private(conf_dir / "log4j.properties", logging.read_bytes() if logging.is_file() else LOG4J.encode())
    write_private(conf_dir / "log4j-cli.properties", _CLIENT_LOG.encode())
    return conf_dir


def _log(conf_dir: Path) -> str:
    return "\n".join(said_in(path)[-_LONGEST_LOG:] for path in sorted(conf_dir.glob("*.log")))


def _java_options(conf_dir: Path) -> Mapping[str, str]:
    """Return the options of Java that an installation's own configuration has, in either form of that."""
    with suppress(OSError, yaml.YAMLError):
        modern, older = conf_dir / "config.yaml", conf_dir / "flink-conf.yaml"
        content = yaml.safe_load((modern if modern.is_file() else older).read_text())
        return {key: value for key, value in _flat("", content) if key.startswith(_JAVA_OPTIONS)}
    return {}


def _flat(key: str, content: Any) -> Iterator[tuple[str, str]]:
    if isinstance(content, Mapping):
        for name, below in content.items():
            yield from _flat(f"{key}.{name}" if key else str(name), below)
    elif content is not None:
        yield key, str(content)


@contextmanager
def turn(within: timedelta) -> Iterator[None]:
    """Be one of the few clients of this user on this host. Raises Unavailable: when none of them ends in time."""
    folder = Path(tempfile.gettempdir()) / f"kstream-flink-clients-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise InvalidInput(f"{folder} is not this user's own folder: remove it")
    deadline = time.monotonic() + within.total_seconds()
    locks = [os.open(folder / str(number), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600) for number in range(_AT_ONCE)]
    try:
        while not any(map(_is_ours, locks)):
            if time.monotonic() > deadline:
                raise Unavailable(f"{_AT_ONCE} Flink clients run on this host already", tried="start Flink's client")
            time.sleep(_TURN_EVERY)
        yield
    finally:
        for lock in locks:
            os.close(lock)


def _is_ours(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
