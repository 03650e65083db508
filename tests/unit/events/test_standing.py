"""What is said of a stall to who looks: the newest reason, and no advice that is followed already."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.streams.event import EventKind, LastingEvent
from airflow_kstream.model.streams.stream_state import StoredProgress, StreamState
from airflow_kstream.policy.events.standing import StandingFacts, StandingTrouble, standing

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BEGAN = NOW - timedelta(minutes=16)
BEFORE, AFTER = BEGAN - timedelta(hours=1), BEGAN + timedelta(minutes=14)
STALL = LastingEvent(EventKind.STALLED, BEGAN, "batch 12 has been in flight for 41s")
LATER = "batch 12 has been in flight for 16m"
RESTART = "`kstream streams restart clicks`"


def stands(state: str, pulse: str, claimed: datetime | None = BEFORE) -> StandingTrouble:
    seen = StreamState(state, "", 3, "application_1_0003", NOW, progress=StoredProgress(pulse=pulse))
    return standing(STALL, seen, "clicks", StandingFacts(claimed, LATER))


def test_a_stall_that_lasts_has_the_words_of_the_last_look() -> None:
    told = stands("running", "STALLED")
    assert (told.since, told.why) == (BEGAN, LATER)
    assert RESTART in told.way_out


def test_a_stalled_generation_that_is_about_to_be_replaced_is_not_to_be_restarted() -> None:
    told = stands("stop", "STALLED")
    assert told.why == LATER
    assert RESTART not in told.way_out
    assert not told.waits


@pytest.mark.parametrize(
    ("state", "pulse", "claimed"),
    [
        ("starting", "STARTING", AFTER),
        ("starting", "STARTING", None),
        ("starting", "", AFTER),
        ("running", "SLOW", AFTER),
    ],
)
def test_a_stall_of_the_generation_before_leaves_nothing_to_do(
    state: str, pulse: str, claimed: datetime | None
) -> None:
    told = stands(state, pulse, claimed)
    assert (told.words, told.since) == ("it stalled, and generation 3 has yet to commit", claimed)
    assert "wait for its first commit" in told.way_out
    assert RESTART not in told.way_out
    assert told.waits


def test_a_next_generation_that_stalls_as_well_needs_somebody() -> None:
    told = stands("running", "START_STALLED", AFTER)
    assert RESTART in told.way_out
    assert not told.waits


def test_any_other_event_keeps_its_words() -> None:
    blocked = LastingEvent(EventKind.BLOCKED, BEGAN, "no ticket")
    told = standing(
        blocked,
        StreamState("starting", "", 3, None, NOW, progress=StoredProgress(pulse="STARTING")),
        "clicks",
        StandingFacts(AFTER, LATER),
    )
    assert (told.why, told.waits) == ("no ticket", False)


def test_an_overdue_restart_whose_task_is_at_work_needs_no_task_unpaused() -> None:
    overdue = LastingEvent(EventKind.OVERDUE, BEGAN, "its tokens end in 3m")
    due = StreamState("stop", "", 3, "application_1_0003", NOW)
    assert "unpause its DAG" in standing(overdue, due, "clicks", StandingFacts(task="deferred")).way_out
    assert "unpause" not in standing(overdue, due, "clicks", StandingFacts(task="running")).way_out
