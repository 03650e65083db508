"""Hadoop's configuration by features: what the product reads in the folder for clients is what is there."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.minicluster.clients import first_stream
from airflow_kstream.minicluster.config import Feature, MiniclusterConfig
from airflow_kstream.minicluster.daemons import daemons_of, datanode_options, port_names
from airflow_kstream.minicluster.hadoop_conf import write_configuration
from airflow_kstream.minicluster.hdfs import directories
from airflow_kstream.minicluster.site import Site
from airflow_kstream.minicluster.tls import create
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.stream import StreamSpec


def site_with(root: Path, *features: Feature) -> Site:
    """Lay out a minicluster with these features; port 20000 is the first one's, and so on."""
    site = Site(MiniclusterConfig(root, frozenset(features)), {name: 20_000 + n for n, name in enumerate(port_names())})
    site.folders.create()
    write_configuration(site)
    return site


@pytest.mark.parametrize("more", [(), (Feature.TLS,)])
@pytest.mark.parametrize("pairs", [(), (Feature.HA,), (Feature.RM_HA,), (Feature.HA, Feature.RM_HA)])
def test_clients_read_the_addresses_that_the_daemons_have(
    tmp_path: Path, pairs: tuple[Feature, ...], more: tuple[Feature, ...]
) -> None:
    site = site_with(tmp_path, *pairs, *more)
    conf = HadoopConf(str(site.folders.client_conf))
    names = {daemon.name for daemon in daemons_of(site)}
    assert conf.namenodes() == tuple(site.url(f"{name}-web") for name in ("nn1", "nn2") if name in names)
    resourcemanagers = tuple(name for name in ("resourcemanager", "rm1", "rm2") if name in names)
    assert conf.resourcemanagers() == tuple(site.url(f"{name}-web") for name in resourcemanagers)
    assert len(resourcemanagers) == 1 + (Feature.RM_HA in pairs)


def test_clients_learn_neither_zookeepers_address_nor_the_servers_key(tmp_path: Path) -> None:
    site = site_with(tmp_path, *Feature)
    told = "".join(file.read_text() for file in site.folders.client_conf.iterdir())
    assert site.address("zookeeper") not in told
    assert str(site.folders.keystore) not in told
    assert str(site.folders.truststore) in told


@pytest.mark.parametrize("feature", [Feature.RM_HA, Feature.TLS, Feature.HTTPFS])
def test_a_feature_that_is_absent_leaves_no_trace(tmp_path: Path, feature: Feature) -> None:
    without = site_with(tmp_path / "without", Feature.HA)
    with_it = site_with(tmp_path / "with", Feature.HA, feature)
    assert added(without, with_it) != {}
    words = {Feature.RM_HA: ("rm1", "zk"), Feature.TLS: ("https", "ssl"), Feature.HTTPFS: ("httpfs",)}[feature]
    assert [name for name in settings(without) if any(word in name for word in words)] == []


def test_state_dir_is_open_to_the_group_of_those_who_need_it_and_to_nobody_else(tmp_path: Path) -> None:
    site = site_with(tmp_path)
    entries = settings(site)["hadoop.user.group.static.mapping.overrides"].strip(";").split(";")
    groups = {user: names.split(",") for user, _, names in (entry.partition("=") for entry in entries)}
    (state_dir,) = (folder for folder in directories(site) if folder.path == "/kstream")
    assert (state_dir.owner, state_dir.group, state_dir.permission) == ("supervisor", "kstream", "1775")
    assert {user for user, names in groups.items() if "kstream" in names} == {"supervisor", site.user, "gateway"}


def test_the_first_stream_of_the_pages_runs_on_a_minicluster(tmp_path: Path) -> None:
    """Its job is there, and its user may make its checkpoint."""
    site = site_with(tmp_path)
    declared = StreamSpec.from_mapping(first_stream("orders", "streamer@KSTREAM.TEST", Path("/keytabs/streamer")))
    assert Path(declared.application).exists()
    (folder,) = declared.checkpoints
    assert (site.user, "755") in {
        (each.owner, each.permission) for each in directories(site) if folder.startswith(f"{each.path}/")
    }


def added(without: Site, with_it: Site) -> dict[str, str]:
    before = settings(without)
    return {name: value for name, value in settings(with_it).items() if name not in before}


def settings(site: Site) -> dict[str, str]:
    """Return all settings of the daemons."""
    files = site.folders.daemon_conf.glob("*-site.xml")
    entries = [entry for file in files for entry in ElementTree.parse(file).getroot()]
    return {entry.findtext("name", ""): entry.findtext("value", "") for entry in entries}


def test_datanodes_share_one_configuration_and_have_ports_and_a_folder_each(tmp_path: Path) -> None:
    site = Site(MiniclusterConfig(tmp_path, frozenset(), datanodes=3), {name: n for n, name in enumerate(port_names())})
    assert [row.name for row in daemons_of(site)][2:5] == ["datanode", "datanode2", "datanode3"]
    values = [option for name in site.datanodes for option in datanode_options(site, name)]
    assert len(set(values)) == len(values) == 3 * 4


@pytest.mark.parametrize("datanodes", [0, 4])
def test_a_number_of_datanodes_that_no_minicluster_has_is_refused(tmp_path: Path, datanodes: int) -> None:
    with pytest.raises(InvalidInput, match=f"datanodes is {datanodes}; a minicluster has 1 to 3"):
        MiniclusterConfig(tmp_path, datanodes=datanodes)


def test_a_plan_that_was_written_down_is_read_back(tmp_path: Path) -> None:
    plan = MiniclusterConfig(tmp_path, frozenset({Feature.KMS}), datanodes=3, daemon_settings=(("a.xml", "b", "c"),))
    assert MiniclusterConfig.from_json(tmp_path, json.loads(json.dumps(plan.to_json()))) == plan


def test_the_servers_key_is_closed_to_others(tmp_path: Path) -> None:
    site = site_with(tmp_path, Feature.TLS)
    create(site)
    assert site.folders.keystore.stat().st_mode & 0o777 == 0o600
    assert site.folders.ca.read_text().startswith("-----BEGIN CERTIFICATE-----")
    assert "PRIVATE KEY" not in site.folders.ca.read_text()
