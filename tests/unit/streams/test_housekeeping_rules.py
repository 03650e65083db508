"""What may go of a state_dir, rule by rule: each refusal, and what no combination of facts may ever remove."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from airflow_kstream.model.contract import (
    claim_file,
    desired_file,
    ended_file,
    fence_name,
    number_of_desired,
)
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.freeze import freeze_file
from airflow_kstream.model.generation import Desired, DesiredState, Missing
from airflow_kstream.model.persisted_spec import UnknownSpec
from airflow_kstream.policy.streams.housekeeping import (
    FolderFacts,
    RemovalKind,
    cleaning,
    cleaning_age,
    cleaning_of_brake,
    cleaning_of_root,
)
from tests.simulated.folders import DAY, DRAFT, KEPT, MONTH, NOW, OLD, STOPPED, facts, files
from tests.simulated.yarn import STREAM, TICKET_SPEC, claim_of


def names(facts: FolderFacts) -> list[str]:
    return [removal.path.removeprefix(f"{STREAM.folder}/") for removal in cleaning(facts, MONTH, KEPT).removals]


def test_the_folder_of_a_gone_stream_goes_with_its_last_word_and_itself_at_the_end() -> None:
    result = cleaning(facts(), MONTH, KEPT)
    assert {removal.kind for removal in result.removals} == {RemovalKind.FOLDER}
    *_, claim, word, folder = [removal.path for removal in result.removals]
    assert (claim, word) == (f"{STREAM.folder}/{claim_file(2)}", f"{STREAM.folder}/{desired_file(1)}")
    assert folder == STREAM.folder
    assert len(result.removals) == len(files(2)) + 1


@pytest.mark.parametrize("desired", [Desired(), STOPPED])
def test_a_stream_that_never_ran_is_gone(desired: Desired) -> None:
    assert names(facts(0, desired=desired)) == [desired_file(1), STREAM.folder]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"desired": Desired()}, "its desired state is running; `kstream streams stop orders` gives it up"),
        ({"desired": Desired(DesiredState.HELD)}, "its desired state is held"),
        ({"living": {"application_1_0001": 2}}, "application_1_0001 runs"),
        ({"owned": ("/data/orders",)}, "it owns /data/orders, which `kstream streams stop orders` releases"),
        ({"files": {**files(2), desired_file(2): NOW - 29 * DAY}}, "it changed 29d ago"),
        ({"files": {**files(2), "notes.txt": OLD}}, "it holds notes.txt, which this version does not know"),
        ({"claim": None, "files": files(2)}, "generation 2 left files, and its claim is gone"),
        ({"files": {**files(2), "folder": None}}, "it holds folder, which this version does not know"),
        ({"doubt": "gen-000002 can't be understood"}, "gen-000002 can't be understood"),
        ({"claim": replace(claim_of(TICKET_SPEC, 2, OLD), spec=UnknownSpec("it is of version 3"))}, "version 3"),
        ({"claim": replace(claim_of(TICKET_SPEC, 2, OLD), missing=frozenset(Missing))}, "doesn't tell its"),
    ],
)
def test_each_doubt_keeps_the_folder_and_says_why(changed: Mapping[str, Any], why: str) -> None:
    result = cleaning(facts(**changed), MONTH, KEPT)
    assert result.removals == ()
    assert why in result.stays


@pytest.mark.parametrize("declared", [True, None])
def test_a_stream_that_is_declared_or_may_be_keeps_its_folder(declared: bool | None) -> None:
    result = cleaning(facts(declared=declared), MONTH, KEPT)
    assert (result.removals, result.stays) == ((), "")


def test_a_held_stream_that_never_ran_keeps_the_persons_word() -> None:
    assert names(facts(0, desired=Desired(DesiredState.HELD))) == []


def test_a_draft_goes_when_its_writer_must_be_dead() -> None:
    fresh, old = {**files(2), DRAFT: NOW - DAY}, {**files(2), DRAFT: OLD}
    assert names(facts(files=fresh, declared=True)) == []
    assert names(facts(files=old, declared=True)) == [DRAFT]
    assert names(facts(files=old, declared=True, doubt="no answer")) == []


def test_history_goes_as_a_cleanup_after_a_restart_would_delete_it() -> None:
    gone = names(facts(12, files=files(12, words=12), declared=True))
    assert gone == [
        *(name for name in sorted(files(2)) if not number_of_desired(name) and not name.startswith("ended")),
        desired_file(1),
        desired_file(2),
        *(ended_file(number) for number in range(1, 10)),
    ]


def test_a_generation_that_lives_keeps_its_fence_whatever_its_age() -> None:
    gone = names(facts(15, declared=True, living={"application_1_0001": 3}))
    assert fence_name(3, "nonce3") not in gone
    assert {fence_name(2, "nonce2"), fence_name(4, "nonce4")} < set(gone)


def test_the_brake_keeps_its_last_words_and_the_root_loses_drafts_alone() -> None:
    words = {freeze_file(number): OLD for number in range(1, 13)} | {".freeze-0123": OLD, ".freeze-new": NOW, "x": OLD}
    brake = cleaning_of_brake("/kstream/freeze", words, NOW, MONTH, KEPT)
    assert [removal.path.rpartition("/")[2] for removal in brake.removals] == [
        ".freeze-0123",
        freeze_file(1),
        freeze_file(2),
    ]
    root = {".check-0123.first": OLD, ".check-4567": NOW, "README": OLD, "orders-1": None}
    assert [removal.path for removal in cleaning_of_root("/kstream", root, NOW, MONTH).removals] == [
        "/kstream/.check-0123.first"
    ]


@pytest.mark.parametrize("text", ["23h", "0s", "4000d", "soon", ""])
def test_an_age_at_which_files_are_still_in_use_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        cleaning_age("--older-than", text)
