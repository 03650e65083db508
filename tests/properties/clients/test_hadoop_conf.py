"""A Hadoop conf folder as Hadoop reads it; tests/contract/hdfs/test_hadoop_conf.py asks Hadoop itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.clients.hadoop_conf import HadoopConf
from airflow_kstream.model.errors import InvalidInput
from tests.hadoop_conf_cases import write_core_site


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from(["${a}", "${b}", "${c}", "x", "$", "}"]))))
def test_any_references_come_to_an_end(tmp_path_factory: pytest.TempPathFactory, values: dict[str, list[str]]) -> None:
    folder = tmp_path_factory.mktemp("conf")
    write_core_site(folder, {name: "".join(parts) for name, parts in values.items()})
    conf = HadoopConf(str(folder))
    for name, parts in values.items():
        try:
            assert "$" in "".join(parts) or conf.get(name) == "".join(parts)
        except InvalidInput:
            assert "$" in "".join(parts)
