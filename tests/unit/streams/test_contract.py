"""The driver's helper is shipped alone and repeats the contract: both sides must say the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.jobs import kstream_driver
from airflow_kstream.model import contract
from airflow_kstream.policy.streams.spark_stream import contract_conf

GENERATIONS = st.integers(1, 10_000_000)


@given(GENERATIONS)
def test_supervisor_and_driver_call_every_marker_the_same(generation: int) -> None:
    for marker in ("started_marker", "stop_marker", "stopped_marker", "failed_marker"):
        assert getattr(contract, marker)(generation) == getattr(kstream_driver, marker)(generation)


@given(st.lists(GENERATIONS))
def test_supervisor_and_driver_find_the_same_newest_claim(generations: list[int]) -> None:
    names = {contract.claim_file(number) for number in generations} | {"gen-1", ".claim-abc", "gen-000009.tmp"}
    assert contract.newest_claim(names) == kstream_driver.newest_claim(names) == max(generations, default=0)


def test_supervisor_and_driver_speak_the_same_version_in_the_same_confs() -> None:
    assert contract_conf("orders-0badcafe", 3, "hdfs://prod/kstream/orders-0badcafe") == {
        kstream_driver.CONTRACT_CONF: kstream_driver.CONTRACT,
        kstream_driver.STREAM_CONF: "orders-0badcafe",
        kstream_driver.GENERATION_CONF: "3",
        kstream_driver.STATE_CONF: "hdfs://prod/kstream/orders-0badcafe",
    }


@given(GENERATIONS, st.text("0123456789abcdef", min_size=12, max_size=12))
def test_every_file_of_a_generation_names_it(generation: int, nonce: str) -> None:
    markers = (
        contract.started_marker,
        contract.stop_marker,
        contract.stopped_marker,
        contract.failed_marker,
        contract.accepted_marker,
        contract.reached_marker,
        contract.blocked_marker,
    )
    names = [contract.claim_file(generation), contract.fence_name(generation, nonce), *(m(generation) for m in markers)]
    assert {contract.generation_of_file(name) for name in names} == {generation}


@pytest.mark.parametrize("name", ["desired.json", ".claim-abc", "gen-", "generation-000001", "fenced-000001"])
def test_a_file_of_no_generation_names_none(name: str) -> None:
    assert contract.generation_of_file(name) is None
