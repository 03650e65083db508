"""Versions and defaults in a Spark client's jars."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from airflow_kstream.clients.client_jars import hadoop_defaults, jar_versions, versions_in
from airflow_kstream.model.cluster_facts import Property
from airflow_kstream.model.errors import InvalidInput

XML = "<configuration><property><name>{}</name><value>{}</value></property></configuration>"


def jar(folder: Path, name: str, **files: str) -> None:
    with zipfile.ZipFile(folder / name, "w") as opened:
        for file, text in files.items():
            opened.writestr(file.replace("_", "-") + ".xml", text)


@pytest.mark.parametrize(
    ("name", "artifact", "version"),
    [
        ("httpclient-4.5.14.jar", "httpclient", "4.5.14"),
        ("hadoop-client-api-3.5.0.jar", "hadoop-client-api", "3.5.0"),
        ("spark-yarn_2.13-4.2.0.jar", "spark-yarn_2.13", "4.2.0"),
        ("hadoop-common-2.6.0-cdh5.16.2.jar", "hadoop-common", "2.6.0-cdh5.16.2"),
        ("kubernetes-httpclient-vertx-7.6.1.jar", "kubernetes-httpclient-vertx", "7.6.1"),
    ],
)
def test_a_jar_s_name_tells_its_version(name: str, artifact: str, version: str) -> None:
    assert versions_in(iter([name, "datanucleus.jar"])) == {artifact: version}


def test_the_defaults_are_those_of_the_client_s_own_version(tmp_path: Path) -> None:
    jar(tmp_path, "hadoop-client-api-3.5.0.jar", core_default=XML.format("a.b", 10), site=XML.format("c", 1))
    assert hadoop_defaults(tmp_path, jar_versions(tmp_path)) == {"a.b": Property("10", "core-default.xml")}


def test_a_distribution_has_them_one_by_one(tmp_path: Path) -> None:
    jar(tmp_path, "hadoop-common-2.7.7.jar", core_default=XML.format("a", 1))
    jar(tmp_path, "hadoop-yarn-common-2.7.7.jar", yarn_default=XML.format("b", 2))
    assert hadoop_defaults(tmp_path, jar_versions(tmp_path)).keys() == {"a", "b"}


@pytest.mark.parametrize("content", [None, b"no zip"])
def test_jars_without_defaults_are_refused(tmp_path: Path, content: bytes | None) -> None:
    if content:
        (tmp_path / "hadoop-common-2.7.7.jar").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"has no jar with Hadoop's defaults|can't be read"):
        hadoop_defaults(tmp_path, jar_versions(tmp_path))
