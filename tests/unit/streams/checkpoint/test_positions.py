"""A generation starts from where the last one came to, or a person says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_kstream.model.clusters.application import ApplicationState, NodeVerdict
from airflow_kstream.model.streams.checkpoint import Checkpoint
from airflow_kstream.model.streams.generation import Desired, DesiredState, Missing, Position
from airflow_kstream.model.streams.looks import Looks
from airflow_kstream.model.streams.observation import Observation
from airflow_kstream.model.streams.plan import Refuse, Settled, Step, Stop, Submit, Wait
from airflow_kstream.policy.streams.restart.looks import further
from airflow_kstream.policy.streams.restart.reconcile import Mode, next_step
from tests.simulated.values import changed
from tests.simulated.yarn import (
    CHECKPOINT,
    START,
    TICKET_SPEC,
    SimulatedYarn,
    application,
    claim_of,
    containers,
    past_end,
    watched,
)

RECORDED = Position("q", 600, 599)
GONE = Checkpoint(CHECKPOINT, None)


def point(query: str, newest: int, oldest: int = 0) -> Checkpoint:
    times = dict.fromkeys(range(oldest, newest + 1), START)
    return Checkpoint(CHECKPOINT, query, times, {batch: at for batch, at in times.items() if batch < newest})


def after(
    checkpoint: Checkpoint,
    recorded: Position | None = RECORDED,
    state: ApplicationState = ApplicationState.FAILED,
    accepted: Mapping[str, Position] | None = None,
) -> Observation:
    """A generation that was claimed at this position, and the checkpoint as it is now; no claim without a position."""
    yarn = SimulatedYarn(now=START + timedelta(hours=3), ends=[past_end(2, START + timedelta(hours=2))])
    if recorded:
        yarn.claims = {2: claim_of(TICKET_SPEC, 2, START, {CHECKPOINT: recorded})}
        app = application(2, state, finished=START + timedelta(hours=2) if state is ApplicationState.FAILED else None)
        yarn.applications = [(2, app)]
        yarn.files = {yarn.claims[2].fence}
    found = None if state is ApplicationState.RUNNING or not recorded else containers(NodeVerdict.COMPLETE)
    return changed(yarn.look(), checkpoints=(checkpoint,), containers=found, accepted=accepted)


def step(seen: Observation, looks: Looks | None = None) -> Step:
    return next_step(TICKET_SPEC, seen, looks or watched(seen), Mode.ENSURE)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (GONE, f"{CHECKPOINT} is gone: it had come to batch 600"),
        (point("q", 299), f"{CHECKPOINT} is older than it was: batch 299 is planned and 298 committed"),
        (point("another", 700), f"{CHECKPOINT} is another query's: another, and it was q's"),
    ],
)
def test_a_checkpoint_that_is_not_what_it_was_is_refused_with_the_ways_out(now: Checkpoint, words: str) -> None:
    refused = step(after(now))
    assert isinstance(refused, Refuse)
    assert words in refused.why
    assert "restore the checkpoint" in refused.why
    assert "kstream streams accept" in refused.why
    assert "declare a new checkpoint" in refused.why


@pytest.mark.parametrize(("planned", "committed"), [(600, 598), (599, 599)], ids=["a commit", "a plan"])
def test_a_checkpoint_that_lacks_its_last_file_alone_is_older_too(planned: int, committed: int) -> None:
    """Without its commit the batch is written twice; without its plan another batch takes its number."""
    offsets, commits = (dict.fromkeys(range(last + 1), START) for last in (planned, committed))
    refused = step(after(Checkpoint(CHECKPOINT, "q", offsets, commits)))
    assert isinstance(refused, Refuse)
    assert f"batch {planned} is planned and {committed} committed, and 600 and 599 were" in refused.why


@pytest.mark.parametrize("now", [point("q", 600, 500), point("q", 9000, 8900)])
def test_batches_that_spark_has_deleted_are_not_missed(now: Checkpoint) -> None:
    assert isinstance(step(after(now)), Submit)


def test_what_this_supervisor_saw_counts_beyond_the_claim() -> None:
    """Restored at a position after the claim's, and before what the generation had reached when it was stopped."""
    seen = after(point("q", 700))
    looks = Looks(watched(seen).ages, {CHECKPOINT: Position("q", 800, 799)})
    assert isinstance(step(seen, looks), Refuse)
    assert isinstance(step(seen), Submit)


def test_what_was_seen_is_not_hidden_by_another_querys_position_or_an_older_one() -> None:
    reached = further({}, after(point("q", 800)))
    for later in (point("another", 900), point("q", 700), GONE):
        assert further(reached, after(later)) == reached
    assert further(reached, after(point("q", 801))) == {CHECKPOINT: Position("q", 801, 800)}


def test_a_position_that_a_person_accepted_is_started_from_and_no_other() -> None:
    old = point("q", 299)
    assert isinstance(step(after(old, accepted={CHECKPOINT: old.position})), Submit)
    assert isinstance(step(after(point("q", 300), accepted={CHECKPOINT: old.position})), Refuse)
    assert isinstance(step(after(old, accepted={})), Refuse)


def test_data_without_a_known_position_need_only_be_silent() -> None:
    """Its owner decides: see test_checkpoint_owner. Another job may write it every five minutes."""
    unclaimed = after(point("q", 5), recorded=None)
    assert step(unclaimed) == Submit(1, "its first generation")
    assert not isinstance(step(unclaimed, watched(unclaimed, timedelta())), Submit)
    seen = after(point("q", 700))
    claim = claim_of(TICKET_SPEC, 2, START, {"/data/elsewhere": RECORDED})
    assert isinstance(step(replace(seen, claim=claim)), Submit)


def test_a_claim_of_unknown_positions_proves_nothing_and_refuses_nothing() -> None:
    seen = after(point("q", 5), Position(None, -1, -1))
    assert seen.claim is not None
    unknown = changed(seen.claim, positions={}, missing=frozenset({Missing.POSITIONS}))
    assert isinstance(step(replace(seen, claim=unknown)), Submit)


def test_a_job_that_never_wrote_its_declared_folder_is_not_restarted_silently() -> None:
    """A typing error in the path: no silence can be seen there, so without proof the longest one is waited for."""
    seen = after(GONE, Position(None, -1, -1))
    submitted = step(seen)
    assert isinstance(submitted, Submit)
    assert f"{CHECKPOINT} has no file, so nothing of it is watched" in submitted.why
    unproven = changed(seen, containers=None)
    assert isinstance(step(unproven, watched(unproven, timedelta(minutes=29))), Wait)
    assert isinstance(step(unproven, watched(unproven, timedelta(minutes=30))), Submit)


def test_a_healthy_generation_is_not_stopped_for_a_successor_that_could_not_start() -> None:
    asked = Desired(DesiredState.RUNNING, 2, "ann")
    running = ApplicationState.RUNNING
    hindered = step(replace(after(point("q", 299), state=running), desired=asked))
    assert isinstance(hindered, Stop)
    assert hindered.preflight
    assert "is older than it was" in hindered.obstacle
    free = step(replace(after(point("q", 900), state=running), desired=asked))
    assert isinstance(free, Stop)
    assert not free.obstacle
    assert isinstance(step(after(point("q", 299), state=running)), Settled)
    stopped = replace(asked, state=DesiredState.STOPPED)
    ends = step(replace(after(point("q", 299), state=running), desired=stopped))
    assert isinstance(ends, Stop)
    assert not ends.obstacle
