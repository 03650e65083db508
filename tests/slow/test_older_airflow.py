"""The wheel beside Airflow 3.2, which knows no retry policy: all modules import, and each shipped DAG parses."""

from __future__ import annotations

import email
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from airflow_kstream.dags import STUBS
from tests.wheel import built_wheel

pytestmark = pytest.mark.compatibility

STREAM = {
    "name": "orders",
    "credentials": {"mode": "ticket"},
    "application": "/jobs/orders.py",
    "checkpoints": ["/checkpoints/orders"],
}
DECLARATIONS = {
    "streams/prod/orders": STREAM,
    "leases/prod": {"paths": ["/data"]},
    "tickets/prod": {"folder": "/var/cache/tickets"},
    "tokens/prod": {"users": ["etl"]},
}
# Of the extras of a site, whose modules are in the wheel as well.
OF_THE_MINICLUSTER = ("kafka-python", "hdfs-native")
# Prints what fails to import and to parse, the DAGs, and what becomes of an error without hope and of one with it.
PROGRAM = """
import importlib, json, pkgutil, sys
import airflow_kstream
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowFailException
from airflow_kstream.model.errors import Denied, Unavailable

def failure(name):
    try:
        importlib.import_module(name)
    except ImportError as error:
        return f"{name}: {error}"

names = [each.name for each in pkgutil.walk_packages(airflow_kstream.__path__, "airflow_kstream.")]
modules = [name for name in names if ".jobs." not in name and not name.endswith("__main__")]
failed = [why for why in map(failure, modules) if why]
bag = DagBag(sys.argv[1], include_examples=False, collect_dags=False)
bag.collect_dags(sys.argv[1], safe_mode=False)

from airflow_kstream.operators.retries import KstreamOperator

def outcome(error):
    class Task(KstreamOperator):
        def execute(self, context):
            raise error
    try:
        Task(task_id="task").execute({})
    except Exception as raised:
        return type(raised).__name__

outcomes = [outcome(Denied("no")), outcome(Unavailable("away"))]
print(json.dumps([len(modules), failed, dict(bag.import_errors), sorted(bag.dags), outcomes]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with Airflow 3.2 and the wheel, whose own floor would refuse it."""
    wheel = built_wheel(tmp_path_factory.mktemp("wheel"))
    with ZipFile(wheel) as opened:
        (metadata,) = (name for name in opened.namelist() if name.endswith("METADATA"))
        required = email.message_from_bytes(opened.read(metadata)).get_all("Requires-Dist", [])
    others = [line for line in required if "extra ==" not in line and not line.startswith("apache-airflow")]
    environment = tmp_path_factory.mktemp("older")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin/python"
    pip = [str(python), "-m", "pip", "-q", "install"]
    subprocess.run(
        [*pip, "apache-airflow==3.2.*", "apache-airflow-providers-apache-spark", *OF_THE_MINICLUSTER, *others],
        check=True,
    )
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    return python


def test_modules_import_and_dags_parse_where_no_retry_policy_is(python: Path, tmp_path: Path) -> None:
    for name, declaration in DECLARATIONS.items():
        file = tmp_path / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(declaration))
    shutil.copytree(STUBS, tmp_path / "dags")
    kinds = {name.partition("/")[0] for name in DECLARATIONS}
    folders = {f"AIRFLOW__KSTREAM__{kind.upper()}_FOLDER": str(tmp_path / kind) for kind in kinds}
    environment = {**os.environ, **folders, "AIRFLOW_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [python, "-c", PROGRAM, str(tmp_path / "dags")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    modules, failed, errors, dags, outcomes = json.loads(done.stdout.splitlines()[-1])
    assert modules > 300
    assert (failed, errors) == ([], {})
    assert {"stream-prod.orders", "leases-prod", "tickets-prod", "tokens-prod"} <= set(dags)
    assert not [name for name in dags if name.startswith("refused-")]
    assert outcomes == ["AirflowFailException", "Unavailable"]
