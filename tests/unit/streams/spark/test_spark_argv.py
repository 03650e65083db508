"""A plain spark-submit: a job's declaration, and nothing of streams."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_kstream.model.secrets import SecretRef
from airflow_kstream.model.streams.deploy import Deploy
from airflow_kstream.model.streams.stream import KeytabCredentials, TicketCredentials
from airflow_kstream.model.streams.submission import Origin, SparkDefaults, layered
from airflow_kstream.policy.streams.spark.spark_argv import (
    SparkJob,
    client_settings,
    environment_settings,
    spark_argv,
)

CLIENT = SparkDefaults("connection spark_prod", "/opt/spark/bin/spark-submit", queue="batch")
KEYTAB = KeytabCredentials("etl@EXAMPLE.COM", "/etl.keytab")
CONNECTION = Origin("connection prod")
NO_CONF: Mapping[str, str | SecretRef] = {}
NOTHING = Deploy()


def job(conf: Mapping[str, str | SecretRef] = NO_CONF, deploy: Deploy = NOTHING) -> SparkJob:
    settings = layered((CONNECTION, {"spark.executor.memory": "2g"}), (Origin("spec"), conf))
    return SparkJob("nightly", "/jobs/nightly.py", ("2026-01-01",), KEYTAB, deploy, CLIENT, settings)


def test_a_plain_job_carries_nothing_of_a_stream() -> None:
    words = " ".join(spark_argv(job()).argv())
    assert "kstream" not in words
    assert "--files" not in words
    assert "--py-files" not in words


def test_a_plain_job_says_what_it_declares_and_ends_with_its_application() -> None:
    argv = spark_argv(job(deploy=Deploy(files=("/etc/a.conf",), executors=4))).argv()
    assert argv[:5] == ("/opt/spark/bin/spark-submit", "--master", "yarn", "--deploy-mode", "cluster")
    assert "--principal etl@EXAMPLE.COM --keytab /etl.keytab --queue batch" in " ".join(argv)
    assert "--num-executors 4 --files /etc/a.conf" in " ".join(argv)
    assert argv[-2:] == ("/jobs/nightly.py", "2026-01-01")


def test_a_later_layer_wins_and_says_where_it_is_from() -> None:
    plan = spark_argv(job({"spark.executor.memory": "4g"}))
    memory = next(argument for argument in plan.arguments if "spark.executor.memory=4g" in argument.words)
    assert memory.origin.source == "spec"
    assert "spark.executor.memory=2g" not in plan.argv()


def test_a_secret_reaches_neither_argv_nor_the_jobs_repr() -> None:
    secret = job({"spark.ssl.keyPassword": "hunter2"})
    assert "hunter2" not in repr(secret)
    assert "hunter2" not in " ".join(spark_argv(secret).argv())
    assert spark_argv(secret).secret_conf == {"spark.ssl.keyPassword": "hunter2"}


@pytest.mark.parametrize(
    ("conf", "names"),
    [
        ({"spark.x": SecretRef("conn:a")}, r"(?i)secret|password|token|access[.]?key|\Qspark.x\E"),
        ({"spark.executorEnv.A": SecretRef("conn:a")}, r"(?i)secret|password|token|access[.]?key|\QA\E"),
        ({"spark.x": SecretRef("conn:a"), "spark.redaction.regex": "(?i)mine"}, r"(?i)mine|\Qspark.x\E"),
        (
            {"spark.hadoop.fs.x": SecretRef("conn:a")},
            r"(?i)secret|password|token|access[.]?key|^(\Qspark.hadoop.\E)?\Qfs.x\E$",
        ),
        ({"spark.ssl.keyPassword": SecretRef("conn:a")}, None),
        ({"spark.x": "plain"}, None),
    ],
)
def test_spark_redacts_secrets_that_no_name_reveals(conf: Mapping[str, str | SecretRef], names: str | None) -> None:
    """Spark logs the environment of its executors."""
    patterns = [word for word in spark_argv(job(conf)).argv() if word.startswith("spark.redaction.regex=")]
    assert patterns == ([f"spark.redaction.regex={names}"] if names else [])


def test_the_environment_reaches_driver_and_executors() -> None:
    settings = environment_settings(Deploy(environment={"TZ": "UTC"}))
    assert set(settings) == {"spark.yarn.appMasterEnv.TZ", "spark.executorEnv.TZ"}


def test_only_a_job_that_renews_its_tokens_retries_a_failed_renewal_sooner() -> None:
    assert "spark.security.credentials.retryWait" in client_settings(CLIENT, KEYTAB)
    assert not client_settings(CLIENT, TicketCredentials())
