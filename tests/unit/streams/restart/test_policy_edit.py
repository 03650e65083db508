"""Edited policies: which of two declarations is the older one, by what each gives."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_kstream.model.streams.declarations import UNEDITED, PolicyEdit, edited, mark_of, policies_of, read_policies
from tests.simulated.life import SPEC

THEN = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def policies(max_age: str | None = None, **more: Any) -> dict[str, Any]:
    return read_policies({"restart": {"max_age": max_age}, **more})


def edits(*ages: str | None) -> PolicyEdit:
    """Return the last of these edits, one an hour."""
    last: PolicyEdit | None = None
    for hours, age in enumerate(ages):
        last = edited(last, policies(age), THEN + hours * HOUR)
    assert last is not None
    return last


def test_it_keeps_what_the_declaration_chose_and_no_default() -> None:
    edit = edited(None, policies("1d", heartbeat={"on_stall": "restart", "stall_factor": 4}), THEN)
    assert edit.policies == {"restart": {"max_age": "86400s"}, "heartbeat": {"on_stall": "restart"}}
    assert edits("1d", None).policies == {}
    assert PolicyEdit.from_json(json.loads(json.dumps(edit.to_json()))) == edit


@pytest.mark.parametrize("unknown", [None, {}, "1d", {"policies": {}}, {"policies": {}, "at": "soon", "former": []}])
def test_an_edit_that_can_not_be_read_is_none(unknown: object) -> None:
    assert PolicyEdit.from_json(unknown) is None


def test_equal_policies_have_equal_marks_in_whatever_way_they_are_written() -> None:
    assert mark_of(policies("24h")) == mark_of(policies("1d")) != mark_of(policies("2d"))
    assert mark_of(policies(None)) == UNEDITED
    assert mark_of(policies_of(SPEC)) == mark_of(read_policies(SPEC.to_mapping()))


@pytest.mark.parametrize(
    ("given", "read", "replaced"),
    [
        ("7d", None, True),
        (None, None, True),
        # It is the same.
        ("1d", THEN, False),
        # A later edit, which nobody stored yet.
        ("3d", None, False),
        ("3d", THEN + 2 * HOUR, False),
        # Before anything was stored, the file was edited.
        ("3d", THEN, True),
    ],
)
def test_an_edit_replaces_what_was_declared_before_it(given: str, read: datetime | None, *, replaced: bool) -> None:
    assert edits("7d", "1d").replaces(mark_of(policies(given)), read) is replaced


def test_an_edit_replaces_nothing_known() -> None:
    assert edits("1d").replaces(None)


def test_an_edit_that_was_taken_back_is_the_older_one() -> None:
    back = edits("7d", "1d", "7d")
    assert back.replaces(mark_of(policies("1d")))
    assert not back.replaces(mark_of(policies("7d")))
    assert replace(back, former=()).former == ()


def test_only_the_last_edits_are_remembered() -> None:
    assert len(edits(*(f"{days}d" for days in range(1, 30))).former) == 10
