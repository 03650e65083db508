"""Which rows of watched streams are written when, in virtual time."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from airflow_kstream.policy.states.due import MOST, REPEATED, Key, Kind, Row, Subject, next_due, next_rows

MANY = 200


@dataclass
class Fleet:
    """Streams that are looked at every 15 seconds, and a store that takes every write."""

    streams: int
    now: float = 0.0
    rows: dict[Key, Row] = field(default_factory=dict)
    held: dict[Subject, float] = field(default_factory=dict)
    states: dict[int, str] = field(default_factory=dict)
    generations: dict[int, int] = field(default_factory=dict)
    writes: dict[Key, list[float]] = field(default_factory=lambda: defaultdict(list))

    def live(self, seconds: int) -> None:
        for _ in range(seconds):
            for number in range(int(self.now) % 15, self.streams, 15):
                self.look(number)
            keys = next_rows(self.rows, self.held, self.now)
            for key in keys:
                self.rows[key] = self.rows[key].wrote(self.rows[key], self.now)
                self.writes[key].append(self.now)
            self.now += 1.0

    def look(self, number: int) -> None:
        mark, epoch = self.states.get(number, "running"), self.generations.get(number, 1)
        for kind in Kind:
            key = subject(number), kind
            row = self.rows.get(key) or Row(kind, mark, epoch, self.now, self.now)
            self.rows[key] = row.saw(mark, epoch, self.now)

    def written(self, number: int, kind: Kind) -> list[float]:
        return self.writes[subject(number), kind]

    def a_minute(self) -> int:
        """Return the most rows of any minute."""
        return max(Counter(int(moment // 60) for moments in self.writes.values() for moment in moments).values())


def subject(number: int) -> Subject:
    return "prod", f"stream-{number}"


def gaps(moments: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(moments)]


@pytest.fixture(scope="module")
def settled() -> Fleet:
    """More streams than can be written once a minute, all rows of which were written after their triggerer began."""
    fleet = Fleet(MANY)
    fleet.live(3 * MANY // MOST + 10)
    assert all(fleet.writes[key] for key in fleet.rows)
    assert fleet.a_minute() <= 60 * MOST
    return fleet


@pytest.fixture
def many(settled: Fleet) -> Fleet:
    return Fleet(MANY, settled.now, dict(settled.rows))


def test_many_healthy_streams_write_two_rows_a_second_the_oldest_first(many: Fleet) -> None:
    many.live(180)
    assert many.a_minute() <= 60 * REPEATED
    kinds = Kind.VERDICT, Kind.DETAIL
    written = [(number, kind) for number in range(MANY) for kind in kinds if many.written(number, kind)]
    assert len(written) == 180 * REPEATED, "none is written twice before the others"


def test_a_change_among_many_streams_is_written_within_seconds(many: Fleet) -> None:
    many.states[100] = "stalled"
    changed = many.now
    many.live(20)
    assert many.written(100, Kind.VERDICT)[-1] - changed <= 17


def test_verdicts_come_before_details_when_all_streams_change_at_once(many: Fleet) -> None:
    many.states = dict.fromkeys(range(MANY), "unknown")
    many.live(MANY // MOST + 20)
    assert all(many.written(number, Kind.VERDICT) for number in range(MANY))
    assert many.a_minute() <= 60 * MOST


def test_a_few_streams_are_written_once_a_minute() -> None:
    fleet = Fleet(30)
    fleet.live(600)
    assert {round(gap) for number in range(30) for gap in gaps(fleet.written(number, Kind.VERDICT))} <= {*range(60, 76)}
    assert {round(gap) for gap in gaps(fleet.written(7, Kind.DETAIL))} <= {*range(60, 76)}, "pages draw its batches"
    assert fleet.written(7, Kind.REPORT) == fleet.written(7, Kind.REPORT)[:1]


def test_a_detail_that_changes_all_the_time_is_written_twice_a_minute() -> None:
    fleet = Fleet(1)
    for second in range(1800):
        fleet.states[0] = f"state {second}"
        fleet.live(1)
    assert min(gaps(fleet.written(0, Kind.DETAIL))) >= 30
    assert min(gaps(fleet.written(0, Kind.VERDICT))) >= 10
    assert min(gaps(fleet.written(0, Kind.REPORT))) >= 60


def test_the_detail_of_a_new_generation_does_not_wait() -> None:
    fleet = Fleet(1)
    fleet.live(30)
    fleet.generations[0] = 2
    fleet.live(20)
    assert len(fleet.written(0, Kind.DETAIL)) == 2


def test_what_nobody_sees_any_longer_is_not_written_again() -> None:
    fleet = Fleet(1)
    fleet.live(14)
    fleet.streams = 0
    fleet.live(600)
    assert fleet.written(0, Kind.VERDICT) == [0.0]
    assert next_due(fleet.rows, fleet.held) is None


def test_a_stream_without_an_asset_is_left_alone_and_its_report_is_not() -> None:
    fleet = Fleet(1, held={subject(0): 600.0})
    fleet.live(600)
    assert not fleet.written(0, Kind.VERDICT)
    assert fleet.written(0, Kind.REPORT)
    fleet.live(20)
    assert fleet.written(0, Kind.VERDICT)


def test_rows_that_the_store_refused_come_one_at_a_time_behind_all_others() -> None:
    """They are the only ones that were never written, which otherwise come first."""
    fleet = Fleet(20)
    fleet.live(60)
    refused = [subject(number) for number in range(3)]
    for each in refused:
        fleet.rows[each, Kind.VERDICT] = fleet.rows[each, Kind.VERDICT].lost()
    *others, last = next_rows(fleet.rows, {}, fleet.now, refused)
    assert last[0] in refused
    assert len(others) == REPEATED
    assert all(key[0] not in refused for key in others)
