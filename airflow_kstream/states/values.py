"""What is stored of a look and of a task's report, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from airflow_kstream.model.plain import as_moment, as_number, plain
from airflow_kstream.model.streams.event import Ledger
from airflow_kstream.model.streams.generation import Desired, DesiredState, GenerationFacts, Life
from airflow_kstream.model.streams.looks import NOWHERE, ReachedPositions
from airflow_kstream.model.streams.plan import Phase, Report, Settled
from airflow_kstream.model.streams.stream_state import StoredProgress, StreamState, TaskIds
from airflow_kstream.model.streams.submission import ExplainedSubmission
from airflow_kstream.policy.states.due import DETAIL, REPORT, VERDICT, fitted, size
from airflow_kstream.supervise.streams.look.verdict import Verdict

# Batches in the short row: as many as a line in a table can show.
_SHOWN = 20
# What a look sees and a task does not, and what holds until the next look.
_OF_LOOKS = ("uncounted", "logs_seconds", "refreshed")
_WANTED = {Phase.HELD: DesiredState.HELD, Phase.STOPPED: DesiredState.STOPPED}


def ids_of(instance: Any) -> TaskIds:
    """Return the ids of a task instance, as a task or a trigger has it; empty ones if there is none."""
    dag, run, task = (str(getattr(instance, name, "")) for name in ("dag_id", "run_id", "task_id"))
    return TaskIds(dag, run, task, int(getattr(instance, "map_index", -1)))


def state_of(
    verdict: Verdict,
    ledger: Ledger,
    by: TaskIds,
    now: datetime,
    before: StreamState | None,
) -> StreamState:
    """Return what a look saw at `now`. One without a conclusion keeps what was known `before`."""
    events = tuple(sorted(kind.value for kind in ledger.kinds))
    if verdict.step is None:
        known = before or StreamState("unknown", "", 0, None, now)
        return StreamState(
            "unknown",
            verdict.why,
            known.generation,
            known.application,
            now,
            horizon=known.horizon,
            plan=known.plan,
            events=events,
            progress=replace(known.progress, pulse=""),
            desired=known.desired,
            by=by,
            app_name=known.app_name,
        )
    remaining, plan_in = verdict.credentials.remaining, verdict.credentials.plan_in
    return StreamState(
        state=verdict.step.phase.value if isinstance(verdict.step, Settled) else type(verdict.step).__name__.lower(),
        verdict=verdict.why,
        generation=verdict.generation,
        application=verdict.application,
        seen=now,
        progress=StoredProgress(
            pulse=verdict.progress.pulse.value if verdict.progress.pulse else "",
            committed=_committed(verdict.facts),
            batches=_batches(verdict.facts),
        ),
        horizon=now + remaining if remaining is not None and verdict.lives else None,
        plan=now + plan_in if plan_in is not None else None,
        events=events,
        desired=verdict.facts.desired if verdict.facts else None,
        by=by,
        app_name=verdict.people.app_name or "",
    )


def _committed(facts: GenerationFacts | None) -> datetime | None:
    return max((each.last_commit for each in facts.progress if each.last_commit), default=None) if facts else None


def _batches(facts: GenerationFacts | None) -> tuple[float, ...]:
    """Return the seconds of the newest batches, of the first query if there are several."""
    progress = facts.progress[:1] if facts else ()
    return tuple(seconds for each in progress for _, seconds in each.batches[-_SHOWN:])


def reported(report: Report, by: TaskIds, now: datetime, before: StreamState | None = None) -> StreamState:
    """Return what a task saw and did, by `now`. What only looks see is kept from `before`."""
    lives = report.phase in {Phase.RUNNING, Phase.STARTING}
    return StreamState(
        state=report.phase.value,
        verdict=report.why,
        generation=report.generation,
        application=report.job.application,
        seen=now,
        progress=StoredProgress(
            pulse=report.heartbeat.pulse.value if report.heartbeat else "",
            committed=before.progress.committed if before else None,
            batches=before.progress.batches if before else (),
        ),
        horizon=report.horizon.hard if report.horizon and lives else None,
        plan=report.horizon.plan if report.horizon and lives else None,
        desired=_still_wanted(report, before),
        by=by,
        app_name=report.app_name,
    )


def _still_wanted(report: Report, before: StreamState | None) -> Desired | None:
    """Return what was wanted at the last look, None if the task acted on another order."""
    desired = before.desired if before else None
    wanted = _WANTED.get(report.phase, DesiredState.RUNNING)
    return desired if desired and desired.state is wanted else None


def reported_detail(report: Report, before: object, now: datetime) -> dict[str, Any]:
    """Return a task's report as the detail of its row, with what the row `before` has of the same generation."""
    told = report.to_json()
    row = before if isinstance(before, Mapping) else {}
    seen = row.get("detail")
    facts = seen.get("facts") if isinstance(seen, Mapping) else None
    if not isinstance(seen, Mapping) or not isinstance(facts, Mapping) or facts.get("generation") != report.generation:
        return told
    kept = {name: seen[name] for name in _OF_LOOKS if name in seen}
    if isinstance(kept.get("refreshed"), Mapping):
        kept["refreshed"] = _later(kept["refreshed"], row.get("seen"), now)
    return {**told, **kept, "facts": {**facts, "horizon": told["horizon"] or facts.get("horizon")}}


def _later(refreshed: Mapping[str, Any], seen: object, now: datetime) -> dict[str, Any]:
    """Return how pushes stand as of `now`: their times count from the look."""
    ago, looked = as_number(refreshed.get("confirmed_push_seconds")), as_moment(seen)
    if ago is None or looked is None:
        return dict(refreshed)
    return {**refreshed, "confirmed_push_seconds": ago + (now - looked).total_seconds()}


def row_of(state: StreamState) -> dict[str, Any]:
    """Return the short row of a stream: at most 1,500 bytes."""
    return fitted(state.to_json(), VERDICT)


def detail_row(state: StreamState, detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the long row of a stream, with `detail` of its look: at most 20,000 bytes."""
    return fitted({**state.to_json(), "detail": plain(detail)}, DETAIL)


def report_row(report: Report, lives: Sequence[Life], planned: ExplainedSubmission | None) -> dict[str, Any]:
    """Return a task's report for pages, with past generations and the next submission: at most 40,000 bytes."""
    lived = [life.to_json() for life in lives]
    return fitted({**report.to_json(), "lives": lived, "submission": planned and planned.to_json()}, REPORT)


def reached_of(row: object) -> ReachedPositions:
    """Return the positions in a stored long row; nowhere if there are none, or something was left out of it.

    One that is longer than any of ours says nothing: what it said would be noted in the state_dir.
    """
    detail = row.get("detail") if isinstance(row, Mapping) and not row.get("cut") and size(row) <= DETAIL else None
    try:
        return ReachedPositions.from_json(detail.get("reached")) if isinstance(detail, Mapping) else NOWHERE
    except (ValueError, TypeError, OverflowError):
        return NOWHERE


def report_after(report: object, state: StreamState, verdict: Verdict) -> dict[str, Any]:
    """Return a task's report, brought up to date by a look; what only the task knows stays.

    The task told nothing about a newer generation: its addresses, its horizon and what is foretold of it are left out.
    """
    told = dict(report) if isinstance(report, Mapping) else {}
    if told.get("generation") != state.generation:
        told |= {"application_url": "", "logs_url": "", "horizon": None, "foretold": []}
    look = {
        "phase": state.state,
        "why": state.verdict,
        "generation": state.generation,
        "application": state.application,
        "app_name": state.app_name,
        "heartbeat": plain(verdict.progress.heartbeat),
        "seen": state.seen.isoformat(),
    }
    return fitted({**told, **look}, DETAIL)
