"""What may go of a state_dir, rule by rule: each refusal, and what no combination of facts may ever remove."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.clusters.authors import ALL_STREAMS, order_name, order_of
from airflow_kstream.model.streams.contract import claim_file, generation_of_file, newest_claim, stop_marker
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.policy.streams.housekeeping import FolderFacts, cleaning, cleaning_of_orders
from tests.simulated.folders import DAY, DRAFT, KEPT, MONTH, NOW, OLD, facts, files
from tests.simulated.yarn import STREAM


@st.composite
def any_facts(draw: st.DrawFn) -> FolderFacts:
    generations = draw(st.integers(0, 14))
    times = st.integers(0, 90).map(lambda days: NOW - days * DAY)
    there = {name: draw(times) for name in files(generations, OLD, DRAFT, stop_marker(generations))}
    number = st.integers(0, generations)
    return facts(
        generations,
        files={name: at for name, at in there.items() if draw(st.booleans()) or name == claim_file(generations)},
        declared=draw(st.sampled_from([True, False, None])),
        desired=Desired(draw(st.sampled_from(DesiredState))),
        living={f"application_1_{at}": at for at in draw(st.sets(number, max_size=2))},
        owned=draw(st.sampled_from([(), ("/data/orders",)])),
        doubt=draw(st.sampled_from(["", "", "no answer"])),
        strangers=draw(st.sampled_from([{}, {}, {"gen-000099": "mallory"}])),
    )


@given(any_facts())
def test_no_facts_let_go_of_what_somebody_needs(facts: FolderFacts) -> None:
    result = cleaning(facts, MONTH, KEPT)
    gone = {removal.path.removeprefix(f"{STREAM.folder}/") for removal in result.removals}
    if result.gone:
        assert facts.declared is False
        assert not any((facts.living, facts.owned, facts.doubt, facts.strangers))
        assert facts.desired.state is DesiredState.STOPPED or facts.claim is None
        assert all(at and NOW - at > MONTH for at in facts.files.values())
    assert claim_file(newest_claim(facts.files)) not in gone
    assert not {generation_of_file(name) for name in gone} & set(facts.living.values())
    assert all(at and NOW - at > MONTH for name, at in facts.files.items() if name in gone)


@given(st.dictionaries(st.tuples(st.sampled_from([str(STREAM), ALL_STREAMS]), st.integers(1, 40)), st.integers(0, 90)))
def test_no_clean_up_takes_the_last_order_on_anything(given_days_ago: dict[tuple[str, int], int]) -> None:
    orders = {order_name(*order): NOW - days * DAY for order, days in given_days_ago.items()}
    removals = cleaning_of_orders("/kstream/orders.ann", {**orders, "notes.txt": OLD}, NOW, MONTH, KEPT).removals
    gone = {removal.path.rpartition("/")[2] for removal in removals}
    left = set(given_days_ago) - {order_of(name) for name in gone}
    assert {subject for subject, _ in left} == {subject for subject, _ in given_days_ago}
    for subject, _ in given_days_ago:
        assert order_name(subject, max(each for of, each in given_days_ago if of == subject)) not in gone
    assert gone <= set(orders)
