"""The driver's helper is shipped alone and repeats the contract: both sides must say the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.jobs import kstream_driver
from airflow_kstream.model.streams import contract

GENERATIONS = st.integers(1, 10_000_000)


@given(GENERATIONS)
def test_supervisor_and_driver_call_every_marker_the_same(generation: int) -> None:
    for marker in ("started_marker", "stop_marker", "stopped_marker", "failed_marker"):
        assert getattr(contract, marker)(generation) == getattr(kstream_driver, marker)(generation)


@given(st.lists(GENERATIONS))
def test_supervisor_and_driver_find_the_same_newest_claim(generations: list[int]) -> None:
    names = {contract.claim_file(number) for number in generations} | {"gen-1", ".claim-abc", "gen-000009.tmp"}
    assert contract.newest_claim(names) == kstream_driver.newest_claim(names) == max(generations, default=0)


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
