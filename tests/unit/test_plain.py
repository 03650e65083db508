"""Values of any type as plain data that JSON accepts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.plain import Group, fields_of, plain


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    colour: Colour
    took: timedelta


@dataclass(frozen=True)
class Half(Group):
    left: int
    right: timedelta


@dataclass(frozen=True)
class Whole:
    name: str
    half: Half
    last: tuple[Inner, ...] = ()


def test_the_fields_of_a_group_stand_among_those_of_the_value() -> None:
    found = fields_of(Whole("w", Half(1, timedelta(minutes=1))))
    assert list(found.items()) == [("name", "w"), ("left", 1), ("right", 60.0), ("last", [])]


def test_times_durations_enums_and_sets_are_plain() -> None:
    found = plain([datetime(2026, 1, 1, tzinfo=UTC), frozenset("ba"), Inner(Colour.RED, timedelta(minutes=1))])
    assert found == ["2026-01-01T00:00:00+00:00", ["a", "b"], {"colour": "red", "took": 60.0}]
    assert type(fields_of(Inner(Colour.RED, timedelta(0)))["colour"]) is str
