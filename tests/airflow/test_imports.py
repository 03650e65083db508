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
HEAVY = ("gssapi", "hdfs", "hdfs_native", "krb5", "pyspark", "requests_kerberos", "spnego")


def modules(name: str) -> list[str]:
    module = import_module(f"airflow_kstream.{name}")
    inside = pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}.")
    return [module.__name__, *(each.name for each in inside)]


def heavy_imports_of(*names: str) -> str:
    """Import the modules in this order in a process of their own, and return the heavy ones that came with them."""
    program = (
        "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1].split()];"
        f"print(sorted(set({HEAVY}) & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", program, " ".join(names)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]


def test_the_face_imports_no_heavy_library() -> None:
    face = [module for name in FACE for module in modules(name)]
    stubs = [f"airflow_kstream.dags.stubs.{path.stem}" for path in STUBS.glob("*.py")]
    assert {"airflow_kstream.dags.streams", "airflow_kstream.operators.leases"} <= set(face)
    assert len(stubs) == 4
    assert heavy_imports_of(*face, *stubs) == "[]"


def test_a_process_that_loads_the_plugin_pays_nothing_for_its_pages() -> None:
    """Each of Airflow's processes loads it, and the API server alone asks it for anything."""
    program = (
        "import airflow_kstream.plugin, sys; print(sorted({'fastapi', 'airflow_kstream.views'} & sys.modules.keys()))"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_the_command_line_imports_no_heavy_library_before_a_command_needs_it() -> None:
    assert heavy_imports_of("airflow_kstream.cli") == "[]"


@pytest.mark.parametrize("library", ["gssapi", "hdfs", "hdfs_native", "krb5", "requests_kerberos", "spnego"])
def test_a_lazy_library_is_there_once_it_is_used(library: str) -> None:
    lazy = import_module("airflow_kstream.clients.lazy")
    assert getattr(lazy, library).__name__ == library
