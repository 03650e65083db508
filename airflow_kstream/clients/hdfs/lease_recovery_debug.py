"""`hdfs debug recoverLease` of an installed Hadoop client: a JVM for each file, one after the other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta

from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.kerberos.krb5_conf import krb5_conf_of_a_child
from airflow_kstream.clients.local.private import kept_for_a_child, private_folder
from airflow_kstream.clients.rpc.java_exceptions import error_of_words
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, KstreamError, Unavailable
from airflow_kstream.model.kerberos.identity import Identity

# Variables that a child may inherit from this process: never credentials (KRB5CCNAME, HADOOP_TOKEN_FILE_LOCATION).
_CLIENT = ("JAVA_HOME", "HADOOP_HOME", "HADOOP_COMMON_HOME", "HADOOP_HDFS_HOME", "HADOOP_LIBEXEC_DIR")
_INHERITED = (*_CLIENT, "PATH", "TZ", "TMPDIR", "HOME", "USER")
# From Java 17 on, Hadoop's Kerberos code needs these packages opened; Java 8 does not read this variable.
_OPENED = "java.security.jgss/sun.security.krb5=ALL-UNNAMED"
# The tool's own first line; the rest may contain a path, and a path may contain anything.
_ANSWER = re.compile(
    r"^(?:(?P<begun>recoverLease returned false\.$)|(?P<uri>URISyntaxException for )"
    r"|recoverLease got exception: (?P<words>.*?)(?=^\tat |^Giving up |\Z))",
    re.MULTILINE | re.DOTALL,
)


class DebugRecoverer:
    """Hadoop's own tool, with a ticket cache of its own. Not for several threads.

    `binary` is a path, or a name on the PATH. `attempts` is the tool's -retries, between which it sleeps 5 s; one is
    enough for a caller that checks for itself whether the file closes. `timeouts` applies to each attempt.
    The tool reads a path as a URI: a path with a space, or anything else that a URI must escape, gets InvalidInput.
    That and any other refusal is the file's answer. Raises InvalidInput: when there is no such program.
    """

    batch = 1
    latency = 0.0

    def __init__(
        self,
        cluster: Cluster,
        identity: Identity,
        binary: str = "hdfs",
        attempts: int = 1,
        timeouts: timedelta = timedelta(seconds=90),
    ) -> None:
        if not cluster.hadoop_conf_dir:
            raise InvalidInput(f"connection {cluster.name} has no hadoop_conf_dir, which {binary} needs")
        self._binary = _path_of(binary)
        self._cluster = cluster
        self._identity = identity
        self._attempts = attempts
        self._seconds = attempts * timeouts.total_seconds()
        self._opened = ExitStack()
        self._cache = self._opened.enter_context(private_folder()) / "tickets"

    def request_recovery(self, paths: Sequence[str]) -> list[bool | KstreamError]:
        return [self._recover(path) for path in paths]

    def close(self) -> None:
        self._opened.close()

    def _recover(self, path: str) -> bool | KstreamError:
        try:
            tickets.acquire(self._identity, self._cache)
            return self._understood(self._run(path))
        except KstreamError as error:
            return error

    def _run(self, path: str) -> subprocess.CompletedProcess[str]:
        argv = [self._binary, "debug", "recoverLease", "-path", path, "-retries", str(self._attempts)]
        folder = self._cache.parent
        try:
            with kept_for_a_child(folder) as lock:
                return subprocess.run(
                    argv, env=self._environment(), stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                    errors="replace", timeout=self._seconds, check=False, cwd=folder, pass_fds=(lock,),
                )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise self._error(Unavailable, f"it did not end within {self._seconds:.0f} s") from None
        except (OSError, ValueError) as error:
            raise self._error(InvalidInput, f"it could not be run: {error}") from error

    def _environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        krb5_conf = krb5_conf_of_a_child(self._cluster.krb5_conf)
        realm = {"KRB5_CONFIG": krb5_conf, "HADOOP_OPTS": f"-Djava.security.krb5.conf={krb5_conf}"} if krb5_conf else {}
        return {
            **inherited,
            **realm,
            **({"HADOOP_PROXY_USER": self._identity.do_as} if self._identity.do_as else {}),
            # In other locales Java would garble the path.
            "LC_ALL": "C.UTF-8",
            "JDK_JAVA_OPTIONS": f"--add-exports={_OPENED} --add-opens={_OPENED}",
            "HADOOP_CONF_DIR": self._cluster.hadoop_conf_dir or "",
            "KRB5CCNAME": f"FILE:{self._cache}",
        }

    def _understood(self, ran: subprocess.CompletedProcess[str]) -> bool:
        """Read the words of DebugAdmin, the same from 2.7 to 3.5; only success goes to standard output."""
        if ran.returncode == 0 and ran.stdout.startswith("recoverLease SUCCEEDED on "):
            return True
        match = _ANSWER.search(ran.stderr)
        if match and match["begun"]:
            return False
        if match and match["uri"]:
            raise self._error(InvalidInput, "the tool only accepts paths that are valid URIs: no space, for example")
        words = " ".join((match["words"] if match else ran.stderr[:300] or "no output").split())
        raise self._error(error_of_words(words), words)

    def _error(self, kind: type[KstreamError], words: str) -> KstreamError:
        return kind(
            words, tried=f"run {self._binary} debug recoverLease", server=self._cluster.default_fs,
            principal=str(self._identity),
        )  # fmt: skip


def _path_of(binary: str) -> str:
    path = shutil.which(binary)
    if path is None:
        raise InvalidInput(f"there is no program {binary} here; install a Hadoop client, or give its path")
    return path
