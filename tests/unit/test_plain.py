"""Values of any type as plain data that JSON accepts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from airflow_kstream.model.plain import Group, as_iso, as_moment, as_number, as_whole, fields_of, plain


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


def test_a_time_that_others_wrote_has_a_zone_and_room_for_any_duration() -> None:
    assert as_iso("2026-03-01T14:00:00+02:00") == as_iso("20260301T120000Z") == "2026-03-01T12:00:00+00:00"
    for text in ("2026-03-01T12:00:00", "2026-03-01", "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59Z", ""):
        assert as_moment(text) is None


def test_a_number_that_others_wrote_can_be_counted_with() -> None:
    assert (as_number(2**62), as_number(-1.5), as_whole(-1), as_whole(1.0), as_whole(2**31)) == (
        2**62,
        -1.5,
        -1,
        None,
        None,
    )
    for value in (float("nan"), float("inf"), 10**400, True, "7", [7]):
        assert (as_number(value), as_whole(value)) == (None, None)
