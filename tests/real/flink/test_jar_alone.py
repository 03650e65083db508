"""What the jar's classes do without a cluster, on the Hadoop and the Flink that they are built for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from socket import create_server

import pytest

from airflow_kstream.demo.flink_job import compile_java
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.jars import flink_jars, hadoop_jars
from airflow_kstream.minicluster.tools import java_home
from airflow_kstream.model.formats.token import SecretBytes
from airflow_kstream.model.kerberos.credentials_file import HadoopCredentials
from airflow_kstream.model.kerberos.tokens import DelegationToken
from tests.flink_jar import JAR
from tests.run_folder import java_options

Checks = Callable[..., list[str]]
HDFS, AMRM = "HDFS_DELEGATION_TOKEN", "YARN_AM_RM_TOKEN"


def token(service: str, number: int, kind: str = HDFS, alias: str = "", more: str = "") -> str:
    return f"{alias or service},{kind},{service},{number}{more}"


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Checks:
    classes = tmp_path_factory.mktemp("checks")
    jars = (JAR, *sorted(flink_jars(Feature.FLINK).glob("*.jar")), *sorted(hadoop_jars().glob("*.jar")))
    compile_java(sorted((Path(__file__).parents[2] / "live/flink_jar").glob("*.java")), jars, classes)
    java = [str(java_home() / "bin/java"), "-XX:TieredStopAtLevel=1", *java_options()]
    java += ["-cp", ":".join(map(str, (classes, *jars))), "kstream.flink.Checks"]

    def checked(*words: str | Path) -> list[str]:
        done = subprocess.run([*java, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return checked


def numbers(file: Path) -> dict[str, int]:
    """Return the sequence number of each token in a credentials file, by its name."""
    tokens = HadoopCredentials.read(SecretBytes(file.read_bytes())).tokens
    return {one.alias: one.identifier.sequence_number for one in tokens if isinstance(one.identifier, DelegationToken)}


def test_the_keeper_brings_the_token_file_up_to_date(checks: Checks, tmp_path: Path) -> None:
    """What is older, the ApplicationMaster's own, and clones for single NameNodes stay out of it."""
    file = tmp_path / "container_tokens"
    checks("write", file, token("ha-hdfs:one", 3), token("ha-hdfs:two", 3), token("rm:1", 3, AMRM))
    held = (
        token("ha-hdfs:one", 4),
        token("ha-hdfs:two", 2),
        token("ha-hdfs:three", 1),
        token("nn1:8020", 4, more=",private"),
        token("rm:1", 9, AMRM),
    )
    assert checks("keep", file, *held) == ["true"]
    assert numbers(file) == {"ha-hdfs:one": 4, "ha-hdfs:two": 3, "ha-hdfs:three": 1}
    kinds = {one.alias: one.kind for one in HadoopCredentials.read(SecretBytes(file.read_bytes())).tokens}
    assert kinds["rm:1"] == AMRM
    assert file.stat().st_mode & 0o777 == 0o600
    assert checks("keep", file, *held) == ["false"]
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".crc")] == [file.name]


def test_credentials_are_read_only_if_each_length_in_them_is_true(checks: Checks, tmp_path: Path) -> None:
    good, other = tmp_path / "good", tmp_path / "other"
    checks("write", good, token("ha-hdfs:one", 3))
    checks("write", other, token("ha-hdfs:one", 3, alias="another-name"))
    content = good.read_bytes()
    huge = b"HDTS\0" + b"\x01" + b"\x8c\x7f\xff\xff\xff"
    within = content.replace(b"\x00\x06orders", b"\x00\x8c\x7f\xff\xff\xfe", 1)
    assert within != content
    cases = {
        "it is not a credentials file": b"",
        "a number in the credentials file makes no sense": huge,
        "the credentials file ends too early": content[:-9],
        "the credentials file has no token, or holds more than tokens": content + b"x",
    }
    files = []
    for number, bad in enumerate([*cases.values(), within]):
        files.append(tmp_path / str(number))
        files[-1].write_bytes(bad)
    answers = checks("read", good, other, *files)
    assert answers[:2] == ["read 1", "a token's name in the credentials file is not its service"]
    assert answers[2:-1] == list(cases)
    assert answers[-1] == "a number in the credentials file makes no sense"


def test_a_full_hdfs_is_left_one_unfinished_file_and_no_more(checks: Checks) -> None:
    """Each look writes again, for as long as HDFS takes no block."""
    assert checks("put", "kept-000001") == ["1 no DataNode takes a block"] * 3 + ["[hdfs://one/orders/kept-000001]"]


def test_a_token_that_can_not_be_tried_is_not_refused(checks: Checks) -> None:
    (said,) = checks("try", "ha-hdfs:no name")
    assert said.startswith("IOException: the token for ha-hdfs:no name can't be tried: IllegalArgumentException")


def test_the_names_of_files_have_the_same_digits_in_every_language(checks: Checks) -> None:
    names = "tokens/000001-22 applied-000001-22 refused-000001-22"
    assert checks("push", "ar-EG", "push-000001-22-33") == [names]


def test_a_jobmanager_finds_its_own_ports_and_no_other_process(checks: Checks) -> None:
    with create_server(("127.0.0.1", 0)) as other:
        opened, found = (set(line.split()) for line in checks("listen"))
        assert opened <= found
        assert f"127.0.0.1:{other.getsockname()[1]}" not in found


def test_it_asks_its_own_ports_for_the_job_where_no_log_tells_the_right_one(checks: Checks) -> None:
    assert checks("find", "0123456789abcdef0123456789abcdef") == ["one two"]
