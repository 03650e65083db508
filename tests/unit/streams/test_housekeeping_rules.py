"""What may go of a state_dir, rule by rule: each refusal, and what no combination of facts may ever remove."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from airflow_kstream.model.clusters.authors import ALL_STREAMS, order_name
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.contract import (
    ended_file,
    fence_name,
)
from airflow_kstream.model.streams.generation import Desired, DesiredState, Missing
from airflow_kstream.model.versioned import UnknownSpec
from airflow_kstream.policy.streams.housekeeping import (
    FolderFacts,
    cleaning,
    cleaning_age,
    cleaning_of_journal,
    cleaning_of_orders,
    cleaning_of_root,
)
from tests.simulated.folders import DAY, DRAFT, KEPT, MONTH, NOW, OLD, STOPPED, facts, files
from tests.simulated.values import changed
from tests.simulated.yarn import STREAM, TICKET_SPEC, claim_of


def names(facts: FolderFacts) -> list[str]:
    return [removal.path.removeprefix(f"{STREAM.folder}/") for removal in cleaning(facts, MONTH, KEPT).removals]


@pytest.mark.parametrize(
    ("generations", "desired", "why"),
    [(2, STOPPED, "a person stopped it"), (0, STOPPED, "a person stopped it"), (0, Desired(), "it never ran")],
)
def test_a_gone_stream_loses_nothing_and_says_how_a_person_removes_it(
    generations: int, desired: Desired, why: str
) -> None:
    gone = cleaning(facts(generations, desired=desired, elsewhere=("/kstream/declared.me/orders-1",)), MONTH, KEPT)
    command = f"`hdfs dfs -rm -r {STREAM.folder} /kstream/declared.me/orders-1`"
    assert gone.gone == f"nobody declares it, and {why}; as long as that is so, {command} removes its folder"
    assert (gone.removals, gone.stays) == ((), "")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"desired": Desired()}, "its desired state is running; `kstream streams stop orders` gives it up"),
        ({"desired": Desired(DesiredState.HELD)}, "its desired state is held"),
        ({"living": {"application_1_0001": 2}}, "application_1_0001 runs"),
        ({"owned": ("/data/orders",)}, "it owns /data/orders, which `kstream streams stop orders` releases"),
        ({"files": {**files(2), fence_name(3, "late"): NOW - 29 * DAY}}, "it changed 29d ago"),
        ({"desired": replace(STOPPED, at=NOW - 29 * DAY)}, "a person stopped it 29d ago"),
        ({"strangers": {"notes.txt": "mallory"}}, "it holds notes.txt of mallory"),
        ({"files": {**files(2), "notes.txt": OLD}}, "it holds notes.txt, which this version does not know"),
        ({"claim": None, "files": files(2)}, "generation 2 left files, and its claim is gone"),
        ({"files": {**files(2), "folder": None}}, "it holds folder, which this version does not know"),
        ({"doubt": "gen-000002 can't be understood"}, "gen-000002 can't be understood"),
        ({"claim": replace(claim_of(TICKET_SPEC, 2, OLD), spec=UnknownSpec("it is of version 3"))}, "version 3"),
        (
            {"claim": changed(claim_of(TICKET_SPEC, 2, OLD), missing=frozenset(Missing))},
            "doesn't tell its",
        ),
    ],
)
def test_each_doubt_keeps_the_folder_and_says_why(changed: Mapping[str, Any], why: str) -> None:
    result = cleaning(facts(**changed), MONTH, KEPT)
    assert (result.removals, result.gone) == ((), "")
    assert why in result.stays


@pytest.mark.parametrize("declared", [True, None])
def test_a_stream_that_is_declared_or_may_be_keeps_its_folder(declared: bool | None) -> None:
    result = cleaning(facts(declared=declared), MONTH, KEPT)
    assert (result.removals, result.stays, result.gone) == ((), "", "")


def test_a_held_stream_that_never_ran_keeps_the_persons_word() -> None:
    assert not cleaning(facts(0, desired=Desired(DesiredState.HELD)), MONTH, KEPT).gone


def test_a_draft_goes_when_its_writer_must_be_dead() -> None:
    fresh, old = {**files(2), DRAFT: NOW - DAY}, {**files(2), DRAFT: OLD}
    assert names(facts(files=fresh, declared=True)) == []
    assert names(facts(files=old, declared=True)) == [DRAFT]
    assert names(facts(files=old, declared=True, doubt="no answer")) == []


def test_history_goes_as_a_cleanup_after_a_restart_would_delete_it() -> None:
    gone = names(facts(12, files=files(12), declared=True))
    assert gone == [
        *(name for name in sorted(files(2)) if not name.startswith("ended")),
        *(ended_file(number) for number in range(1, 10)),
    ]


def test_a_generation_that_lives_keeps_its_fence_whatever_its_age() -> None:
    gone = names(facts(15, declared=True, living={"application_1_0001": 3}))
    assert fence_name(3, "nonce3") not in gone
    assert {fence_name(2, "nonce2"), fence_name(4, "nonce4")} < set(gone)


def test_the_last_orders_on_each_subject_stay_and_the_root_loses_drafts_alone() -> None:
    many = {order_name(ALL_STREAMS, number): OLD for number in range(1, 13)}
    others = {order_name(str(STREAM), 7): OLD, ".order.0123": OLD, ".order.new": NOW, "x": OLD}
    orders = cleaning_of_orders("/kstream/orders.ann", {**many, **others}, NOW, MONTH, KEPT)
    assert [removal.path.rpartition("/")[2] for removal in orders.removals] == [
        ".order.0123",
        order_name(ALL_STREAMS, 1),
        order_name(ALL_STREAMS, 2),
    ]
    root = {".check-0123.first": OLD, ".check-4567": NOW, "README": OLD, "orders-1": None}
    assert [removal.path for removal in cleaning_of_root("/kstream", root, NOW, MONTH).removals] == [
        "/kstream/.check-0123.first"
    ]


@pytest.mark.parametrize(("days", "goes"), [(89, False), (91, True)])
def test_records_of_lease_recoveries_go_after_three_months(days: int, goes: bool) -> None:
    """Whatever shorter time somebody gives; a longer one counts."""
    record, at = "20260101T000000Z-abcdef01-000000-intents.jsonl", NOW - days * DAY
    kept = {"README": at, "20260101T000000Z-abcdef02-000000-intents.jsonl": NOW, "old.jsonl": None}
    for older_than, removed in ((DAY, goes), (MONTH, goes), (92 * DAY, False)):
        cleaning = cleaning_of_journal("/kstream/leases.ann/audit", {record: at, **kept}, NOW, older_than)
        paths = [removal.path for removal in cleaning.removals]
        assert paths == ([f"/kstream/leases.ann/audit/{record}"] if removed else [])


@pytest.mark.parametrize("text", ["23h", "0s", "4000d", "soon", ""])
def test_an_age_at_which_files_are_still_in_use_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        cleaning_age("--older-than", text)
