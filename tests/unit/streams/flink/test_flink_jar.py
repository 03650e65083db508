"""The jar for Flink's JobManager, as it is checked in: no Airflow host can build one."""

from __future__ import annotations

import struct
from zipfile import ZipFile

import pytest

from tests.flink_jar import FOLDER, JAR, SERVICES, SUMS, services, sources, sums

JAVA_8 = 52


@pytest.fixture(scope="module")
def jar() -> dict[str, bytes]:
    with ZipFile(JAR) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_the_jar_was_built_from_these_sources() -> None:
    """After a change, `python -m tests.flink_jar` builds it again."""
    assert SUMS.read_text() == sums()


def test_each_source_has_its_classes_in_the_jar_and_nothing_else_is_there(jar: dict[str, bytes]) -> None:
    classes = {name.partition("$")[0].removesuffix(".class") for name in jar if name.endswith(".class")}
    assert classes == {str(source.relative_to(FOLDER)).removesuffix(".java") for source in sources()}
    assert {name for name in jar if not name.endswith(".class")} == {
        str(service.relative_to(FOLDER)) for service in services()
    }


def test_it_runs_on_java_8(jar: dict[str, bytes]) -> None:
    headers = {struct.unpack(">IHH", content[:8]) for name, content in jar.items() if name.endswith(".class")}
    assert headers == {(0xCAFEBABE, 0, JAVA_8)}


def test_it_calls_nothing_that_hadoop_2_10_and_3_1_lack(jar: dict[str, bytes]) -> None:
    """It is compiled against a younger Hadoop, so nothing else would tell before it runs on an older one."""
    later = {b"getTokenMap", b"getSecretKeyMap"}
    assert {word for word in later for content in jar.values() if word in content} == set()


@pytest.mark.parametrize(
    ("service", "named"),
    [("DelegationTokenProvider", "PushedTokens"), ("DelegationTokenReceiver", "PushedTokensReceiver")],
)
def test_flink_finds_its_two_classes_by_services(service: str, named: str, jar: dict[str, bytes]) -> None:
    file = jar[f"{SERVICES}/org.apache.flink.core.security.token.{service}"]
    assert file.decode().split() == [f"kstream.flink.{named}"]
    assert f"kstream/flink/{named}.class" in jar


def test_nothing_in_it_tells_when_it_was_built() -> None:
    with ZipFile(JAR) as opened:
        assert {(entry.date_time, entry.compress_type) for entry in opened.infolist()} == {((1980, 1, 1, 0, 0, 0), 0)}
        assert opened.namelist() == sorted(opened.namelist())
