"""A Spark client, here a script, is asked what it is, and gets secrets in the way that its version knows."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyspark
import pytest

from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.clients.spark import submit
from airflow_kstream.clients.spark_installations import client_defaults, installation, known_installation
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, NotFound, Unavailable
from airflow_kstream.model.known_faults import HadoopVersion
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.installations import SparkInstallation
from airflow_kstream.model.streams.stream import StreamSpec
from airflow_kstream.model.streams.submission import Submission, SubmissionOrder, SubmitOutcome
from airflow_kstream.supervise.streams.folder.run import StreamRun
from airflow_kstream.supervise.streams.restart.dry_run import explained
from airflow_kstream.supervise.streams.restart.submit import preflight, require_client
from airflow_kstream.supervise.streams.spark.spark_engine import SparkEngine
from tests.simulated.servers import SimClock, SimHdfs, SimYarn, session_of
from tests.simulated.spark_homes import CLUSTER, SparkHome, executable
from tests.simulated.yarn import TICKET_SPEC
from tests.wheel import ROOT

SECRET = replace(TICKET_SPEC, conf={"spark.hadoop.fs.s3a.secret.key": SecretRef("env:NO_SUCH")})
HDP = HadoopVersion("3.1.1.7.1.9.0-387")


def run_of(spec: StreamSpec, client: str) -> StreamRun:
    return StreamRun(session_of(SimHdfs(clock := SimClock()), SimYarn(clock)), spec, SparkEngine(spark_submit=client))


def submitted(client: str, secret: str = "hunter2") -> SubmitOutcome:
    plan = SparkEngine(spark_submit=client).submission(SubmissionOrder(CLUSTER, SECRET, 1, "nonce"))
    assert not plan.obstacle
    with private_folder() as private:
        plan = replace(plan, secret_conf=dict.fromkeys(plan.secret_conf, secret))
        return submit(plan, {"PATH": os.defpath}, private, timedelta(minutes=1))


def test_a_client_behind_a_script_tells_the_spark_that_runs(tmp_path: Path) -> None:
    """Its home, its conf folder, and Hadoop's jars outside of it; not those of a pyspark beside this package."""
    home, etc = SparkHome(tmp_path / "lib" / "spark").made(), tmp_path / "etc"
    etc.mkdir()
    (etc / "spark-defaults.conf").write_text("spark.driver.memory 6g\n")
    client = home.wrapped(tmp_path / "bin" / "spark-submit", etc)
    assert known_installation(client) is None
    path = (f"{home.path}/jars/slf4j-api-2.0.17.jar", f"{home.path}/jars/*", f"{home.path}/hadoop/*")
    told = installation(client)
    assert told == SparkInstallation(client, str(home.path), str(etc), path, (3, 5), HDP)
    assert client_defaults(told) == {"spark.driver.memory": "6g"}
    assert known_installation(client) == told


def test_a_client_is_asked_once_while_its_file_is_the_same(tmp_path: Path) -> None:
    home = SparkHome(tmp_path / "spark").made()
    client = Path(home.wrapped(tmp_path / "spark-submit"))
    for _ in range(3):
        installation(str(client))
    assert home.starts == 1
    os.utime(client, ns=(0, 0))
    installation(str(client))
    assert home.starts == 2


def test_a_client_that_tells_nothing_is_known_by_its_own_folder_alone(tmp_path: Path) -> None:
    """A parcel has a bin with scripts, and all its jars beside that: no Spark's home."""
    own, parcel = SparkHome(tmp_path / "spark").made(), SparkHome(tmp_path / "parcel").made()
    for home in (own, parcel):
        executable(Path(home.submit), "#!/bin/sh\necho no Java here\nexit 1\n")
    (parcel.path / "bin" / "spark-class").unlink()
    told = installation(own.submit)
    assert (told.home, told.conf_dir, told.version) == (str(own.path), f"{own.path}/conf", (3, 5))
    assert installation(parcel.submit) == SparkInstallation(parcel.submit)
    assert client_defaults(installation(parcel.submit)) == {}


def test_a_script_that_hands_no_variable_on_still_tells_its_version(tmp_path: Path) -> None:
    """So does one that starts a Spark in a container. From Spark 4 on nothing else is needed for secrets."""
    home = SparkHome(tmp_path / "spark", "4.0.1").made()
    client = executable(tmp_path / "spark-submit", f'#!/bin/sh\nexec env -i {home.submit} "$@"\n')
    assert installation(client) == SparkInstallation(client, version=(4, 0))
    assert not require_client(run_of(SECRET, client)).obstacle


def test_a_client_that_cannot_be_started_now_is_asked_again(tmp_path: Path) -> None:
    home = SparkHome(tmp_path / "spark").made()
    client = executable(tmp_path / "spark-submit", "no program")
    with pytest.raises(Unavailable, match=f"ask {client} which Spark it runs: "):
        require_client(run_of(SECRET, client))
    assert not require_client(run_of(TICKET_SPEC, client)).obstacle
    executable(Path(client), f'#!/bin/sh\nexec {home.submit} "$@"\n')
    assert installation(client).version == (3, 5)


def test_an_older_client_gets_its_own_defaults_below_the_secrets(tmp_path: Path) -> None:
    """As they stand in its file, even where its last line would go on in the next one."""
    defaults = "spark.hadoop.fs.s3a.secret.key old\nspark.long a,\\\n  b\nspark.last c\\"
    home = SparkHome(tmp_path / "spark").made(defaults)
    assert submitted(home.wrapped(tmp_path / "spark-submit")) == SubmitOutcome(0, "")
    assert (home.path / "properties").read_text() == f"{defaults}\n\nspark.hadoop.fs.s3a.secret.key=hunter2\n"
    assert "hunter2" not in (home.path / "argv").read_text()


def test_spark_4_reads_its_own_defaults_beside_the_secrets(tmp_path: Path) -> None:
    home = SparkHome(tmp_path / "spark", "4.0.1").made("spark.a b\n")
    assert submitted(home.submit) == SubmitOutcome(0, "")
    assert (home.path / "properties").read_text() == "spark.hadoop.fs.s3a.secret.key=hunter2\n"
    assert "--load-spark-defaults" in (home.path / "argv").read_text()


def test_an_error_comes_first_and_no_usage_after_it(tmp_path: Path) -> None:
    home = SparkHome(tmp_path / "spark").made()
    with private_folder() as private:
        outcome = submit(
            Submission(home.submit, (), {"spark.a": "b"}), {"PATH": os.defpath}, private, timedelta(minutes=1)
        )
    assert outcome == SubmitOutcome(1, "Error: Unrecognized option: --load-spark-defaults")


def test_a_secret_waits_for_a_client_that_tells_what_it_is(tmp_path: Path) -> None:
    """It is refused before anything is stopped, in a forced restart as well. Without a secret nothing changes."""
    client = executable(tmp_path / "spark-submit", "#!/bin/sh\nexit 1\n")
    for refused in (preflight, require_client):
        with pytest.raises(InvalidInput, match=r"does not tell which Spark it runs .* Set SPARK_HOME on this host"):
            refused(run_of(SECRET, client))
    assert not require_client(run_of(TICKET_SPEC, client)).obstacle


def test_a_dry_run_names_the_clients_defaults_and_starts_nothing(tmp_path: Path) -> None:
    home = SparkHome(tmp_path / "spark").made("spark.ssl.keyPassword hunter2\n")
    client = home.wrapped(tmp_path / "spark-submit")
    shown = str(explained(CLUSTER, SECRET, SparkEngine(spark_submit=home.submit)))
    assert f"# below the secrets in the private properties file stand the confs of {home.path}/conf/spark-d" in shown
    asked_later = str(explained(CLUSTER, SECRET, SparkEngine(spark_submit=client)))
    assert f"# the client's own spark-defaults.conf holds below the secrets; {client} tells which when" in asked_later
    assert "can't be submitted" not in asked_later
    assert "hunter2" not in shown + asked_later
    assert "spark-defaults" not in str(explained(CLUSTER, TICKET_SPEC, SparkEngine(spark_submit=client)))
    assert home.starts == 0


def test_a_secret_that_is_not_there_keeps_the_old_generation_running(tmp_path: Path) -> None:
    """Preflight raises before anything is stopped."""
    with pytest.raises(NotFound, match="env:NO_SUCH is empty, or not on this host"):
        preflight(run_of(SECRET, SparkHome(tmp_path / "spark").made().submit))


def with_conf_folder(folder: Path, yarn_site: str) -> Cluster:
    """Return the cluster with a conf folder whose yarn-site.xml has this in it."""
    for name, content in (("core-site.xml", ""), ("yarn-site.xml", yarn_site)):
        (folder / name).write_text(f"<configuration>{content}</configuration>")
    return replace(CLUSTER, hadoop_conf_dir=str(folder))


@pytest.mark.parametrize(
    "spec",
    [
        replace(TICKET_SPEC, deploy=Deploy(environment={"DB_PASSWORD": SecretRef("env:X"), "TZ": "UTC"})),
        replace(TICKET_SPEC, conf={"spark.executorEnv.DB_PASSWORD": SecretRef("env:X")}),
    ],
)
def test_a_secret_does_not_become_a_variable_that_yarn_copies_into_a_log(spec: StreamSpec, tmp_path: Path) -> None:
    spec = replace(spec, application="hdfs:///jobs/orders.py")
    engine = SparkEngine(spark_submit=SparkHome(tmp_path / "spark").made().submit)
    with pytest.raises(InvalidInput, match=r"DB_PASSWORD: an environment variable is not .*log-container-debug"):
        engine.preflight(with_conf_folder(tmp_path, ""), spec)
    off = "<property><name>yarn.nodemanager.log-container-debug-info.enabled</name><value>false</value></property>"
    engine.preflight(with_conf_folder(tmp_path, off), spec)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("spark.yarn.stagingDir  hdfs://other/tmp", "puts spark.yarn.stagingDir on hdfs://other; set it in conf"),
        ("spark.yarn.stagingDir=s3a://bucket/tmp", "to another filesystem Spark copies the generation's fence"),
        ("# spark.yarn.stagingDir s3a://bucket/tmp", ""),
        ("spark.yarn.stagingDir: hdfs://prod/tmp", ""),
    ],
)
def test_defaults_of_the_client_that_make_the_fence_a_copy_are_refused(line: str, says: str, tmp_path: Path) -> None:
    home = SparkHome(tmp_path / "spark").made(f"spark.a b\n{line}\n")
    engine = SparkEngine(spark_submit=home.wrapped(tmp_path / "spark-submit"))
    spec = replace(TICKET_SPEC, application="hdfs:///jobs/orders.py")
    cluster = with_conf_folder(tmp_path, "")
    with pytest.raises(InvalidInput, match=says) if says else nullcontext():
        engine.preflight(cluster, spec)
    engine.preflight(cluster, replace(spec, conf={"spark.yarn.stagingDir": "/tmp"}))


# Has only Python's own modules and this package.
SPEAKING = """
import sys
sys.path.insert(0, sys.argv[1])
from airflow_kstream.clients.spark_rpc import driver_rpc
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.installations import SparkInstallation
try:
    with driver_rpc(SparkInstallation("spark-submit", sys.argv[2]), "127.0.0.1", 1):
        pass
except InvalidInput as refused:
    print(refused)
"""


def test_a_python_without_py4j_takes_it_from_the_clients_home(tmp_path: Path) -> None:
    def said(home: Path) -> str:
        argv = [sys.executable, "-S", "-c", SPEAKING, str(ROOT), str(home)]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    assert "this Python has no py4j" in said(tmp_path)
    assert "pip install py4j" in said(tmp_path)
    (tmp_path / "python").symlink_to(Path(pyspark.__file__).parent / "python")
    assert f"{tmp_path}/jars has no jars of Spark" in said(tmp_path)
