"""What proves that a query has committed all that had arrived by a moment: the judgement alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.progress import (
    CommittedBatch,
    PartitionAt,
    ProgressAnswer,
    ProgressCondition,
    Proof,
    QueryJudgement,
    StreamStanding,
    TopicsAt,
)
from airflow_kstream.model.streams.stall import Pulse
from airflow_kstream.model.streams.stream_policies import Offsets
from airflow_kstream.policy.streams.pulse.progress import discounted, judged, made_again

SIX = datetime(2026, 3, 1, 6, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
AWAITED = ProgressCondition(stream="orders", moment=SIX)
PATIENT = replace(AWAITED, quiet_after=10 * MINUTE)
WELL = StreamStanding(SIX + 30 * MINUTE, Desired(), lives=True, pulse=Pulse.IDLE)


def batch(planned: datetime, kafka: Offsets | None = None, *, reads_more: bool = False) -> CommittedBatch:
    return CommittedBatch(7, planned, kafka or {}, reads_more or not kafka)


def point(moved: datetime, *, in_flight: bool = False) -> Checkpoint:
    offsets = {7: moved} | ({8: moved} if in_flight else {})
    return Checkpoint("/data/orders", "q", offsets, {7: moved})


def kafka(**partitions: PartitionAt) -> TopicsAt:
    """What the topic `orders` had, asked half an hour later; its partitions are named p0, p1."""
    return TopicsAt(SIX + 30 * MINUTE, {"orders": {int(name[1:]): at for name, at in partitions.items()}})


def proof(read: CommittedBatch, topics: TopicsAt | None = None, awaited: ProgressCondition = AWAITED) -> Proof | None:
    return judged(awaited, WELL, point(read.planned), read, topics).proof


@pytest.mark.parametrize("state", [DesiredState.HELD, DesiredState.STOPPED])
def test_a_stream_that_a_person_holds_or_stopped_does_not_count(state: DesiredState) -> None:
    assert discounted(AWAITED, replace(WELL, desired=Desired(state))) == f"it is {state}"


@pytest.mark.parametrize("pulse", [None, Pulse.UNKNOWN, Pulse.CHANGED, Pulse.NO_CHECKPOINT])
def test_a_stream_whose_progress_is_not_known_does_not_count(pulse: Pulse | None) -> None:
    assert "kstream streams status orders" in discounted(AWAITED, replace(WELL, pulse=pulse))


@pytest.mark.parametrize("pulse", [Pulse.STALLED, Pulse.SLOW, Pulse.STARTING, Pulse.START_STALLED, Pulse.HEALTHY])
def test_what_is_committed_counts_whatever_the_next_batch_does(pulse: Pulse) -> None:
    assert discounted(AWAITED, replace(WELL, pulse=pulse, lives=False)) == ""


def test_nothing_counts_before_the_moment_has_passed_by_a_minute() -> None:
    assert "has not passed" in discounted(AWAITED, replace(WELL, now=SIX + MINUTE - timedelta(seconds=1)))
    assert discounted(AWAITED, replace(WELL, now=SIX + MINUTE)) == ""


def test_without_kafka_a_batch_that_was_planned_a_minute_later_proves_it() -> None:
    assert proof(batch(SIX + MINUTE)) is Proof.BATCH
    assert proof(batch(SIX + MINUTE - timedelta(seconds=1))) is None
    assert judged(AWAITED, WELL, Checkpoint("/data/orders", None), None, None) == QueryJudgement(
        None, "no batch is committed yet"
    )


def test_a_quiet_stream_is_done_only_if_somebody_said_how_long_that_is() -> None:
    early = batch(SIX - 60 * MINUTE)
    assert proof(early) is None
    assert proof(early, awaited=PATIENT) is Proof.QUIET
    assert proof(early, awaited=replace(AWAITED, quiet_after=31 * MINUTE)) is None, "it counts from the moment on"


@pytest.mark.parametrize(
    ("standing", "moved"),
    [
        (replace(WELL, pulse=Pulse.STALLED), point(SIX - 60 * MINUTE)),
        (replace(WELL, pulse=Pulse.STARTING), point(SIX - 60 * MINUTE)),
        (replace(WELL, lives=False), point(SIX - 60 * MINUTE)),
        (WELL, point(SIX - 60 * MINUTE, in_flight=True)),
        (WELL, point(SIX + 25 * MINUTE)),
    ],
    ids=["stalled", "starting", "dead", "in flight", "moved"],
)
def test_only_a_stream_that_is_well_and_at_rest_is_quiet(standing: StreamStanding, moved: Checkpoint) -> None:
    assert judged(PATIENT, standing, moved, batch(SIX - 60 * MINUTE), None).proof is None


def test_with_kafka_the_offsets_of_then_prove_it_of_a_batch_that_is_older() -> None:
    """The first record since then is at 42: whoever has read up to there has all."""
    since = kafka(p0=PartitionAt(0, 50, later=42, stamped=SIX))
    assert proof(batch(SIX - MINUTE, {"orders": {0: 42}}), since) is Proof.OFFSETS
    assert proof(batch(SIX - MINUTE, {"orders": {0: 41}}), since) is None


def test_a_partition_without_a_later_record_has_to_be_read_to_its_end() -> None:
    quiet = kafka(p0=PartitionAt(0, 50), p1=PartitionAt(0, 0), p2=PartitionAt(9, 9))
    assert proof(batch(SIX - MINUTE, {"orders": {0: 50, 1: 0, 2: 9}}), quiet) is Proof.OFFSETS
    assert proof(batch(SIX - MINUTE, {"orders": {0: 49, 1: 0, 2: 9}}), quiet) is None


def test_neither_a_later_batch_nor_quiet_proves_what_offsets_disprove() -> None:
    """Its batches are limited, or it is blocked."""
    behind = batch(SIX + 5 * MINUTE, {"orders": {0: 41}})
    told = judged(PATIENT, WELL, point(behind.planned), behind, kafka(p0=PartitionAt(0, 50, 42, SIX)))
    assert told == QueryJudgement(None, "it has not reached the offsets of then in orders[0]")


def test_a_record_from_the_future_tells_nothing_of_those_behind_it() -> None:
    future = PartitionAt(0, 50, later=5, stamped=SIX + 90 * MINUTE)
    assert proof(batch(SIX, {"orders": {0: 5}}), kafka(p0=future)) is None
    assert proof(batch(SIX, {"orders": {0: 50}}), kafka(p0=future)) is Proof.OFFSETS


def test_what_arrived_while_kafka_was_asked_is_not_awaited() -> None:
    assert proof(batch(SIX, {"orders": {0: 50}}), kafka(p0=PartitionAt(0, 50, 53, SIX + 30 * MINUTE))) is Proof.OFFSETS


def test_where_retention_passed_the_moment_the_first_record_that_is_left_counts() -> None:
    gone = kafka(p0=PartitionAt(70, 90, later=70, stamped=SIX + 5 * MINUTE))
    assert proof(batch(SIX, {"orders": {0: 60}}), gone) is None
    assert proof(batch(SIX, {"orders": {0: 70}}), gone) is Proof.OFFSETS


def test_a_new_partition_counts_with_what_it_had_until_a_plan_must_have_known_it() -> None:
    full, empty = PartitionAt(0, 8, later=5, stamped=SIX), PartitionAt(0, 8, later=0, stamped=SIX)
    old, read = PartitionAt(0, 3), {"orders": {0: 3}}
    assert proof(batch(SIX - MINUTE, read), kafka(p0=old, p1=full)) is None
    assert proof(batch(SIX - MINUTE, read), kafka(p0=old, p1=empty)) is Proof.OFFSETS
    assert proof(batch(SIX + 6 * MINUTE, read), kafka(p0=old, p1=full)) is Proof.OFFSETS, "its query reads p0 alone"


def test_what_a_query_reads_beside_kafka_a_later_batch_proves() -> None:
    reached = kafka(p0=PartitionAt(0, 3))
    assert proof(batch(SIX - MINUTE, {"orders": {0: 3}}, reads_more=True), reached) is None
    assert proof(batch(SIX + MINUTE, {"orders": {0: 3}}, reads_more=True), reached) is Proof.BATCH
    assert proof(batch(SIX + MINUTE, {"orders": {0: 2}}, reads_more=True), reached) is None


def test_a_topic_that_was_made_again_is_not_the_one_that_was_read() -> None:
    read = batch(SIX, {"orders": {0: 5_000}})
    assert made_again(read, kafka(p0=PartitionAt(0, 5_000))) == ""
    assert made_again(read, kafka(p0=PartitionAt(0, 10))).startswith("orders: deleted and made again")
    assert made_again(read, kafka(p1=PartitionAt(0, 9_000))).startswith("orders: ")


def test_many_partitions_are_named_in_short() -> None:
    many = kafka(**{f"p{number}": PartitionAt(0, 1) for number in range(10)})
    told = judged(AWAITED, WELL, point(SIX), batch(SIX, {"orders": dict.fromkeys(range(10), 0)}), many)
    assert told.why.endswith(" in orders[0], orders[1], orders[2] and 7 more partitions")


def test_a_stream_with_several_queries_has_the_weakest_of_their_proofs() -> None:
    by = {proof: QueryJudgement(proof, proof.value) for proof in Proof}
    both = ProgressAnswer(AWAITED, SIX, {"/a": by[Proof.OFFSETS], "/b": by[Proof.QUIET]})
    assert (both.proof, both.report()["proof"]) == (Proof.QUIET, "quiet")
    assert both.words == ("orders has committed what had arrived by 2026-03-01T06:00:00+00:00; /a: offsets; /b: quiet")
    assert ProgressAnswer(AWAITED, SIX, {"/a": by[Proof.OFFSETS], "/b": QueryJudgement(None, "not yet")}).proof is None
    assert ProgressAnswer(AWAITED, SIX, {}, "it is held").proof is None


@pytest.mark.parametrize("moment", ["2026-03-01 06:00:00+00:00", "2026-03-01T07:00:00+01:00", SIX])
def test_a_moment_is_one_however_it_is_written(moment: object) -> None:
    read = ProgressCondition.from_mapping({"stream": "orders", "moment": moment, "quiet_after": "10m"})
    assert read == PATIENT
    assert ProgressCondition.from_mapping(read.to_mapping()) == read


@pytest.mark.parametrize("moment", ["2026-03-01 06:00:00", "06:00", "", None, 1_700_000_000, datetime(2026, 3, 1)])
def test_a_moment_without_a_zone_is_refused(moment: object) -> None:
    with pytest.raises(InvalidInput, match=r"moment is .*; allowed is a moment with its time zone"):
        ProgressCondition.from_mapping({"stream": "orders", "moment": moment})
