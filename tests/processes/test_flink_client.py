"""Flink's client as a program: what it is told, when it is ended, and how many run at once."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zipfile import ZipFile

import pytest

from airflow_kstream.clients import flink
from airflow_kstream.clients.flink import check_entry_class, check_hadoop, environment, installation, turn
from airflow_kstream.clients.local.private import private_folder
from airflow_kstream.model.clusters.cluster import ClientSettings, Cluster
from airflow_kstream.model.errors import InvalidInput, SubmissionFailed, Unavailable
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import FreshToken, HadoopCredentials
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.model.kerberos.tokens import DelegationToken
from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.submission import (
    Argument,
    Setting,
    Submission,
    SubmitOutcome,
    from_kstream,
)
from airflow_kstream.supervise.streams.flink.flink_engine import FlinkEngine
from tests.simulated.hadoop_writers import writable
from tests.simulated.spark_homes import CLUSTER, executable

CACHE = Path("/tmp/ticket-of-this-submission")
HADOOP = replace(CLUSTER, client=ClientSettings({"HADOOP_CLASSPATH": "/opt/hadoop/*"}))
LONG = timedelta(minutes=1)
NOW, WEEK = datetime(2026, 1, 7, tzinfo=UTC), timedelta(days=7)
WHY = from_kstream("the test")
# It tells what it was given, as a program sees it.
TELLS = """#!/bin/sh
echo "argv: $*"
echo "home: $FLINK_HOME, hadoop: $HADOOP_CLASSPATH, proxied: $HADOOP_PROXY_USER, cache: $KRB5CCNAME"
for file in "$FLINK_CONF_DIR" "$FLINK_CONF_DIR"/* $HADOOP_TOKEN_FILE_LOCATION; do stat -c '%a %n' "$file"; done
cat "$FLINK_CONF_DIR/config.yaml"
"""


@pytest.fixture(autouse=True)
def own_turns(tmp_path: Path) -> Iterator[None]:
    """Let nobody else's client take a turn of these tests."""
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path)
    yield
    tempfile.tempdir = before


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "flink-1.20.3"
    for name in ("bin", "lib", "conf"):
        (folder / name).mkdir(parents=True)
    (folder / "lib/flink-dist-1.20.3.jar").touch()
    return folder


def client(home: Path, script: str = TELLS) -> str:
    return str(executable(home / "bin/flink", script))


def submission(binary: str, **more: object) -> Submission:
    plan = Submission(
        binary,
        (Argument(("run-application", "/jobs/orders.jar"), WHY),),
        {"s3.secret-key": "hunter2"},
        settings={"yarn.tags": Setting("kstream,a", WHY), "parallelism.default": Setting("4", WHY)},
    )
    return replace(plan, **more)  # type: ignore[arg-type]


def run(plan: Submission, timeout: timedelta = LONG, cluster: Cluster = HADOOP, **more: SecretBytes) -> SubmitOutcome:
    with private_folder() as private:
        return flink.submit(plan, cluster, CACHE, private, timeout, **more)


def test_a_private_folder_tells_a_client_everything(home: Path) -> None:
    outcome = run(submission(client(home)))
    assert outcome.exit_code == 0
    lines = outcome.tail.splitlines()
    assert lines[0] == "argv: run-application /jobs/orders.jar"
    assert lines[1] == f"home: {home}, hadoop: /opt/hadoop/*, proxied: , cache: FILE:{CACHE}"
    modes = {name.rpartition("/")[2]: mode for mode, name in (line.split() for line in lines[2:6])}
    assert modes == {
        "flink-conf": "700",
        "config.yaml": "600",
        "log4j.properties": "600",
        "log4j-cli.properties": "600",
    }
    assert lines[6:] == ["parallelism.default: '4'", "s3.secret-key: ***", "yarn.tags: kstream,a"]


def test_a_proxied_user_comes_with_tokens_that_nobody_else_reads(home: Path) -> None:
    plan = submission(client(home), launched_as=Identity("gateway@EXAMPLE.COM", do_as="alice"))
    outcome = run(plan, tokens=SecretBytes(b"HDTS"))
    assert "proxied: alice" in outcome.tail
    assert any(line.startswith("600 ") and line.endswith("/launch-tokens") for line in outcome.tail.splitlines())


@dataclass
class Minting(FlinkEngine):
    """An engine that makes tokens by itself: no minicluster has a second HDFS, and Hadoop's RPC takes a ticket."""

    made: list[tuple[str, str]] = field(default_factory=list)

    def launch_token(self, cluster: Cluster, filesystem: str, identity: Identity) -> FreshToken:
        self.made.append((filesystem, identity.do_as or ""))
        token = DelegationToken("alice", "yarn", identity.principal, NOW, NOW + WEEK, len(self.made), 1)
        service = filesystem.removeprefix("hdfs://")
        return FreshToken(filesystem, f"ha-hdfs:{service}", writable(token), SecretBytes(b"secret"), NOW + WEEK)


def test_a_proxied_user_comes_with_a_token_of_each_filesystem_that_the_job_names(home: Path, tmp_path: Path) -> None:
    """Under the word of today, and the one of Flink's YARN client before it."""
    kept, engine = tmp_path / "kept", Minting()
    named = {
        "security.kerberos.access.hadoopFileSystems": "hdfs://archive;hdfs://prod/",
        "yarn.security.kerberos.additionalFileSystems": "hdfs://lake/",
    }
    plan = submission(
        client(home, f'#!/bin/sh\ncp "$HADOOP_TOKEN_FILE_LOCATION" {kept}\n'),
        launched_as=Identity("gateway@EXAMPLE.COM", do_as="alice"),
        settings={key: Setting(value, WHY) for key, value in named.items()},
    )
    with private_folder() as private:
        outcome = engine.submit(plan, HADOOP, CACHE, private, LONG)
    assert engine.made == [(f"hdfs://{name}", "alice") for name in ("prod", "archive", "lake")]
    services = ["ha-hdfs:prod", "ha-hdfs:archive", "ha-hdfs:lake"]
    assert [token.service for token in HadoopCredentials.read(SecretBytes(kept.read_bytes())).tokens] == services
    assert [(token.service, token.ends) for token in outcome.tokens] == [(each, NOW + WEEK) for each in services]


def test_a_secret_of_several_lines_is_not_written_or_shown(home: Path) -> None:
    """Flink's scripts would take its second line for a setting of the client's, and run it."""
    with pytest.raises(InvalidInput, match=r"line break in 's3\.secret-key'") as refused:
        run(submission(client(home), secret_conf={"s3.secret-key": "hunter2\nenv.java.opts.client: $(id)"}))
    assert "hunter2" not in str(refused.value)


def test_a_setting_of_half_a_million_quotes_stays_on_one_line(home: Path) -> None:
    """YAML doubles each of them, and whatever follows in a line of its own would be another setting."""
    long = Setting("'" * 530_000 + " env.java.opts.client: $(id)", WHY)
    script = '#!/bin/sh\ngrep -c "^ *env" "$FLINK_CONF_DIR/config.yaml"\n'
    assert run(submission(client(home, script), settings={"pipeline.name": long})).tail == "0"


def test_a_secret_that_was_never_looked_up_is_not_written(home: Path) -> None:
    with pytest.raises(InvalidInput, match="was not looked up"):
        run(submission(client(home), secret_conf={"s3.secret-key": SecretRef("conn:orders")}))


def test_containers_log_as_the_installation_says(home: Path) -> None:
    (home / "conf/log4j.properties").write_text("rootLogger.level = ERROR\n")
    script = '#!/bin/sh\ncat "$FLINK_CONF_DIR/log4j.properties"\n'
    assert run(submission(client(home, script))).tail == "rootLogger.level = ERROR"
    (home / "conf/log4j.properties").unlink()
    assert "${sys:log.file}" in run(submission(client(home, script))).tail


def test_a_client_that_waits_too_long_withdraws_what_it_submitted(home: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f"#!/bin/sh\ntrap 'echo withdrawn > {told}; exit 143' TERM\nsleep 60 & wait\n"
    outcome = run(submission(client(home, script)), timedelta(seconds=1))
    assert (outcome.exit_code, outcome.withdrawn, told.read_text()) == (None, True, "withdrawn\n")


def test_a_third_client_waits_for_its_turn(home: Path, tmp_path: Path) -> None:
    with turn(timedelta()):
        pass
    with held(tmp_path, "0"):
        with turn(timedelta()):
            pass
        with held(tmp_path, "1"), pytest.raises(Unavailable, match="2 Flink clients run on this host already"):
            turn(timedelta()).__enter__()
    with turn(timedelta()):
        pass


@contextmanager
def held(folder: Path, name: str) -> Iterator[None]:
    descriptor = os.open(folder / f"kstream-flink-clients-{os.getuid()}" / name, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield
    os.close(descriptor)


def test_a_client_that_is_no_program_was_never_started(home: Path) -> None:
    (home / "bin/flink").write_text("no program")
    with pytest.raises(SubmissionFailed, match="can't be started"):
        run(submission(str(home / "bin/flink")))


def test_a_client_that_cannot_be_prepared_was_never_started(home: Path) -> None:
    """Its claim is given up at once then. A file of another user's is as unreadable as this one."""
    client(home)
    (home / "conf/log4j.properties").unlink(missing_ok=True)
    (home / "conf/log4j.properties").symlink_to("/proc/self/mem")
    with pytest.raises(SubmissionFailed, match="can't be started"):
        run(submission(str(home / "bin/flink")))


def test_an_installation_tells_its_version_and_what_java_needs(home: Path) -> None:
    client(home)
    (home / "conf/config.yaml").write_text(
        "env:\n  java:\n    opts:\n      all: --add-opens=a\nparallelism.default: 9\n"
    )
    found = installation(str(home))
    assert (found.version, found.number, found.obstacle) == ((1, 20, 3), "1.20.3", "")
    assert found.java == {"env.java.opts.all": "--add-opens=a"}
    (home / "conf/config.yaml").unlink()
    (home / "conf/flink-conf.yaml").write_text("env.java.opts.jobmanager: -Xint\n")
    assert installation(str(home)).java == {"env.java.opts.jobmanager": "-Xint"}


def test_a_folder_without_a_flink_is_named(home: Path) -> None:
    with pytest.raises(InvalidInput, match="has no bin/flink on this host"):
        installation(str(home))
    (home / "bin/flink").touch(mode=0o644)
    with pytest.raises(InvalidInput, match="bin/flink is not executable"):
        installation(str(home))
    client(home)
    (home / "lib/flink-dist-2.1.1.jar").touch()
    with pytest.raises(InvalidInput, match="lib has 2 jars flink-dist"):
        installation(str(home))


def test_a_client_inherits_no_credentials(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_TOKEN_FILE_LOCATION", "HADOOP_PROXY_USER", "AIRFLOW__CORE__FERNET_KEY", "FLINK_CONF_DIR"):
        monkeypatch.setenv(name, "/of/this/worker")
    given = environment(HADOOP, str(home), CACHE, home / "conf")
    assert "/of/this/worker" not in given.values()
    assert given["KRB5CCNAME"] == f"FILE:{CACHE}"


def test_a_client_without_hadoop_is_refused_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CLASSPATH", raising=False)
    with pytest.raises(InvalidInput, match="needs HADOOP_CLASSPATH"):
        check_hadoop(CLUSTER)
    check_hadoop(HADOOP)


@pytest.mark.parametrize("named", ["Main-Class: org.example.Orders", "program-class: org.example.Orders"])
def test_a_jar_that_names_its_class_can_begin(tmp_path: Path, named: str) -> None:
    check_entry_class(jar_with(tmp_path, f"Manifest-Version: 1.0\r\n{named}\r\n"))


@pytest.mark.parametrize("manifest", ["Manifest-Version: 1.0\r\n", None])
def test_a_jar_without_a_class_needs_a_declared_one(tmp_path: Path, manifest: str | None) -> None:
    with pytest.raises(InvalidInput, match="names no Main-Class: declare deploy"):
        check_entry_class(jar_with(tmp_path, manifest))


def test_what_is_no_jar_is_refused(tmp_path: Path) -> None:
    (tmp_path / "orders.jar").write_text("<html>404 Not Found</html>")
    with pytest.raises(InvalidInput, match="can't be read as a jar: File is not a zip file"):
        check_entry_class(tmp_path / "orders.jar")


def jar_with(folder: Path, manifest: str | None) -> Path:
    with ZipFile(folder / "orders.jar", "w") as jar:
        jar.writestr("org/example/Orders.class", b"")
        if manifest is not None:
            jar.writestr("META-INF/MANIFEST.MF", manifest)
    return folder / "orders.jar"
