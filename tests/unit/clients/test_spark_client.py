"""The choice of spark-submit: that of this host's Spark, or the one that a user names."""

from __future__ import annotations

from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from airflow_kstream.clients import spark
from airflow_kstream.clients.spark import environment, find_spark_submit
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.fields import SPARK_BINARIES
from airflow_kstream.model.kerberos.identity import Identity

CLUSTER = Cluster("prod", ("http://rm:1",), ("http://nn:1",), "hdfs://nn", Identity("a@R", keytab="/k"), "/kstream")


def executable(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return str(path)


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleSpec]:
    """The packages of a host without Spark: none on PATH, no SPARK_HOME, no pyspark."""
    packages: dict[str, ModuleSpec] = {}
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    # The tests' own environment has pyspark, and other tests of this process import it.
    monkeypatch.setattr(spark, "find_spec", packages.get)
    return packages


@pytest.mark.parametrize("binary", SPARK_BINARIES)
def test_a_distributions_client_is_found_on_path(tmp_path: Path, binary: str) -> None:
    client = executable(tmp_path / "path" / binary)
    assert find_spark_submit(binary) == client


def test_the_client_of_spark_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = executable(tmp_path / "path" / "spark3-submit")
    at_home = executable(tmp_path / "home" / "bin" / "spark-submit")
    executable(tmp_path / "path" / "spark-submit")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "home"))
    assert find_spark_submit() == at_home
    assert find_spark_submit("spark3-submit") == on_path


def test_the_client_of_pyspark_comes_last(tmp_path: Path, packages: dict[str, ModuleSpec]) -> None:
    package = tmp_path / "pyspark"
    client_of_pyspark = executable(package / "bin" / "spark-submit")
    packages["pyspark"] = ModuleSpec("pyspark", None, origin=str(package / "__init__.py"))
    assert find_spark_submit() == client_of_pyspark
    on_path = executable(tmp_path / "path" / "spark-submit")
    assert find_spark_submit() == on_path


def test_a_missing_client_is_reported_with_where_to_get_one() -> None:
    with pytest.raises(
        InvalidInput, match=r"no spark3-submit in SPARK_HOME/bin or on PATH; .*airflow-kstream\[spark\]"
    ):
        find_spark_submit("spark3-submit")


def test_a_person_may_name_a_file_that_can_be_run(tmp_path: Path) -> None:
    client = executable(tmp_path / "opt" / "my-submit")
    assert find_spark_submit(client) == client
    with pytest.raises(InvalidInput, match="is not an executable file"):
        find_spark_submit(str(tmp_path / "nothing"))


def test_only_the_client_of_spark_home_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution's script finds its own home; another distribution's would be wrong."""
    home, cache = "/opt/spark", tmp_path / "cache"
    at_home, elsewhere = f"{home}/bin/spark-submit", "/usr/bin/spark3-submit"
    for binary in (at_home, elsewhere):
        assert "SPARK_HOME" not in environment(CLUSTER, cache, binary)
    monkeypatch.setenv("SPARK_HOME", home)
    assert environment(CLUSTER, cache, at_home)["SPARK_HOME"] == home
    assert "SPARK_HOME" not in environment(CLUSTER, cache, elsewhere)


def test_a_relative_path_of_a_client_needs_no_spark_home(tmp_path: Path) -> None:
    assert "SPARK_HOME" not in environment(CLUSTER, tmp_path / "cache", "./bin/spark-submit")


def test_the_hosts_own_java_options_come_first_and_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trust store or a proxy stands there; of two options with one name Java takes the last one, which is ours."""
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Djavax.net.ssl.trustStore=/t.jks")
    given = environment(CLUSTER, tmp_path / "cache", "/usr/bin/spark3-submit")["SPARK_SUBMIT_OPTS"].split()
    assert given[0] == "-Djavax.net.ssl.trustStore=/t.jks"
    assert "-XX:TieredStopAtLevel=1" in given


def test_the_hosts_options_for_sparks_launcher_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a JVM of its own, which starts before spark-submit's and has nothing of SPARK_SUBMIT_OPTS."""
    monkeypatch.setenv("SPARK_LAUNCHER_OPTS", "-XX:-UsePerfData")
    given = environment(CLUSTER, tmp_path / "cache", "/usr/bin/spark3-submit")
    assert given["SPARK_LAUNCHER_OPTS"] == "-XX:-UsePerfData"


def test_java_8_may_leave_out_the_options_that_it_does_not_know(tmp_path: Path) -> None:
    """Java 17 needs them to read another krb5.conf; Java 8 would not start."""
    cluster = replace(CLUSTER, krb5_conf="/etc/krb5.other.conf")
    given = environment(cluster, tmp_path / "cache", "/usr/bin/spark3-submit")["SPARK_SUBMIT_OPTS"].split()
    opening = [option for option in given if option.startswith(("--add-exports", "--add-opens"))]
    assert len(opening) == 2
    assert given.index("-XX:+IgnoreUnrecognizedVMOptions") < given.index(opening[0])


def installed(folder: Path, **versions: str) -> None:
    """Write down what pip keeps of installed packages."""
    for name, version in versions.items():
        (folder / f"{name}-{version}.dist-info").mkdir(parents=True)
        about = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
        (folder / f"{name}-{version}.dist-info" / "METADATA").write_text(about)


@pytest.mark.parametrize(
    ("pyspark", "client", "both"),
    [("4.1.0", "4.2.0", "4.1.0"), ("4.10.0", "4.9.1", "4.9.1"), ("4.3.0", "4.2.0", "4.2.0")],
)
def test_a_pyspark_that_another_package_overwrote_is_refused_with_the_way_out(
    pyspark: str,
    client: str,
    both: str,
    tmp_path: Path,
    packages: dict[str, ModuleSpec],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    binary = executable(tmp_path / "site" / "pyspark" / "bin" / "spark-submit")
    packages["pyspark"] = ModuleSpec("pyspark", None, origin=str(tmp_path / "site" / "pyspark" / "__init__.py"))
    installed(tmp_path / "site", pyspark=pyspark, pyspark_client=client)
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(InvalidInput) as refused:
        find_spark_submit()
    assert f"pyspark {pyspark} and pyspark-client {client} are installed, which own the same files" in str(
        refused.value
    )
    assert f"--force-reinstall --no-deps pyspark=={both} pyspark-client=={both}" in str(refused.value)
    # The distribution's Spark has nothing to do with them, nor has one that a person names.
    of_the_distribution = executable(tmp_path / "path" / "spark-submit")
    assert find_spark_submit() == of_the_distribution
    assert find_spark_submit(binary) == binary


@pytest.mark.parametrize("versions", [{"pyspark": "4.1.0", "pyspark_client": "4.1.0"}, {"pyspark": "4.2.0"}])
def test_a_pyspark_of_one_version_is_used(
    versions: dict[str, str], tmp_path: Path, packages: dict[str, ModuleSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = executable(tmp_path / "site" / "pyspark" / "bin" / "spark-submit")
    packages["pyspark"] = ModuleSpec("pyspark", None, origin=str(tmp_path / "site" / "pyspark" / "__init__.py"))
    installed(tmp_path / "site", **versions)
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert find_spark_submit() == client
