"""What Airflow's DAG processor imports needs no Kerberos, HDFS or Spark: a DAG file is parsed without them."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

from airflow_kstream.dags import STUBS

FACE = (
    "airflow_cli",
    "assets",
    "dags",
    "hooks",
    "links",
    "metrics",
    "notifications",
    "operators",
    "plugin",
    "sensors",
    "settings",
    "triggers",
)
HEAVY = ("gssapi", "hdfs", "kafka", "hdfs_native", "krb5", "pyspark", "requests_kerberos", "spnego")


def modules(name: str) -> list[str]:
    module = import_module(f"airflow_kstream.{name}")
    inside = pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}.")
    return [module.__name__, *(each.name for each in inside)]


LIGHT = """
import sys
import airflow_kstream.plugin
from airflow_kstream.airflow_cli import commands

commands()
unused = "fastapi", "airflow_kstream.views", "airflow_kstream.cli", "airflow_kstream.supervise"
print([name for name in sys.modules if name.startswith(unused)])
"""
HEAVY_ONES = f"""
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(sorted({set(HEAVY)} & sys.modules.keys()))
"""


def printed(program: str, *names: str) -> list[str]:
    """Return what a process of its own prints."""
    command = [sys.executable, "-c", program, *names]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_the_face_imports_no_heavy_library_and_airflows_processes_nothing_of_pages() -> None:
    """Each of Airflow's processes loads the plugin, and each of its commands the words for its help."""
    face = [module for name in FACE for module in modules(name)]
    stubs = [f"airflow_kstream.dags.stubs.{path.stem}" for path in STUBS.glob("*.py")]
    assert {"airflow_kstream.dags.streams", "airflow_kstream.operators.leases"} <= set(face)
    assert len(stubs) == 4
    said = printed(LIGHT + HEAVY_ONES, *face, *stubs)
    # Airflow may have warnings of its own.
    assert [line for line in said if line.startswith("[")] == ["[]", "[]"]


def test_the_command_line_imports_no_heavy_library_before_a_command_needs_it() -> None:
    assert printed(HEAVY_ONES, "airflow_kstream.cli")[-1] == "[]"


@pytest.mark.parametrize("library", ["gssapi", "hdfs", "hdfs_native", "krb5", "requests_kerberos", "spnego"])
def test_a_lazy_library_is_there_once_it_is_used(library: str) -> None:
    lazy = import_module("airflow_kstream.clients.lazy")
    assert getattr(lazy, library).__name__ == library
