"""Fields that the official `spark` connection may have here; those that would be ignored are refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_kstream.hooks.connection import spark_defaults_of
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.submission import SparkDefaults


def defaults(
    conn_type: str = "spark", host: str | None = "yarn", port: int | None = None, **extra: Any
) -> SparkDefaults:
    connection = Connection(conn_id="spark_prod", conn_type=conn_type, host=host, port=port, extra=json.dumps(extra))
    return spark_defaults_of(connection)


@pytest.mark.parametrize("host", ["yarn", "", None])
def test_queue_and_binary_are_taken_from_it(host: str | None) -> None:
    said: dict[str, Any] = {"queue": "streams", "spark-binary": "spark3-submit", "deploy-mode": "cluster", "keytab": ""}
    assert defaults(host=host, **said) == SparkDefaults("connection spark_prod", "spark3-submit", "streams")
    assert defaults(host=host) == SparkDefaults("connection spark_prod")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"host": "spark://master", "port": 7077}, "with master spark://master:7077; allowed is spark with yarn"),
        ({"host": "k8s://https://api"}, "with master k8s://https://api"),
        ({"host": "local[2]"}, r"with master local\[2\]"),
        ({"conn_type": "kstream"}, "is for kstream"),
        ({"deploy-mode": "client"}, "has deploy-mode client; allowed is cluster: the driver outlives the submitter"),
        ({"principal": "etl@R"}, "has principal, which would be ignored; use the stream's credentials.principal"),
        ({"keytab": "BQIAAA=="}, "has keytab, which would be ignored; use the stream's credentials.keytab"),
        ({"spark-home": "/opt/spark"}, "has spark-home, .*; set SPARK_HOME for the worker"),
        ({"yarn_resourcemanager_webapp_address": "rm:1"}, "use resourcemanagers of the kstream connection"),
        ({"namespace": "streams"}, "has namespace, which would be ignored; leave it out"),
    ],
)
def test_what_would_be_ignored_is_refused_by_its_name(said: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as refused:
        defaults(**said)
    assert "BQIAAA" not in str(refused.value)


@pytest.mark.parametrize("binary", ["/bin/ls", "../../../bin/ls", "ls", "bin/spark-submit", "spark-submit "])
def test_what_is_no_spark_client_is_never_run(binary: str) -> None:
    with pytest.raises(InvalidInput, match="allowed are spark-submit, spark2-submit, spark3-submit, and no path"):
        defaults(**dict[str, Any]({"spark-binary": binary}))
