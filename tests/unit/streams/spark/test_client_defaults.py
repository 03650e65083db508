"""Whether a client's own defaults need a hand where secrets go to it through a properties file."""

from __future__ import annotations

import pytest

from airflow_kstream.model.streams.installations import SparkInstallation
from airflow_kstream.model.streams.submission import Submission
from airflow_kstream.policy.streams.spark.spark_argv import with_client_defaults

FILE = "/private/secret.properties"
SECRET = Submission("spark-submit", (), {"spark.a.secret": "b"})


def of(version: tuple[int, ...], conf_dir: str = "/etc/spark/conf") -> SparkInstallation:
    return SparkInstallation("spark-submit", "/usr/lib/spark", conf_dir, version=version)


@pytest.mark.parametrize(
    ("client", "option", "file", "refused"),
    [
        (of((2, 4)), False, "/etc/spark/conf/spark-defaults.conf", False),
        (of((3, 5)), False, "/etc/spark/conf/spark-defaults.conf", False),
        (of((4, 0)), True, None, False),
        (of((4, 0), ""), True, None, False),
        (of((3, 5), ""), True, None, True),
        (of(()), True, None, True),
        (None, True, None, False),
    ],
)
def test_a_client_reads_its_defaults_itself_or_they_stand_below_the_secrets(
    client: SparkInstallation | None, option: bool, file: str | None, refused: bool
) -> None:
    plan = with_client_defaults(SECRET, client)
    assert (plan.defaults_file, bool(plan.obstacle)) == (file, refused)
    assert ("--load-spark-defaults" in plan.argv(FILE)) == option


def test_without_a_secret_there_is_no_file_that_replaces_them() -> None:
    plan = Submission("spark-submit", ())
    assert all(with_client_defaults(plan, client) == plan for client in (None, of(()), of((3, 5)), of((4, 0))))
