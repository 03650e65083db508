"""The shipped DAG and the command line submit a stream with the same words, by the same client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.cli import main
from airflow_kstream.operators.streams import SparkStreamOperator
from tests.airflow.declarations import Declarations

CLUSTER = {
    "principal": "watcher@EXAMPLE.COM",
    "keytab_path": "/nope",
    "state_dir": "/kstream",
    "resourcemanagers": "http://localhost:1",
    "namenodes": "http://localhost:1",
    "default_fs": "hdfs://localhost:1",
}
SPARK = {"queue": "streams", "spark-binary": "spark3-submit"}
STREAM = "name: orders\ncredentials: {mode: ticket}\napplication: /jobs/orders.py\ncheckpoints: [/c]\n"
CLIENTS = ("spark-submit", "spark2-submit", "spark3-submit")


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with three Sparks, the connections of an Airflow, and the setting of the shipped DAGs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in CLIENTS:
        (folder / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_PROD", json.dumps({"conn_type": "kstream", "extra": CLUSTER}))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_PROD", json.dumps({"conn_type": "spark", "host": "yarn", "extra": SPARK}))
    monkeypatch.setenv("AIRFLOW__KSTREAM__SPARK_CONN_ID", "spark_prod")
    return folder


@pytest.mark.parametrize(
    ("deploy", "client", "queue"),
    [
        ("", "spark3-submit", "streams"),
        ("deploy: {spark_submit: spark2-submit}", "spark2-submit", "streams"),
        ("deploy: {spark_submit: spark-submit, queue: mine}", "spark-submit", "mine"),
    ],
)
def test_the_plan_on_the_command_line_is_the_dags_own(
    deploy: str,
    client: str,
    queue: str,
    clients: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    declaration = tmp_path / "streams" / "prod" / "orders.yaml"
    declaration.parent.mkdir(parents=True)
    declaration.write_text(STREAM + deploy)
    dag = Declarations("streams", tmp_path / "streams", monkeypatch).dags()["stream-prod.orders"]
    operator = dag.get_task("keep")
    assert isinstance(operator, SparkStreamOperator)
    operator.only_plan = True
    # Its servers are away, and so is the keytab.
    with pytest.raises(AirflowFailException, match=r"^blocked: .*/nope") as refused:
        operator.execute({})
    assert "Spark client" not in str(refused.value)
    capsys.readouterr()

    with pytest.raises(SystemExit) as end:
        main(["streams", "plan", "--cluster", "prod", str(declaration)])

    assert end.value.code == 0
    assert capsys.readouterr().out.strip() == operator.submission
    assert f"{clients / client}\n" in operator.submission
    assert f"--queue {queue} " in operator.submission


def test_a_spark_connection_that_is_missing_is_named(
    clients: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declaration = tmp_path / "orders.yaml"
    declaration.write_text(STREAM)
    with pytest.raises(SystemExit) as end:
        main(["streams", "plan", "--cluster", "prod", "--spark-conn-id", "nowhere", str(declaration)])
    assert end.value.code == 2
    assert "nowhere is not an Airflow connection" in capsys.readouterr().err
