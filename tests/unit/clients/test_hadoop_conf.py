"""A Hadoop conf folder as Hadoop reads it; tests/contract/hdfs/test_hadoop_conf.py asks Hadoop itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.model.errors import InvalidInput
from tests.hadoop_conf_cases import ENVIRONMENT, READ, TOO_DEEP, files, write_core_site


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HadoopConf:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    for name, content in files().items():
        (tmp_path / name).write_text(content)
    return HadoopConf(str(tmp_path))


@pytest.mark.parametrize(("name", "read"), READ.items())
def test_a_property_reads_as_hadoop_reads_it(conf: HadoopConf, name: str, read: str) -> None:
    if read == TOO_DEEP:
        with pytest.raises(InvalidInput, match="refers on more than 20 times"):
            conf.get(name)
    else:
        assert conf.get(name) == read


def test_an_address_with_references_is_resolved(tmp_path: Path) -> None:
    write_core_site(tmp_path, {"fs.defaultFS": "hdfs://${nn.host}:${nn.port}", "nn.host": "nn.test", "nn.port": "9000"})
    conf = HadoopConf(str(tmp_path))
    assert (conf.default_fs, conf.namenode_rpcs()) == ("hdfs://nn.test:9000", ("nn.test:9000",))


@pytest.mark.parametrize("href", ["http://elsewhere.test/a.xml", "core-site.xml", "none.xml"])
def test_an_include_that_leads_nowhere_is_refused_by_name(tmp_path: Path, href: str) -> None:
    include = f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{href}"/>'
    (tmp_path / "core-site.xml").write_text(f"<configuration>{include}</configuration>")
    with pytest.raises(InvalidInput, match=href):
        HadoopConf(str(tmp_path))
