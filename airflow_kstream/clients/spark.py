"""spark-submit as a child process that inherits nothing by accident."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from airflow_kstream.clients.client_process import (
    JAVA_BRISK,
    added_variables,
    java_kerberos,
    not_started,
    run_client,
    told,
)
from airflow_kstream.clients.kerberos.krb5_conf import krb5_conf_of_a_child
from airflow_kstream.clients.local.private import write_private
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, SubmissionFailed
from airflow_kstream.model.fields import SPARK_BINARIES
from airflow_kstream.model.secrets import without_secrets
from airflow_kstream.model.streams.horizon import launch_tokens
from airflow_kstream.model.streams.submission import Submission, SubmitOutcome

# Variables that a child may inherit from this process: never credentials (KRB5CCNAME, HADOOP_TOKEN_FILE_LOCATION).
_INHERITED = (
    *("PATH", "JAVA_HOME", "SPARK_HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "HOME", "USER", "SPARK_LOCAL_IP"),
    "SPARK_LAUNCHER_OPTS",
)
_NOTHING: Mapping[str, str] = {}
# What spark-submit says itself, and what ended its JVM.
_ERROR = re.compile(r"Error: |Exception in thread ")
_USAGE = re.compile(r"^Usage: spark-submit .*(?:\n(?:(?:Usage: |Options:|[ \t]).*)?)*", re.MULTILINE)
# Characters that java.util.Properties would interpret; Spark drops blanks at a value's ends anyway.
_IN_VALUES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_IN_KEYS = _IN_VALUES | {sign: f"\\{sign}" for sign in " :=#!"}


def find_spark_submit(binary: str = SPARK_BINARIES[0]) -> str:
    """Return the path of a Spark client: in SPARK_HOME/bin, on PATH, or that of a pyspark beside this package.

    A path is returned as it is. Paths are for a person at a terminal; connections and declarations may only name one of
    SPARK_BINARIES.

    Raises InvalidInput: when it is not on this host, or is a pyspark's that is corrupt.
    """
    if "/" in binary:
        return _existing(Path(binary))
    for folder in _spark_folders():
        path = shutil.which(binary, path=folder)
        if path:
            _require_one_pyspark(path)
            return path
    raise InvalidInput(
        f"there is no {binary} in SPARK_HOME/bin or on PATH; a Spark client comes with the cluster's distribution, "
        "or with pip install 'airflow-kstream[spark]'"
    )


def environment(cluster: Cluster, ticket_cache: Path, binary: str) -> dict[str, str]:
    """Return the whole environment of `binary`, a Spark client: what its connection adds wins over this process's."""
    conf_dir, added = cluster.hadoop_conf_dir or "", added_variables(cluster)
    krb5_conf = krb5_conf_of_a_child(cluster.krb5_conf)
    kerberos = {"KRB5_CONFIG": krb5_conf} if krb5_conf else {}
    java = [*JAVA_BRISK, *(java_kerberos(krb5_conf) if krb5_conf else ())]
    return {
        **_with_options(_inherited(binary) | added, java),
        **kerberos,
        "HADOOP_CONF_DIR": conf_dir,
        "YARN_CONF_DIR": conf_dir,
        "KRB5CCNAME": f"FILE:{ticket_cache}",
    }


def submit(submission: Submission, env: Mapping[str, str], folder: Path, timeout: timedelta) -> SubmitOutcome:
    """Run spark-submit once, without retries; end it when it takes longer than `timeout`.

    `folder` is private: it holds the output and, if there are secrets, the properties file. It outlives this process
    for as long as spark-submit works in it.

    Raises SubmissionFailed: when it can't be started.
    """
    try:
        properties = _properties_file(submission.revealed(), folder, submission.defaults_file)
        argv = submission.argv(properties)
    except OSError as error:
        raise not_started(submission.binary, error) from error
    exit_code, log = run_client(argv, env, folder, timeout)
    return SubmitOutcome(exit_code, _told(log), launch_tokens(log))


def run_job(argv: Sequence[str], env: Mapping[str, str], folder: Path, timeout: timedelta) -> None:
    """Run a Spark client and wait for its driver, which runs in it; end it when it takes longer than `timeout`.

    `folder` is as in `submit`. Raises SubmissionFailed: when it can't be started, or ends with an error, with what
    it said of it.
    """
    exit_code, log = run_client(argv, env, folder, timeout)
    if exit_code != 0:
        how = "it took too long" if exit_code is None else f"it exited with {exit_code}"
        raise SubmissionFailed(f"{how}: {_told(log)}", tried=f"run {argv[0]}")


def names_for(cluster: Cluster, binary: str) -> frozenset[str]:
    """Return the names of the variables that `binary` gets, without a ticket being made."""
    return frozenset(environment(cluster, Path("/"), binary))


def local_environment(binary: str, added: Mapping[str, str] = _NOTHING) -> dict[str, str]:
    """Return the environment of `binary`, a Spark client, that speaks to no cluster; `added` is a connection's part."""
    return _with_options(_inherited(binary) | dict(added), JAVA_BRISK)


def _with_options(variables: Mapping[str, str], java: Sequence[str]) -> dict[str, str]:
    """Return variables with options of Java after those that they have: of two with one name Java takes the last."""
    given = variables.get("SPARK_SUBMIT_OPTS", os.environ.get("SPARK_SUBMIT_OPTS", ""))
    return {**variables, "SPARK_SUBMIT_OPTS": " ".join([given, *java]).strip()}


def _inherited(binary: str) -> dict[str, str]:
    """Return what the client inherits of this process.

    SPARK_HOME is for the client in it alone: every other script of Spark's would start that one's JVM instead.
    """
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    if not Path(binary).is_relative_to(inherited.get("SPARK_HOME", "/")):
        inherited.pop("SPARK_HOME", None)
    return inherited


def _properties_file(secret_conf: Mapping[str, str], folder: Path, defaults_file: str | None = None) -> str | None:
    """Write the secrets below the client's defaults, as they stand: of two lines for one key Java takes the last."""
    if not secret_conf:
        return None
    defaults = Path(defaults_file) if defaults_file else None
    text = "".join(f"{_escaped(key, _IN_KEYS)}={_escaped(value)}\n" for key, value in secret_conf.items())
    # The empty line ends a last line that would go on, for its backslash, in the first secret.
    above = defaults.read_bytes() + b"\n\n" if defaults and defaults.is_file() else b""
    return str(write_private(folder / "secret.properties", above + text.encode()))


def _escaped(text: str, signs: Mapping[str, str] = _IN_VALUES) -> str:
    return "".join(signs.get(sign, sign) for sign in text)


def _spark_folders() -> Iterator[str]:
    home = os.environ.get("SPARK_HOME")
    if home:
        yield str(Path(home) / "bin")
    yield os.environ.get("PATH", os.defpath)
    yield from (str(folder / "bin") for folder in _folders_of_pyspark())


def _folders_of_pyspark() -> Iterator[Path]:
    pyspark = find_spec("pyspark")
    if pyspark and pyspark.origin:
        yield Path(pyspark.origin).parent


def _require_one_pyspark(client: str) -> None:
    """Check the pair of packages that a client of this Python's own comes from: they own the same files.

    Raises InvalidInput: when they are of two versions; whichever was installed last has overwritten the other's.
    """
    if not any(Path(client).is_relative_to(folder) for folder in (Path(sys.prefix), *_folders_of_pyspark())):
        return
    versions: dict[str, str] = {}
    for name in ("pyspark", "pyspark-client"):
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    if len({*versions.values()}) > 1:
        pair = " and ".join(f"{name} {version}" for name, version in versions.items())
        # The newer of the two may have no counterpart yet: pyspark 4.3.0 came without a pyspark-client.
        both_have = min(versions.values(), key=_in_order)
        one = " ".join(f"{name}=={both_have}" for name in versions)
        raise InvalidInput(
            f"{pair} are installed, which own the same files: {client} is a mixture of both. Install them again as "
            f"one version: pip install --force-reinstall --no-deps {one}"
        )


def _in_order(version: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", version)]


def _existing(path: Path) -> str:
    if not os.access(path, os.X_OK):
        raise InvalidInput(f"spark-submit: {path} is not an executable file")
    return str(path)


def _told(log: str) -> str:
    """Return what the client said of its end, without its usage, which would push the errors out of it."""
    return told(_USAGE.sub("", without_secrets(log)), _ERROR)
