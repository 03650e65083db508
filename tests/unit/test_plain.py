"""Values of any type as plain data that JSON accepts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.plain import fields_of, plain


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    colour: Colour
    took: timedelta


LEAVES = st.none() | st.booleans() | st.integers() | st.text() | st.just(Inner(Colour.RED, timedelta(seconds=2)))
VALUES = st.recursive(
    LEAVES | st.datetimes(timezones=st.just(UTC)) | st.timedeltas() | st.frozensets(st.text()),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(VALUES)
def test_json_takes_what_is_plain_and_gives_it_back(value: object) -> None:
    assert json.loads(json.dumps(plain(value))) == plain(value)


def test_times_durations_enums_and_sets_are_plain() -> None:
    found = plain([datetime(2026, 1, 1, tzinfo=UTC), frozenset("ba"), Inner(Colour.RED, timedelta(minutes=1))])
    assert found == ["2026-01-01T00:00:00+00:00", ["a", "b"], {"colour": "red", "took": 60.0}]
    assert type(fields_of(Inner(Colour.RED, timedelta(0)))["colour"]) is str
