"""Versions of jars by their names."""

from __future__ import annotations

import pytest

from airflow_kstream.clients.spark_installations import jar_versions


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
    assert jar_versions([name, "datanucleus.jar", "conf"]) == {artifact: version}


def test_of_two_versions_the_first_on_the_class_path_counts() -> None:
    """A JVM takes that one, wherever a distribution's own jars come after it."""
    assert jar_versions(["hadoop-common-2.7.3.jar", "hadoop-common-3.1.1.jar"]) == {"hadoop-common": "2.7.3"}
