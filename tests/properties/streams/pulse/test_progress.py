"""Offsets prove progress of no query that lacks a record of then, whatever Kafka deleted, compacted or added."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_kstream.model.streams.progress import CommittedBatch, PartitionAt, TopicsAt
from airflow_kstream.policy.streams.pulse.progress import behind

SIX = datetime(2026, 3, 1, 6, tzinfo=UTC)
ASKED = SIX + timedelta(hours=2)


@dataclass(frozen=True)
class Log:
    """A partition: what is left of its records, each with its offset and the minute after six at which it was
    appended; `end` is beyond the last record that there ever was, `first` beyond the last that retention took."""

    records: tuple[tuple[int, int], ...]
    first: int
    end: int

    def at_six(self) -> PartitionAt:
        """Answer as a broker does: the first record that is left and not older."""
        later = next(((offset, minute) for offset, minute in self.records if minute >= 0), None)
        if later is None:
            return PartitionAt(self.first, self.end)
        return PartitionAt(self.first, self.end, later[0], SIX + timedelta(minutes=later[1]))

    def lacked_by(self, read: int) -> bool:
        return any(minute < 0 and offset >= read for offset, minute in self.records)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    minutes = sorted(draw(st.lists(st.integers(-300, 100), max_size=30)))
    # Markers of transactions, and records that compaction took, leave gaps.
    steps = draw(st.lists(st.integers(1, 3), min_size=len(minutes), max_size=len(minutes)))
    offsets = [sum(steps[:number]) for number in range(len(steps))]
    first = draw(st.integers(0, sum(steps)))
    left = tuple((offset, minute) for offset, minute in zip(offsets, minutes, strict=True) if offset >= first)
    compacted = tuple(record for record in left if draw(st.booleans()))
    return Log(compacted, first, sum(steps))


TOPICS = st.dictionaries(st.integers(0, 5), logs(), min_size=1)


def query(topic: dict[int, Log], read: dict[int, int]) -> tuple[CommittedBatch, TopicsAt]:
    batch = CommittedBatch(7, SIX - timedelta(minutes=1), {"orders": read}, reads_more=False)
    return batch, TopicsAt(ASKED, {"orders": {number: log.at_six() for number, log in topic.items()}})


@given(TOPICS, st.data())
def test_a_query_that_lacks_a_record_of_then_is_behind(topic: dict[int, Log], data: st.DataObject) -> None:
    known = data.draw(st.sets(st.sampled_from(sorted(topic))))
    read = {number: data.draw(st.integers(0, topic[number].end)) for number in known}
    if any(log.lacked_by(read.get(number, 0)) for number, log in topic.items()):
        assert behind(SIX, *query(topic, read))


@given(TOPICS)
def test_a_query_that_has_read_all_is_never_behind(topic: dict[int, Log]) -> None:
    """So each wait ends, if the stream gets on: also where nothing arrives any more."""
    assert behind(SIX, *query(topic, {number: log.end for number, log in topic.items()})) == ""


@given(TOPICS, st.data())
def test_who_reads_on_is_not_behind_again(topic: dict[int, Log], data: st.DataObject) -> None:
    read = {number: data.draw(st.integers(0, log.end)) for number, log in topic.items()}
    further = {number: data.draw(st.integers(offset, topic[number].end)) for number, offset in read.items()}
    if not behind(SIX, *query(topic, read)):
        assert not behind(SIX, *query(topic, further))
