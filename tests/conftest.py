"""The base of all tests: one real cluster, no ambient credentials, and a header that names the real parts."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before anything imports airflow: it writes its folders at import, and must not do so in the user's home.
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="kstream-airflow-")
for ambient in ("KRB5CCNAME", "KRB5_CLIENT_KTNAME", "KRB5_CONFIG", "HADOOP_TOKEN_FILE_LOCATION", "HADOOP_CONF_DIR"):
    os.environ.pop(ambient, None)

from airflow_kstream.minicluster import Minicluster, MiniclusterConfig  # noqa: E402  after the environment is clean
from tests.secrets.watch import Watch  # noqa: E402

TESTS = Path(__file__).parent
# Folders whose name is the marker of every test in them.
FOLDERS = ("unit", "cluster", "airflow", "faults")

# The duration of an example depends on the machine alone.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# Its connections close when the interpreter exits, and would log that to a stream that pytest has closed by then.
logging.getLogger("py4j").setLevel(logging.WARNING)


def pytest_report_header() -> list[str]:
    """Return the real parts that the tests run on; a missing part fails its tests and never skips them."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    packages = ("apache-airflow", "pyspark", "hdfs", "requests-kerberos", "gssapi")
    return [
        f"python {sys.version.split()[0]}, {java[0] if java else 'no java'}",
        ", ".join(f"{package} {version(package)}" for package in packages),
    ]


@pytest.fixture(scope="session")
def minicluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minicluster]:
    """One kerberized cluster (KDC, HDFS HA, YARN, Kafka) for the whole run."""
    up = Minicluster.up(MiniclusterConfig(tmp_path_factory.mktemp("minicluster")))
    try:
        # libkrb5 in this process knows the realm only from the environment.
        os.environ["KRB5_CONFIG"] = str(up.krb5_conf)
        yield up
    finally:
        up.down()


@pytest.fixture(scope="session", autouse=True)
def watch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    """Watch for secrets, and for command lines that show them, from the first test to the last."""
    looking = Watch(tmp_path_factory.getbasetemp())
    try:
        yield looking
    finally:
        looking.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its folder, and put the tests that search the whole run last."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in FOLDERS:
            item.add_marker(folder)
    items.sort(key=lambda item: item.path.name == "test_secrets_stay_secret.py")
