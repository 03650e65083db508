"""The options of the minicluster's JVMs: whatever one of them leaves when it is killed lies in the cluster's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.minicluster import daemons, java, kdc, zookeeper
from airflow_kstream.minicluster.clients import client_environment, spark_conf
from airflow_kstream.minicluster.config import Feature, MiniclusterConfig
from airflow_kstream.minicluster.site import Site

NO_COUNTERS = "-XX:-UsePerfData"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A laid out minicluster, of which nothing runs."""
    # No KDC runs that would give a ticket.
    monkeypatch.setattr(kdc.Kdc, "ticket", lambda _, name: tmp_path / name)
    site = Site(MiniclusterConfig(tmp_path / "cluster", frozenset(Feature)), dict.fromkeys(daemons.port_names(), 1))
    site.folders.create()
    return site


def temporary(options: list[str]) -> list[str]:
    return [option for option in options if option.startswith("-Djava.io.tmpdir=")]


def test_every_daemons_jvm_has_its_temporary_folder_in_the_clusters(site: Site) -> None:
    folder = site.folders.root / "tmp"
    assert folder.is_dir()
    commands = [
        java.hadoop(site, site.folders.daemon_conf, "nn1"),
        java.kafka(site, "kafka"),
        zookeeper.command(site, "zookeeper"),
    ]
    for command in commands:
        assert temporary(command) == [f"-Djava.io.tmpdir={folder}"]
        assert NO_COUNTERS in command
    assert java.environment(site, site.folders.daemon_conf)["TMPDIR"] == str(folder)


def test_spark_submit_has_it_there_too(site: Site) -> None:
    given = client_environment(site, "streamer")
    for options in (given["SPARK_SUBMIT_OPTS"].split(), given["SPARK_LAUNCHER_OPTS"].split()):
        assert temporary(options) == [f"-Djava.io.tmpdir={site.folders.root}/tmp"]
        assert NO_COUNTERS in options
    assert given["TMPDIR"] == f"{site.folders.root}/tmp"


@pytest.mark.parametrize("role", ["driver", "executor", "yarn.am"])
def test_a_containers_jvm_keeps_the_temporary_folder_that_spark_gives_it(site: Site, role: str) -> None:
    """It is in the container's working folder, and ends with the container."""
    options = spark_conf(site)[f"spark.{role}.extraJavaOptions"].split()
    assert temporary(options) == []
    assert NO_COUNTERS in options


def test_a_driver_gives_its_tokens_to_nobody_who_does_not_know_its_secret(site: Site) -> None:
    """Its port is open to each user of this host."""
    assert spark_conf(site)["spark.authenticate"] == "true"
