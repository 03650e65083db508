"""The real `kstream` before odd terminals: no encoding, no width and no closed or full output makes it fall over."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

FAILED, WRONG, BROKEN_PIPE, INTERRUPTED = 1, 2, 141, 130
HELP = ("leases", "recover", "--help")
LIST = ("tickets", "list", "--cluster", "CLUSTER")


@dataclass(frozen=True)
class Case:
    """A command before a terminal of this kind; `redirected` is how a shell says where its output goes."""

    name: str
    code: int
    told: str
    argv: Sequence[str] = LIST
    environment: Mapping[str, str] = field(default_factory=dict)
    redirected: str = ""


TABLE = "watcher@EXAMPLE.COM"
CASES = (
    Case("latin-1", FAILED, TABLE, environment={"PYTHONIOENCODING": "latin-1"}),
    Case("ascii", 0, "Usage", HELP, {"PYTHONIOENCODING": "ascii"}),
    Case("C locale", FAILED, TABLE, environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    Case("no columns", FAILED, TABLE, environment={"COLUMNS": "0"}),
    Case("one column", FAILED, TABLE, environment={"COLUMNS": "1"}),
    Case("columns in words", FAILED, TABLE, environment={"COLUMNS": "many"}),
    Case("columns that no int reads", FAILED, TABLE, environment={"COLUMNS": "\u00b2", "LINES": "\u00b2"}),
    Case("more columns than memory", FAILED, TABLE, environment={"COLUMNS": "9" * 40}),
    Case("a width that Typer can't read", 0, "Usage", HELP, {"TERMINAL_WIDTH": "wide"}),
    Case("a full disk", FAILED, "No space left on device", HELP, redirected=">/dev/full"),
    Case("a full disk under a table", FAILED, "No space left on device", redirected=">/dev/full"),
    Case("no standard output", 0, "", HELP, redirected=">&-"),
    Case("no standard error", WRONG, "", ("tickets", "show", "/nope"), redirected="2>&-"),
    Case("a full standard error", WRONG, "", ("tickets", "show", "/nope"), redirected="2>/dev/full"),
    Case("nothing open at all", FAILED, "", redirected="<&- >&- 2>&-"),
    Case("a closed pipe", BROKEN_PIPE, "", HELP, redirected="| true"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kstream_ends_clearly_before_any_terminal(case: Case, cluster_file: Path, tmp_path: Path) -> None:
    words = [str(cluster_file) if word == "CLUSTER" else word for word in case.argv]
    # The pipe's reader is gone before the first write.
    wait = "sleep 0.2; " if "|" in case.redirected else ""
    script = f'{{ {wait}"$@"; }} {case.redirected}; exit "${{PIPESTATUS[0]}}"'
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path)} | dict(case.environment)
    done = subprocess.run(
        ["bash", "-c", script, "-", sys.executable, "-m", "airflow_kstream.cli", *words],
        env=environment,
        capture_output=True,
        check=False,
    )
    printed = (done.stdout + done.stderr).decode(errors="replace")
    assert (done.returncode, "Traceback" in printed) == (case.code, False), printed
    assert case.told in printed


@pytest.mark.parametrize(
    ("words", "ended"),
    [((), (INTERRUPTED, "kstream: interrupted\n")), (("--watch",), (0, ""))],
    ids=["once", "watched"],
)
def test_an_interrupt_is_reported_in_one_line_and_is_the_end_of_watching(
    words: Sequence[str], ended: tuple[int, str], tmp_path: Path
) -> None:
    """The command is connected to a server that keeps silent, so it waits for an answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        cluster = tmp_path / "cluster.yaml"
        cluster.write_text(
            f"principal: a@R\nkeytab_path: /a.keytab\nstate_dir: /kstream\ndefault_fs: hdfs://ns\n"
            f"namenodes: {address}\nresourcemanagers: {address}\n"
        )
        argv = [sys.executable, "-m", "airflow_kstream.cli", "streams", "status", "--cluster", str(cluster), *words]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, preexec_fn=_hear_interrupts) as kstream:
            server.settimeout(60)
            connection, _ = server.accept()
            kstream.send_signal(signal.SIGINT)
            _, told = kstream.communicate(timeout=60)
            connection.close()
    assert (kstream.returncode, told) == ended


def _hear_interrupts() -> None:
    # A child of a background job is born with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_connection_of_airflows_puts_no_line_of_its_loggers_before_the_json(tmp_path: Path) -> None:
    extra = {
        "principal": "a@R",
        "ticket_cache": str(tmp_path / "none"),
        "resourcemanagers": "http://localhost:1",
        "namenodes": "http://localhost:2",
        "default_fs": "hdfs://x",
        "state_dir": "/kstream",
        # Airflow warns of one so short.
        "spark_conf": {"spark.ssl.keyPassword": "s3"},
    }
    connection = json.dumps({"conn_type": "kstream", "extra": extra})
    environment = os.environ | {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW_CONN_PROD": connection}
    command = [sys.executable, "-m", "airflow_kstream.cli", "connection", "check", "--cluster", "prod", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert [probe["name"] for probe in json.loads(done.stdout)][:1] == ["resolve"], done.stderr
