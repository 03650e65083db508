"""spark-submit as a child process that inherits nothing by accident."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

from airflow_kstream.clients.kerberos.krb5_conf import krb5_conf_of_a_child
from airflow_kstream.clients.local.private import write_private
from airflow_kstream.model.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, Unavailable
from airflow_kstream.model.submission import Submission, SubmitOutcome

# What a child may take over from this process. Credentials (KRB5CCNAME, HADOOP_TOKEN_FILE_LOCATION) never.
_INHERITED = ("PATH", "JAVA_HOME", "SPARK_HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "HOME", "USER", "SPARK_LOCAL_IP")
_TAIL_LINES = 30


def find_spark_submit(binary: str = "spark-submit") -> str:
    """The path of the binary: as given, or that of the pyspark beside this package."""
    if "/" in binary:
        return _existing(Path(binary))
    home = os.environ.get("SPARK_HOME") or _pyspark_home()
    if home is None:
        raise InvalidInput("there is neither SPARK_HOME nor a pyspark package to take spark-submit from")
    return _existing(Path(home) / "bin" / binary)


def hadoop_version(spark_submit: str) -> tuple[int, ...] | None:
    """The version of the Hadoop client jars beside spark-submit; None where they have no such name."""
    jars = Path(spark_submit).resolve().parent.parent / "jars"
    for jar in sorted([*jars.glob("hadoop-client-api-*.jar"), *jars.glob("hadoop-common-*.jar")]):
        match = re.search(r"-(\d+)\.(\d+)\.(\d+)", jar.name)
        if match:
            return tuple(int(part) for part in match.groups())
    return None


def check_conf_folder(cluster: Cluster) -> None:
    """Without these files spark-submit would try Hadoop's default addresses: raise InvalidInput instead."""
    folder = Path(cluster.hadoop_conf_dir or "")
    missing = [name for name in ("core-site.xml", "yarn-site.xml") if not (folder / name).is_file()]
    if not cluster.hadoop_conf_dir or missing:
        raise InvalidInput(f"to submit, connection {cluster.name} needs a hadoop_conf_dir with core- and yarn-site.xml")


def environment(cluster: Cluster, ticket_cache: Path) -> dict[str, str]:
    """The child's whole environment."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    conf_dir = cluster.hadoop_conf_dir or ""
    krb5_conf = krb5_conf_of_a_child(cluster.krb5_conf)
    kerberos = {"KRB5_CONFIG": krb5_conf, "SPARK_SUBMIT_OPTS": _java_options(krb5_conf)} if krb5_conf else {}
    return {
        **inherited,
        **kerberos,
        "HADOOP_CONF_DIR": conf_dir,
        "YARN_CONF_DIR": conf_dir,
        "KRB5CCNAME": f"FILE:{ticket_cache}",
        "SPARK_HOME": inherited.get("SPARK_HOME") or _pyspark_home() or "",
    }


def submit(submission: Submission, env: Mapping[str, str], folder: Path, timeout: timedelta) -> SubmitOutcome:
    """Run spark-submit once; never again by itself. Raise Unavailable when it takes longer than `timeout`.

    `folder` is private: it takes the output and, where there are secrets, the properties file.
    """
    argv = submission.argv(_properties_file(submission.secret_conf, folder))
    output = folder / "spark-submit.log"
    with output.open("wb") as sink:
        try:
            done = subprocess.run(
                argv, env=dict(env), stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
                timeout=timeout.total_seconds(), check=False, cwd=folder,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            tried = f"run {submission.binary}"
            raise Unavailable(f"it didn't end within {timeout}: {_tail(output)}", tried=tried) from error
    return SubmitOutcome(done.returncode, _tail(output))


def _properties_file(secret_conf: Mapping[str, str], folder: Path) -> str | None:
    if not secret_conf:
        return None
    # Java reads a backslash in a properties file as the start of an escape.
    escaped = {key: value.replace("\\", "\\\\").replace("\n", "\\n") for key, value in secret_conf.items()}
    text = "".join(f"{key} {value}\n" for key, value in escaped.items())
    return str(write_private(folder / "secret.properties", text.encode()))


def _java_options(krb5_conf: str) -> str:
    # Java ignores KRB5_CONFIG; from 17 on Hadoop's Kerberos code needs these packages opened to it.
    opened = "java.security.jgss/sun.security.krb5=ALL-UNNAMED"
    return f"-Djava.security.krb5.conf={krb5_conf} --add-exports={opened} --add-opens={opened}"


def _pyspark_home() -> str | None:
    found = find_spec("pyspark")
    return str(Path(found.origin).parent) if found and found.origin else None


def _existing(path: Path) -> str:
    if not os.access(path, os.X_OK):
        raise InvalidInput(f"spark-submit: {path} is not an executable file")
    return str(path)


def _tail(output: Path) -> str:
    return "\n".join(output.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
