"""A real Spark before 4.0, of its source distribution on PyPI, behind a script as distributions have it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.spark import local_environment, submit
from airflow_kstream.clients.spark_installations import installation
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.known_faults import HadoopVersion
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.stream import TicketCredentials
from airflow_kstream.model.streams.submission import Argument, Origin, Submission, SubmitOutcome
from airflow_kstream.policy.streams.spark.spark_argv import with_client_defaults
from airflow_kstream.supervise.streams.orders.desired import set_desired
from airflow_kstream.supervise.streams.restart.reconcile import Reconciler
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from airflow_kstream.supervise.tokens.push import push_by_hand
from tests.live.streams import PUSHABLE_BY_HAND, await_commits, rate_stream, reconciler
from tests.simulated.spark_homes import executable
from tests.wheel import ROOT

RELEASE = "3.5.7"
pytestmark = pytest.mark.compatibility
TELLING = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
conf = SparkSession.builder.getOrCreate().conf
Path(sys.argv[1]).write_text(" ".join(conf.get(f"spark.kstream.test.{name}") for name in ("own", "both", "secret")))
"""
# Nothing but Python's own modules and this package: py4j is that of the client's home.
SPEAKING = """
import sys
sys.path.insert(0, sys.argv[1])
from airflow_kstream.clients.spark_rpc import driver_rpc
from airflow_kstream.model.errors import Unavailable
from airflow_kstream.model.streams.installations import SparkInstallation
client = SparkInstallation("", sys.argv[2], class_path=(f"{sys.argv[2]}/jars/*",))
with driver_rpc(client, "127.0.0.1", 1) as driver:
    try:
        driver.tokens()
    except Unavailable as away:
        print(away)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spark's home, as a distribution would have it; 310 MB are fetched."""
    folder = tmp_path_factory.mktemp("spark")
    pip = [sys.executable, "-m", "pip", "-q", "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
    subprocess.run([*pip, "-d", folder, f"pyspark=={RELEASE}"], check=True)
    with tarfile.open(folder / f"pyspark-{RELEASE}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    unpacked, made = folder / f"pyspark-{RELEASE}", folder / "home"
    (made / "python").mkdir(parents=True)
    for name in ("bin", "jars"):
        (unpacked / "deps" / name).rename(made / name)
    (unpacked / "lib").rename(made / "python" / "lib")
    return made


@pytest.fixture
def client(home: Path, tmp_path: Path) -> str:
    """A script around it, with a conf folder of its own."""
    (conf := tmp_path / "etc").mkdir()
    # A class path of the defaults comes before the conf folder on that of the JVM.
    (conf / "spark-defaults.conf").write_text(
        "spark.driver.extraClassPath /opt/more:/opt/more.jar\n"
        "spark.kstream.test.own defaults\nspark.kstream.test.both defaults\n"
    )
    script = f'#!/bin/sh\nexport SPARK_CONF_DIR={conf}\nexec {home}/bin/spark-submit "$@"\n'
    return executable(tmp_path / "bin" / "spark-submit", script)


def test_it_tells_its_home_its_conf_folder_and_its_version(client: str, home: Path, tmp_path: Path) -> None:
    told = installation(client)
    assert (told.home, told.conf_dir, told.version) == (str(home), str(tmp_path / "etc"), (3, 5))
    assert told.hadoop == HadoopVersion("3.3.4")


def test_a_secret_and_its_own_defaults_reach_its_job(client: str, tmp_path: Path) -> None:
    (job := tmp_path / "job.py").write_text(TELLING)
    words = ("--master", "local[1]", "--conf", "spark.ui.enabled=false", str(job), str(tmp_path / "told"))
    secrets = {"spark.kstream.test.both": "of the stream", "spark.kstream.test.secret": "hunter2"}
    plan = with_client_defaults(Submission(client, (Argument(words, Origin("test")),), secrets), installation(client))
    with private_folder() as private:
        outcome = submit(plan, local_environment(client), private, timedelta(minutes=5))
    assert outcome.exit_code == 0, outcome.tail
    assert (tmp_path / "told").read_text() == "defaults of the stream hunter2"


def test_it_refuses_the_option_of_spark_4_and_says_so_first(client: str) -> None:
    with private_folder() as private:
        plan = Submission(client, (), {"spark.kstream.test": "hunter2"})
        outcome = submit(plan, local_environment(client), private, timedelta(minutes=5))
    assert outcome == SubmitOutcome(1, "Error: Unrecognized option: --load-spark-defaults")


def test_its_own_py4j_speaks_to_a_driver(home: Path) -> None:
    argv = [sys.executable, "-S", "-c", SPEAKING, str(ROOT), str(home)]
    said = subprocess.run(argv, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, check=True).stdout
    assert "ask for the tokens of its executors" in said
    assert "127.0.0.1:1" in said


def test_a_stream_with_a_secret_commits_and_takes_a_token_by_hand(
    client: str, home: Path, minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its conf folder, jars and version are those behind the script, though pip's Spark 4 is first on PATH."""
    monkeypatch.setenv("KSTREAM_TEST_SECRET", "hunter2")
    secret = {"spark.hadoop.fs.s3a.secret.key": SecretRef("env:KSTREAM_TEST_SECRET")}
    # The minicluster's own confs name the jars of pip's Spark.
    own = {"spark.yarn.jars": f"local:{home}/jars/*"}
    own |= {f"spark.{role}.extraClassPath": f"{home}/jars" for role in ("driver", "executor")}
    spec = rate_stream("by-spark-3", TicketCredentials(), conf=own | secret | PUSHABLE_BY_HAND)
    with reconciler(minicluster, spec) as supervisor:
        run = replace(supervisor.subject, engine=SparkEngine(spark_submit=client))
        older = Reconciler(run, tell=lambda line: None)
        application = str(older.run().job.application)
        await_commits(run.session, spec)
        pushed = push_by_hand(run.session, application, client, shorten=True)
        assert pushed.new.sequence_number > pushed.old.sequence_number
        set_desired(run, DesiredState.STOPPED, "the test is over")
        assert "stopped at the marker" in str(older.run().done)
