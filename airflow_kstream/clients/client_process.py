"""An engine's client as a child process that inherits nothing by accident."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.clients.local.private import kept_for_a_child
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, SubmissionFailed

# It lives for seconds: an optimising compiler does not pay for itself. Without it a submission to a minicluster takes
# 6.2 seconds of CPU, with it 10.2.
JAVA_BRISK = ("-XX:TieredStopAtLevel=1",)
# How many lines of what a client said are reported.
_SAID = 30
_FRAME = re.compile(r"\s+(at \S+\(|\.\.\. \d+ more)")
# NodeManager settings that copy a container's environment into its log, and their defaults (yarn-default.xml of 3.4).
_LOGS_ENVIRONMENT = {
    "yarn.nodemanager.log-container-debug-info.enabled": "true",
    "yarn.nodemanager.log-container-debug-info-on-error.enabled": "false",
}


def check_conf_folder(cluster: Cluster) -> None:
    """Raises InvalidInput: when files are missing, as a client would then try Hadoop's default addresses."""
    folder = Path(cluster.hadoop_conf_dir or "")
    missing = [name for name in ("core-site.xml", "yarn-site.xml") if not (folder / name).is_file()]
    if not cluster.hadoop_conf_dir or missing:
        raise InvalidInput(f"to submit, connection {cluster.name} needs a hadoop_conf_dir with core- and yarn-site.xml")


def check_secret_environment(cluster: Cluster, names: Sequence[str]) -> None:
    """Raises InvalidInput: when YARN would copy these variables of a container, which hold secrets, into its log.

    A NodeManager copies launch_container.sh, with the environment in it, into the log folder, which is aggregated
    (ContainerLaunch). Both settings are the NodeManagers'; the conf folder says what they are here.
    """
    if not names:
        return
    conf = HadoopConf(cluster.hadoop_conf_dir or "")
    copying = [name for name, default in _LOGS_ENVIRONMENT.items() if conf.get(name, default).lower() == "true"]
    if copying:
        raise InvalidInput(
            f"{', '.join(names)}: an environment variable is not safe for a secret here, because NodeManagers copy it "
            f"into the container's log while {' or '.join(copying)} is true. Take the secret from conf instead, which "
            "the job reads, or set that to false on the NodeManagers and in the yarn-site.xml of "
            f"{cluster.hadoop_conf_dir}",
            tried="check the environment",
        )


def added_variables(cluster: Cluster) -> dict[str, str]:
    """Return what the connection adds to its clients' environment; not what it inherits from this process in vain."""
    found = {
        name: value if isinstance(value, str) else os.environ.get(value.inherit)
        for name, value in cluster.client.environment.items()
    }
    return {name: value for name, value in found.items() if value is not None}


def run_client(
    argv: Sequence[str], env: Mapping[str, str], folder: Path, timeout: timedelta, *, withdraws_in: float = 0
) -> tuple[int | None, str]:
    """Return the exit code, None if it had to be ended, and the output.

    It is killed when it takes longer than `timeout`; with `withdraws_in` it gets SIGTERM first, and so many seconds to
    take back what it has begun. When this process ends before that, it is killed in any case.

    Raises SubmissionFailed: if it can't start.
    """
    output = folder / "client.log"
    try:
        with output.open("wb") as sink, kept_for_a_child(folder) as lock:
            client = subprocess.Popen(
                argv, env=dict(env), stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
                cwd=folder, pass_fds=(lock,), start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        raise not_started(argv[0], error) from error
    return _exit_code(client, timeout, withdraws_in), said_in(output)


def said_in(log: Path) -> str:
    """Return what a client wrote there, or why that can't be read. The client has run, so this fails nothing."""
    try:
        return log.read_text(errors="replace")
    except OSError as error:
        return f"what it said can't be read: {error}"


def not_started(binary: str, error: OSError) -> SubmissionFailed:
    return SubmissionFailed(f"it can't be started on this host: {error.strerror or error}", tried=f"start {binary}")


def _exit_code(client: subprocess.Popen[bytes], timeout: timedelta, withdraws_in: float) -> int | None:
    """Wait for the client; return None if it had to be ended.

    Its whole session ends: a distribution's client may be a script whose JVM would go on, and submit later.
    """
    try:
        return client.wait(timeout.total_seconds())
    except subprocess.TimeoutExpired:
        if withdraws_in:
            os.killpg(client.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                client.wait(withdraws_in)
        return None
    finally:
        if client.poll() is None:
            os.killpg(client.pid, signal.SIGKILL)
            client.wait()


def java_kerberos(krb5_conf: str) -> tuple[str, ...]:
    # Java ignores KRB5_CONFIG; from Java 17 on, Hadoop's Kerberos code needs these packages opened to it.
    opened = "java.security.jgss/sun.security.krb5=ALL-UNNAMED"
    # Java 8 knows neither option, and starts only if it may leave them out.
    exported = ("-XX:+IgnoreUnrecognizedVMOptions", f"--add-exports={opened}", f"--add-opens={opened}")
    return f"-Djava.security.krb5.conf={krb5_conf}", *exported


def told(log: str, error: re.Pattern[str]) -> str:
    """Return what a client said of its end: from the line that names an error on, else the last lines.

    Frames of stack traces are left out: they would push the errors out of it.
    """
    lines = [line for line in log.splitlines() if not _FRAME.match(line)]
    first = next((number for number, line in enumerate(lines) if error.match(line)), None)
    said = lines[-_SAID:] if first is None else lines[first:]
    return "\n".join(said if len(said) <= _SAID else [*said[: _SAID // 2], "...", *said[-_SAID // 2 :]]).rstrip()
