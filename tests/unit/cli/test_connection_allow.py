"""`kstream connection allow`: what declarations need beside what their connection has; `env`: as Airflow takes it."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from airflow_kstream.cli import main
from airflow_kstream.cli.clusters import opened
from airflow_kstream.cli.stream_options import read_spec
from airflow_kstream.model.clusters.allow import Allow
from airflow_kstream.supervise.clusters.connection import connection_fields
from airflow_kstream.supervise.streams.look.blocked import not_allowed

ORDERS = {
    "name": "orders",
    "credentials": {"mode": "keytab", "principal": "etl@EXAMPLE.COM", "keytab": "/keytabs/etl.keytab"},
    "application": "/jobs/orders.py",
    "checkpoints": ["/data/orders"],
    "conf": {"spark.hadoop.fs.s3a.secret.key": {"secret": "conn:orders"}},
}
CLICKS = ORDERS | {
    "name": "clicks",
    "credentials": {"mode": "proxy-user", "user": "alice"},
    "checkpoints": ["/data/clicks"],
    "notify": {"notifier": "tests.Slack"},
}
NEEDED = {
    "principals": ["etl@EXAMPLE.COM"],
    "proxy_users": ["alice"],
    "secrets": ["conn:orders"],
    "local_files": ["/jobs/orders.py", "/keytabs/etl.keytab"],
    "notifiers": ["tests.Slack"],
}


def written(folder: Path, *declarations: Mapping[str, object]) -> list[str]:
    files = [folder / f"{declared['name']}.yaml" for declared in declarations]
    for file, declared in zip(files, declarations, strict=True):
        file.write_text(yaml.safe_dump(declared))
    return [str(file) for file in files]


def run(*words: str, command: str = "allow") -> int:
    with pytest.raises(SystemExit) as end:
        main(["connection", command, *words])
    return int(end.value.code or 0)


def test_it_prints_what_files_need_and_asks_no_server(
    cluster_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--cluster", str(cluster_file), *written(tmp_path, ORDERS, CLICKS)) == 0
    assert json.loads(capsys.readouterr().out) == NEEDED


def test_a_connection_takes_what_it_prints_and_then_needs_no_more(cluster_file: Path, tmp_path: Path) -> None:
    fields = yaml.safe_load(cluster_file.read_text())
    cluster_file.write_text(yaml.safe_dump(fields | {"allow": NEEDED}))
    with opened(str(cluster_file)) as cluster:
        for file in written(tmp_path, ORDERS, CLICKS):
            assert not not_allowed(spec := read_spec(Path(file)), cluster)
            assert not_allowed(spec, replace(cluster, allow=Allow()))


def test_a_bound_that_is_there_already_hides_nothing_that_is_needed(
    cluster_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = yaml.safe_load(cluster_file.read_text())
    cluster_file.write_text(yaml.safe_dump(fields | {"allow": NEEDED}))
    assert run("--cluster", str(cluster_file), *written(tmp_path, ORDERS, CLICKS)) == 0
    assert json.loads(capsys.readouterr().out) == NEEDED


def test_without_files_it_asks_hdfs_and_prints_nothing_of_one_that_is_away(
    cluster_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--cluster", str(cluster_file)) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err


def test_airflow_takes_from_its_environment_what_the_file_says(
    cluster_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = yaml.safe_load(cluster_file.read_text()) | {"allow": NEEDED, "client_environment": {"A": "1"}}
    (file := cluster_file.with_name("pro-d.yaml")).write_text(yaml.safe_dump(fields))
    assert run("--cluster", str(file), command="env") == 0
    printed = capsys.readouterr()
    export, variable = shlex.split(printed.out)
    name, _, value = variable.partition("=")
    assert (export, name, printed.err) == ("export", "AIRFLOW_CONN_PRO_D", "Airflow knows it as pro_d\n")
    connection = json.loads(value)
    assert connection["conn_type"] == "kstream"
    assert connection_fields("pro_d", connection["extra"]) == connection_fields("pro_d", fields)


def test_what_is_secret_stays_out_of_the_environment(cluster_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keytab = base64.b64encode(b"key").decode()
    fields = yaml.safe_load(cluster_file.read_text()) | {"keytab": keytab, "allow": {}}
    fields |= {"spark_conf": {"spark.ssl.keyPassword": "hunter2", "spark.a": "b"}}
    fields |= {"flink_conf": {"s3.secret-key": "hunter2", "state.backend.type": "rocksdb"}}
    del fields["keytab_path"]
    cluster_file.write_text(yaml.safe_dump(fields))
    assert run("--cluster", str(cluster_file), command="env") == 0
    printed = capsys.readouterr()
    assert (keytab in printed.out, "hunter2" in printed.out) == (False, False)
    extra = json.loads(shlex.split(printed.out)[1].partition("=")[2])["extra"]
    assert (extra["spark_conf"], extra["allow"]) == ({"spark.a": "b"}, {})
    assert extra["flink_conf"] == {"state.backend.type": "rocksdb"}
    left_out = "spark_conf spark.ssl.keyPassword, flink_conf s3.secret-key, keytab"
    assert printed.err.endswith(f"; left out, as secret: {left_out}\n")
