"""What the JVMs of a minicluster write lies below its folder: a kill leaves nothing in /tmp."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from airflow_kstream.minicluster import clients, yarn_conf
from airflow_kstream.minicluster.config import MiniclusterConfig
from airflow_kstream.minicluster.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "homes").mkdir()
    return Site(MiniclusterConfig(tmp_path), defaultdict(int))


def test_no_jvm_keeps_counters_in_tmp(site: Site) -> None:
    assert "-XX:-UsePerfData" in site.java_options()


def test_yarn_keeps_what_it_knows_of_nodes_in_a_folder_of_the_minicluster(site: Site) -> None:
    """Hadoop's default is in /tmp, whatever `hadoop.tmp.dir` and java.io.tmpdir are."""
    store = yarn_conf.daemon(site)["yarn.node-attribute.fs-store.root-dir"]
    assert str(store).startswith(site.folders.root.as_uri())


def test_servers_take_a_folder_of_the_minicluster_for_tmp(site: Site) -> None:
    assert f"-Djava.io.tmpdir={site.folders.root}/tmp" in site.java_options_outside_yarn()


def test_a_container_keeps_the_temporary_folder_that_yarn_gives_it(site: Site) -> None:
    """Of two options with one name Java takes the last one, and Spark's own stands before those of the confs."""
    assert "java.io.tmpdir" not in " ".join(site.java_options())
    assert "java.io.tmpdir" not in " ".join(clients.spark_conf(site).values())
