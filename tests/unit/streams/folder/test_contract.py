"""The driver's helper is shipped alone and repeats the contract: both sides must say the same."""

from __future__ import annotations

import pytest

from airflow_kstream.jobs import kstream_driver
from airflow_kstream.model.streams import contract
from airflow_kstream.policy.streams.spark.spark_stream import contract_conf


def test_supervisor_and_driver_speak_the_same_version_in_the_same_confs() -> None:
    assert contract_conf("orders-0badcafe", 3, "hdfs://prod/kstream/orders-0badcafe") == {
        kstream_driver.CONTRACT_CONF: kstream_driver.CONTRACT,
        kstream_driver.STREAM_CONF: "orders-0badcafe",
        kstream_driver.GENERATION_CONF: "3",
        kstream_driver.STATE_CONF: "hdfs://prod/kstream/orders-0badcafe",
    }


@pytest.mark.parametrize("name", ["desired.json", ".claim-abc", "gen-", "generation-000001", "fenced-000001"])
def test_a_file_of_no_generation_names_none(name: str) -> None:
    assert contract.generation_of_file(name) is None
