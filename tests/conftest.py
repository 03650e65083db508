"""The base of all tests: one real cluster, no ambient credentials, and a header that names the real parts."""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, settings

from tests.run_folder import enter_run_folder

# Until all tests are collected: hardly anything of what is made by then is garbage.
gc.disable()
# Before anything imports airflow: it writes its folders at import, and must not do so in the user's home.
OWN = enter_run_folder()
for ambient in ("KRB5CCNAME", "KRB5_CLIENT_KTNAME", "KRB5_CONFIG", "HADOOP_TOKEN_FILE_LOCATION", "HADOOP_CONF_DIR"):
    os.environ.pop(ambient, None)

from airflow_kstream.minicluster import Minicluster, MiniclusterConfig  # noqa: E402  after the environment is clean
from tests.evidence import evidence  # noqa: E402
from tests.live.bring_up import bring_up  # noqa: E402
from tests.secrets.known import token_passwords  # noqa: E402
from tests.secrets.watch import Watch  # noqa: E402

pytest_plugins = [
    "tests.side_by_side",
    "tests.short_reports",
    "tests.counts",
    "tests.times",
    "tests.tables",
    "tests.live.faults.table",
    "tests.live.faults.fixtures",
]

TESTS = Path(__file__).parent
# Folders whose name is the marker of every test in them, in the order of their longest modules: of tests side by side
# the long ones go first.
FOLDERS = (
    "contract",
    "stories",
    "airflow",
    "spark",
    "simulation",
    "kdc",
    "processes",
    "properties",
    "triage",
    "loopback",
    "unit",
    "hostile",
    "real",
    "tools",
    "slow",
    "afterwards",
)

# The duration of an example depends on the machine alone. The same code is given the same examples, so that what one
# run says holds for the next; new ones are drawn by the deep profile.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("deep", settings.get_profile("any machine"), max_examples=2000, derandomize=False)
settings.load_profile("any machine")

# Its connections close when the interpreter exits, and would log that to a stream that pytest has closed by then.
logging.getLogger("py4j").setLevel(logging.WARNING)


def pytest_report_header() -> list[str]:
    """Return the real parts that the tests run on; a missing part fails its tests and never skips them."""
    command = ["java", "-XX:-UsePerfData", "-version"]
    java = subprocess.run(command, capture_output=True, text=True, check=False).stderr.splitlines()
    packages = ("apache-airflow", "pyspark", "hdfs", "requests-kerberos", "gssapi")
    return [
        f"python {sys.version.split()[0]}, {java[0] if java else 'no java'}",
        ", ".join(f"{package} {version(package)}" for package in packages),
    ]


@pytest.fixture(scope="session")
def minicluster(tmp_path_factory: pytest.TempPathFactory, watch: Watch) -> Iterator[Minicluster]:
    """One kerberized cluster (KDC, HDFS HA, YARN, Kafka) for all tests of this worker."""
    up = bring_up(MiniclusterConfig(tmp_path_factory.mktemp("minicluster")))
    try:
        # libkrb5 in this process knows the realm only from the environment.
        os.environ["KRB5_CONFIG"] = str(up.krb5_conf)
        os.environ["SPARK_SUBMIT_OPTS"] += " " + up.client_env("streamer")["SPARK_SUBMIT_OPTS"]
        yield up
        watch.secrets |= token_passwords(up, tmp_path_factory.mktemp("journal"))
    finally:
        up.down()


@pytest.fixture(scope="session", autouse=True)
def watch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    """Watch for secrets, and for command lines that show them, from the first test to the last; keep them."""
    watch = Watch(tmp_path_factory.getbasetemp())
    try:
        yield watch
    finally:
        watch.stop()
        watch.write(OWN.known())


@pytest.fixture
def cluster_file(tmp_path: Path) -> Path:
    """A cluster whose servers are all away: nothing listens on port 1."""
    fields = {
        "principal": "watcher@EXAMPLE.COM",
        "state_dir": "/kstream",
        "keytab_path": "/nope",
        "resourcemanagers": "http://localhost:1",
        "namenodes": "http://localhost:1",
        "default_fs": "hdfs://localhost:1",
    }
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(fields))
    return file


class FailuresAtOnce:
    """Names each failure when it happens: pytest shows the details at the end, many minutes later."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._config.get_terminal_writer().line(f"\nFAILED {report.nodeid} ({report.when})", red=True)


def pytest_configure(config: pytest.Config) -> None:
    """End as with Ctrl-C when asked to end: with what has failed so far."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(FailuresAtOnce(config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the cluster's logs say beside the failure of a test that ran on it."""
    report = yield
    if report.failed:
        for given in getattr(item, "funcargs", {}).values():
            if isinstance(up := getattr(given, "minicluster", given), Minicluster):
                report.sections.append(("the cluster's own logs", evidence(up)))
    return report


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the other folders out when `-m` names one: to import their tests, and Airflow with them, takes seconds."""
    return True if other_folder(collection_path, config.getoption("markexpr")) else None


def other_folder(path: Path, selected: str) -> bool:
    """Return True if `-m selected` names a folder that has all tests with this marker, and `path` is in another one."""
    folder = next(iter(path.relative_to(TESTS).parts), "") if path.is_relative_to(TESTS) else ""
    return selected in FOLDERS and folder in FOLDERS and folder != selected


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its folder, and sort by it."""
    for item in items:
        if (folder := _folder(item)) in FOLDERS:
            item.add_marker(folder)
    items.sort(key=_place)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    """Spare the garbage collector what lives to the end, modules and tests: it went through them again and again."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Collect once what the tests left: from here on pytest collects ten times, and would go through all that stays."""
    gc.collect()
    gc.freeze()


def _place(item: pytest.Item) -> int:
    return FOLDERS.index(folder) if (folder := _folder(item)) in FOLDERS else len(FOLDERS)


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]
