"""`kstream tokens` on the minicluster: its output without any secret, and its refusals."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path

import pytest

from airflow_kstream.clients.hdfs.webhdfs import Hdfs
from airflow_kstream.clients.local.private import write_private
from airflow_kstream.minicluster import Minicluster
from airflow_kstream.model.clusters.cluster import Tls
from tests.live.cli import Ran, cluster_file, ran
from tests.live.token_makers import fetch, identity, issue, leaked, sleeper, standing


@dataclass(frozen=True)
class Commands:
    """`kstream tokens`, in this process."""

    cluster_file: Path

    def run(self, *words: str) -> Ran:
        return ran("tokens", *words)

    def on_cluster(self, *words: str) -> Ran:
        return self.run(*words, "--cluster", str(self.cluster_file))


@pytest.fixture
def kstream(minicluster: Minicluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("COLUMNS", "200")
    return Commands(cluster_file(minicluster, "streamer", tmp_path))


def test_show_renew_and_cancel_at_a_terminal_without_a_word_that_is_secret(
    minicluster: Minicluster, kstream: Commands, tmp_path: Path
) -> None:
    file = issue(minicluster, tmp_path / "token")
    before = kstream.on_cluster("show", str(file))
    renewed = kstream.on_cluster("renew", str(file))
    planned = kstream.on_cluster("cancel", str(file), "--dry-run")
    as_json = kstream.on_cluster("show", str(file), "--json")
    cancelled = kstream.on_cluster("cancel", str(file))
    after = kstream.on_cluster("show", str(file))
    again = kstream.on_cluster("cancel", str(file))
    runs = (before, renewed, planned, as_json, cancelled, after, again)
    assert [run.code for run in runs] == [0] * 7, [run.err for run in runs]
    (token,) = json.loads(as_json.out)["tokens"]
    name = f"WEBHDFS delegation {token['sequence_number']}"
    assert name in before.out
    assert "honours it" in before.out
    assert f"renewed by {getuser()}" in before.out
    assert f"{name} of {getuser()} is good until" in renewed.out
    assert f"would cancel {name} of {getuser()} on cluster" in planned.out
    assert token["namenode"] == {"honoured": True, "detail": "honours it"}
    assert token["seconds_left"] == pytest.approx(minicluster.plan.max_lifetime.total_seconds(), abs=60)
    assert cancelled.out == f"{name} of {getuser()} is cancelled\n"
    assert "refuses it: cancelled" in after.out
    assert again.out == f"{name} of {getuser()} was cancelled or forgotten before\n"
    assert not leaked(file, *(run.out + run.err for run in runs))


def test_cancel_requires_an_explicit_cluster(
    minicluster: Minicluster, kstream: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = issue(minicluster, tmp_path / "token")
    monkeypatch.setenv("KSTREAM_CLUSTER", str(kstream.cluster_file))
    refused = kstream.run("cancel", str(file))
    assert refused.code == 2
    assert "--cluster" in refused.err
    assert standing(minicluster, file).honoured is True


def test_somebody_else_than_the_connections_principal_renews(
    minicluster: Minicluster, kstream: Commands, tmp_path: Path
) -> None:
    with closing(Hdfs(minicluster.namenodes, identity(minicluster, "streamer"), Tls())) as hdfs:
        file = write_private(tmp_path / "token", hdfs.new_token("watcher").encode())
    watcher = ("--as", minicluster.principal("watcher"), "--keytab", str(minicluster.keytab("watcher")))
    assert "only its renewer 'watcher' may renew it" in kstream.on_cluster("renew", str(file)).err
    assert "is good until" in kstream.on_cluster("renew", str(file), *watcher).out
    assert "--as needs --keytab" in kstream.on_cluster("renew", str(file), *watcher[:2]).err


def test_a_file_is_shown_without_any_cluster_and_damage_with_its_byte(kstream: Commands, tmp_path: Path) -> None:
    broken = write_private(tmp_path / "broken", b"HDTS\x00\x01\x7f" + bytes(9))
    refused = kstream.run("show", str(broken))
    assert refused.code == 2
    assert f"{broken} can't be read as Hadoop credentials: byte 7: " in refused.err
    assert "Traceback" not in refused.err


def test_an_application_is_shown_with_what_is_not_visible_from_outside(
    minicluster: Minicluster, kstream: Commands, tmp_path: Path
) -> None:
    with sleeper(minicluster, fetch(minicluster, tmp_path / "token")) as app:
        printed = kstream.on_cluster("show", app)
        data = json.loads(kstream.on_cluster("show", app, "--json").out)
    assert "not visible from outside the application" in " ".join(printed.out.split())
    assert data["stream"] is None
    assert data["max_lifetime_seconds"] == minicluster.plan.max_lifetime.total_seconds()
    assert "--cluster" in kstream.run("show", app).err
