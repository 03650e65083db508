"""What the playground and the demonstration run of Flink's: declarations, and a job that is compiled on the spot."""

from __future__ import annotations

import getpass
import re
from pathlib import Path

import pytest

from airflow_kstream.demo import config, playground
from airflow_kstream.demo.config import DemoConfig
from airflow_kstream.demo.environment import CONTROL_CONF, forget_former_run
from airflow_kstream.demo.flink_job import javac
from airflow_kstream.minicluster import Minicluster, MiniclusterConfig
from airflow_kstream.minicluster.bringup import begin
from airflow_kstream.minicluster.config import Feature
from airflow_kstream.minicluster.tools import java_home
from airflow_kstream.model.errors import MiniclusterError
from tests.pages import ROOT


def test_each_declaration_is_one_that_a_folder_may_hold(tmp_path: Path) -> None:
    plan = DemoConfig.of_flink(tmp_path, once=True)
    minicluster = Minicluster(begin(MiniclusterConfig(tmp_path / "minicluster", plan.features)))
    streams = config.streams(plan, minicluster, tmp_path / "kafka-client.keytab")
    assert [spec.name for spec in streams] == ["events-keytab", "events-pushed"]
    for spec in (*streams, *playground.streams(minicluster)):
        assert spec.checked() == spec


def test_the_page_of_flink_names_what_its_stream_of_the_playground_has(tmp_path: Path) -> None:
    plan = MiniclusterConfig(tmp_path / "minicluster", frozenset({Feature.HA, Feature.FLINK}))
    visits = playground.streams(Minicluster(begin(plan)))[-1]
    named = re.findall(r'dfs -ls -R "([^"]+)"', (ROOT / "docs/streams/flink.md").read_text())
    assert [name.replace("$(whoami)", getpass.getuser()) for name in named] == [str(Path(visits.checkpoints[0]).parent)]
    of_one_s_own = (ROOT / "docs/start/playground.md").read_text()
    assert [name in of_one_s_own for name in (f"{visits.name}.yaml", "deploy.lib_dirs", "deploy.main_class")] == [
        True
    ] * 3
    assert visits.to_mapping()["deploy"].keys() >= {"lib_dirs", "main_class"}


def test_the_supervisor_may_recover_part_files_by_the_command_that_the_page_names(tmp_path: Path) -> None:
    plan = MiniclusterConfig(tmp_path / "minicluster", frozenset({Feature.HA, Feature.FLINK}))
    streams = playground.streams(Minicluster(begin(plan)))
    rows = f"/user/{getpass.getuser()}/playground/visits/rows"
    made, given = playground.rights_to_recover(streams)
    assert made == ("-mkdir", "-p", rows), "the files inherit what their folder has when they are created"
    page = (ROOT / "docs/stuck-files.md").read_text()
    [named] = re.findall(r"`hdfs dfs (-setfacl .*)`", page)
    assert given == tuple(named.replace("NAME", "supervisor").replace("FOLDER", rows).split())


def test_the_control_can_be_submitted_from_the_same_folder_twice(tmp_path: Path) -> None:
    minicluster = Minicluster(begin(MiniclusterConfig(tmp_path / "minicluster", frozenset({Feature.FLINK}))))
    for _ in range(2):
        forget_former_run(tmp_path)
        minicluster.flink_client(tmp_path / CONTROL_CONF, {}, ("job.jar",))
    assert (tmp_path / CONTROL_CONF / "config.yaml").is_file()


def test_a_runtime_without_a_compiler_is_refused_with_what_to_install(tmp_path: Path) -> None:
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text(f'#!/bin/sh\nexec {java_home()}/bin/java --limit-modules java.base "$@"\n')
    java.chmod(0o755)
    with pytest.raises(MiniclusterError, match=r"has no compiler, .*: install a JDK"):
        javac("-version", java=tmp_path)
