"""The fleet's page: how each stream stands, until when and why, who watches it, and what a person may order."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.names import called
from airflow_kstream.model.plain import (
    as_duration,
    as_mapping,
    as_moment,
    plain,
)
from airflow_kstream.model.streams.event import EventKind, Ledger
from airflow_kstream.model.streams.generation import DesiredState
from airflow_kstream.model.streams.horizon import HorizonReason, Replacement
from airflow_kstream.model.streams.plan import Phase
from airflow_kstream.model.streams.stream_state import StreamState, TaskIds
from airflow_kstream.policy.events.attention import ENDS_HELD, PAUSED, trouble_with_the_end, way_out
from airflow_kstream.policy.events.standing import (
    DEAD,
    StandingFacts,
    StandingTrouble,
    Urgency,
    before_first_look,
    standing,
    urgency,
)
from airflow_kstream.policy.streams.restart.freeze import not_restarted
from airflow_kstream.views.pages.kept import shown
from airflow_kstream.views.pages.stored import BATCH, LIVES, look_in

log = logging.getLogger(__name__)

_TIME = "%Y-%m-%d %H:%M:%S"


def offered(state: StreamState, facts: Mapping[str, Any], now: datetime) -> dict[str, str]:
    """Return what each order that changes something would do. `facts` are the stored ones of the newest generation.

    A restart is only offered where it would not be refused. Where it is not known what is wanted, all words are.
    """
    wanted = state.desired.state if state.desired else None
    words = {
        "hold": (wanted is not DesiredState.HELD, _hold(state, facts, now)),
        "start": (True, _start(state, facts, now)),
        "restart": (state.generation > 0 and wanted in {DesiredState.RUNNING, None}, _restart(state, facts)),
        "stop": (wanted is not DesiredState.STOPPED, _stop(state, facts)),
    }
    return {word: says for word, (holds, says) in words.items() if holds}


def _lives(state: StreamState) -> bool:
    return state.application is not None and state.state not in DEAD


def _hold(state: StreamState, facts: Mapping[str, Any], now: datetime) -> str:
    said = "Nobody starts, stops or restarts it, or pushes tokens to it, until somebody says start. What runs, runs on"
    reason = (facts.get("horizon") or {}).get("reason")
    if state.horizon is None or reason == HorizonReason.POLICY_MAX_AGE.value:
        return f"{said}."
    if state.horizon <= now:
        return f"{said}, although its credentials have ended: it fails when it opens its next connection."
    ends = f"{said} until its credentials end at {state.horizon:{_TIME}} UTC"
    return f"{ends}. It fails then, unless somebody says start before."


def _start(state: StreamState, facts: Mapping[str, Any], now: datetime) -> str:
    wanted = "Its desired state becomes running"
    if not _lives(state):
        submits = f"The task that watches it claims and submits generation {state.generation + 1}."
        return f"{wanted}, and no wait between two starts holds any longer. {submits}"
    if why := _replaced_because(state, facts, now):
        return f"{wanted}. Its task then replaces generation {state.generation}, because {why}."
    return f"{wanted}. Generation {state.generation} is left as it is, and is watched."


def _replaced_because(state: StreamState, facts: Mapping[str, Any], now: datetime) -> str:
    if state.desired and state.desired.restarts(state.generation):
        return "a restart of it was requested before"
    due = _plan(facts)
    return f"its restart has been due since {due:{_TIME}} UTC" if due and due <= now else ""


def _plan(facts: Mapping[str, Any]) -> datetime | None:
    return as_moment(as_mapping(facts.get("horizon")).get("plan"))


def _restart(state: StreamState, facts: Mapping[str, Any]) -> str:
    number, waits = state.generation, as_duration(facts.get("stop_waits"))
    longest = f", for {format_duration(waits)} at most," if waits else ""
    if _by_the_clock(facts):
        return (
            f"The task that watches it checks that a successor could start, lets generation {number} save its state "
            f"and stop{longest or ','} ends it if it does not, and waits until it is proven dead. Generation "
            f"{number + 1} then begins with the newest state that was left."
        )
    return (
        f"The task that watches it checks that a successor could start, waits{longest} for the end of the batch of "
        f"generation {number}, ends the generation, also in the middle of a batch that hangs, and waits until it is "
        f"proven dead. Generation {number + 1} then runs a batch again that was not committed."
    )


def _by_the_clock(facts: Mapping[str, Any]) -> bool:
    """Return whether its checkpoints come by the clock, so that it is in no batch."""
    return any(each.get("unit", BATCH) != BATCH for each in facts.get("progress") or ())


def _stop(state: StreamState, facts: Mapping[str, Any]) -> str:
    if not _lives(state):
        return "Its desired state becomes stopped: nothing follows its last generation."
    when = "once its state is saved" if _by_the_clock(facts) else "after its batch"
    return f"It ends generation {state.generation} {when}, kills it if it does not end, and leaves it stopped."


# While pushes go well, nobody need fear these ends.
_IF_NOT_PUSHED = {
    HorizonReason.TOKEN_MAX_LIFETIME.value: "the tokens of its launch end, unless fresh ones are pushed before",
    HorizonReason.NOT_PUSHED.value: "the tokens that were pushed last end, unless fresh ones are pushed before",
}
# What stands in place of a horizon while nothing runs.
_NO_HORIZON: Mapping[str, Any] = {
    **dict.fromkeys(("hard", "plan", "force", "push", "issued")),
    **dict.fromkeys(("reason", "warning", "credentials", "held"), ""),
    **dict.fromkeys(("runs", "renews_itself"), False),
    "uncounted": [],
}
_ORDER = {group: number for number, group in enumerate(Urgency)}
_FINISHED = {Phase.ENDED, Phase.STOPPED}


@dataclass(frozen=True)
class StoredStream:
    """The stored rows of one stream, and the task that watches it now.

    `detail` is what its look told and `report` what its task told last, both as stored. `task` is the state of the
    task, empty if nobody watches the stream, `paused` whether its DAG is.
    """

    cluster: str
    stream: str
    state: StreamState
    told: Ledger = field(default_factory=Ledger)
    detail: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""
    paused: bool = False


@dataclass(frozen=True)
class UnseenStream:
    """A declared stream without a stored look. `by` and `task` name the task that is to look, and its state.

    `own` is whether its DAG was made for this stream alone.
    """

    cluster: str
    stream: str
    by: TaskIds
    task: str = ""
    paused: bool = False
    own: bool = False


def fleet_rows(
    seen: Sequence[StoredStream], now: datetime, late: timedelta, unseen: Sequence[UnseenStream] = ()
) -> list[dict[str, Any]]:
    """Return a row for each stream, the most urgent first; `late` is the age after which a look is stale."""
    rows = (*(row_of(each, now, late) for each in seen), *(row_of_unseen(each, now) for each in unseen))
    return sorted(rows, key=_order)


def row_of_unseen(it: UnseenStream, now: datetime) -> dict[str, Any]:
    """Return the row of a stream before its first look: whether it runs, and what is wanted of it, is not known."""
    first = before_first_look(it.by.dag, it.task, paused=it.paused, own=it.own)
    blank = StoredStream(it.cluster, it.stream, StreamState("unknown", "", 0, None, now, by=it.by), task=it.task)
    row = row_of(blank, now, timedelta())
    row |= {"state": "not seen", "seen": None, "urgency": first.urgency, "actions": {}}
    row |= {"findings": [_finding(first.kind, first.trouble)], "watcher": {**row["watcher"], "paused": it.paused}}
    masked: dict[str, Any] = shown(row)
    return masked


def row_of(seen: StoredStream, now: datetime, late: timedelta) -> dict[str, Any]:
    """Return the row of one stream. One that can't be made says so, and hides no other: the log has the cause."""
    try:
        return _row(seen, now, late)
    except Exception:
        log.exception("What is stored of %s/%s can't be read", seen.cluster, seen.stream)
    why = "what is stored of it can't be read: the API server's log has the cause"
    state = StreamState("unknown", why, 0, None, now, by=seen.state.by)
    blank = StoredStream(seen.cluster, seen.stream, state, task=seen.task, paused=seen.paused)
    return {**_row(blank, now, late), "seen": None}


def _row(seen: StoredStream, now: datetime, late: timedelta) -> dict[str, Any]:
    state, detail = seen.state, look_in(seen.detail)
    facts = _of_generation(detail["facts"], state.generation)
    stale = now - state.seen > late and state.state not in _FINISHED
    horizon = _horizon(state, facts, detail)
    ends = _trouble_with_the_end(state, facts, horizon["reason"], now)
    findings = [
        *_findings(seen, facts, detail["pulse_why"]),
        *_ends_held(seen, ends, horizon["reason"], now),
    ]
    kinds = [ends, *(finding["kind"] for finding in findings if not finding["waits"])]
    succeeded = seen.report.get("succeeded") is True
    row = {
        "cluster": seen.cluster,
        "called": called(seen.stream, state.app_name),
        "stream": seen.stream,
        "urgency": urgency(state, now, kinds, stale=stale, succeeded=succeeded),
        "state": state.state,
        "why": state.verdict,
        "generation": state.generation,
        "application": state.application,
        "seen": state.seen.isoformat(),
        "stale": stale,
        "pulse": state.progress.pulse,
        "pulse_why": detail["pulse_why"],
        "committed": state.progress.committed.isoformat() if state.progress.committed else None,
        "batches": list(state.progress.batches),
        "stall_after": next((each["stall_after"] for each in facts.get("progress") or ()), None),
        "horizon": _held(horizon, state, now) if state.state == Phase.HELD else horizon,
        "pushes": _pushes(as_moment(seen.detail.get("seen")), detail["refreshed"]),
        "began": {"at": facts.get("claimed"), "why": _why_replaced(seen) or facts.get("reason") or ""},
        "desired": plain(replace(state.desired, by=state.desired.speaker)) if state.desired else {},
        "actions": offered(state, facts, now),
        "watcher": _watcher(state.by, seen),
        "findings": findings,
    }
    masked: dict[str, Any] = shown(row)
    return masked


def _why_replaced(seen: StoredStream) -> str:
    """Return why the generation before this one ended, as its task told; empty if it did not."""
    lives, before = LIVES(seen.report.get("lives")), seen.state.generation - 1
    return next((life["end"] for life in lives if life["generation"] == before), "")


def _of_generation(facts: Mapping[str, Any] | None, generation: int) -> Mapping[str, Any]:
    """Return the facts, or none if they are of another generation than the last look's."""
    return facts if facts and facts["generation"] == generation else {}


def _runs(state: StreamState, detail: Mapping[str, Any]) -> bool:
    """Return whether credentials serve a generation: a step that is due does not tell, the look does.

    Without a conclusion it may run on.
    """
    if state.state == "unknown":
        return True
    concluded = detail["step"] != "unknown" and detail["application"] == (state.application or "")
    return _lives(state) and not (concluded and not detail["lives"])


def _horizon(state: StreamState, facts: Mapping[str, Any], detail: Mapping[str, Any]) -> dict[str, Any]:
    if not _runs(state, detail):
        return {**_NO_HORIZON, "credentials": facts.get("credentials") or ""}
    # Of a generation that nobody looked at yet, its task tells the horizon.
    ends = facts.get("horizon") or detail["horizon"] or {}
    refreshed = None if state.state == Phase.HELD else detail["refreshed"]
    hard = state.horizon.isoformat() if state.horizon else None
    reason = ends.get("reason") or HorizonReason.UNKNOWN.value
    if refreshed and not refreshed["trouble"]:
        reason = _IF_NOT_PUSHED.get(reason, reason)
    return {
        **_NO_HORIZON,
        "runs": True,
        "hard": hard,
        "plan": ends.get("plan"),
        "force": ends.get("force"),
        "push": ends.get("push"),
        "issued": facts.get("issued"),
        "reason": f"{reason} ({ends['token']})" if ends.get("token") else reason,
        "warning": _warning(ends.get("replacement"), state),
        "renews_itself": reason == HorizonReason.NONE.value
        or (hard is None and reason == HorizonReason.NO_NEW_WORKERS.value),
        "credentials": facts.get("credentials") or "",
        "uncounted": detail["uncounted"],
    }


def _warning(replacement: Mapping[str, Any] | None, state: StreamState) -> str:
    """Return from when on what it loses can't be replaced, in words; empty if there is nothing to warn of."""
    lost = replacement or {}
    return Replacement(lost.get("worker", ""), as_moment(lost.get("until"))).words(state.seen)


def _held(horizon: Mapping[str, Any], state: StreamState, now: datetime) -> dict[str, Any]:
    """Return a horizon before which nobody pushes or restarts anything, with words of that."""
    words = not_restarted(state.horizon - now) if state.horizon else ""
    return {**horizon, "plan": None, "force": None, "push": None, "held": words}


def _pushes(looked: datetime | None, refreshed: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return when the tokens were pushed that its driver uses, as a moment; None for a stream without pushes."""
    if refreshed is None:
        return None
    ago = as_duration(refreshed["confirmed_push_seconds"])
    return {"confirmed": (looked - ago).isoformat() if looked and ago else None, "trouble": refreshed["trouble"]}


def _watcher(by: TaskIds, seen: StoredStream) -> dict[str, Any]:
    ids = {"dag": by.dag, "run": by.run, "task": by.task, "map_index": by.map_index}
    return {**ids, "state": seen.task, "paused": seen.paused}


def _findings(seen: StoredStream, facts: Mapping[str, Any], pulse_why: str) -> Iterator[dict[str, Any]]:
    """Yield what somebody was told of and lasts; then what only a page can see: that nobody watches."""
    claimed = as_moment(facts.get("claimed"))
    # The reason that was stored is of the generation that the facts are of.
    why = pulse_why if facts else ""
    for event in sorted(seen.told.lasting.values(), key=lambda event: event.since):
        yield _finding(
            event.kind.value, standing(event, seen.state, seen.stream, StandingFacts(claimed, why, seen.task))
        )
    if seen.paused and seen.task:
        why = "its task watches on, and starts nothing"
        yield _finding(PAUSED, StandingTrouble("its DAG is paused", None, why, way_out(PAUSED, seen.stream)))
    if not seen.task and seen.state.state not in _FINISHED:
        why = "no task of its DAG is deferred or running"
        alone = EventKind.UNWATCHED
        yield _finding(alone.value, StandingTrouble("nobody watches it", None, why, way_out(alone, seen.stream)))


def _ends_held(seen: StoredStream, kind: str, reason: str, now: datetime) -> Iterator[dict[str, Any]]:
    """Yield that a held stream's credentials end, from when on it would be restarted if it were not held."""
    hard = seen.state.horizon
    if kind != ENDS_HELD or hard is None:
        return
    out = way_out(kind, seen.stream)
    if hard > now:
        why = f"nobody restarts a held stream, and its credentials end at {hard:%Y-%m-%d %H:%M:%S} UTC: {reason}"
        yield _finding(kind, StandingTrouble("its credentials end while it is held", None, why, out))
        return
    words, why = "its credentials ended while it was held", f"{not_restarted(hard - now)}: {reason}"
    yield _finding(kind, StandingTrouble(words, hard, why, out))


def _trouble_with_the_end(state: StreamState, facts: Mapping[str, Any], reason: str, now: datetime) -> str:
    return trouble_with_the_end(state.state, reason, _plan(facts), state.horizon, now)


def _order(row: Mapping[str, Any]) -> tuple[int, str, str, str]:
    """Return the place of a row: by urgency, then by its restart or the end of its credentials, then by name."""
    horizon = row["horizon"]
    return _ORDER[row["urgency"]], horizon["plan"] or horizon["hard"] or "9", row["cluster"], row["stream"]


def _finding(kind: str, stands: StandingTrouble) -> dict[str, Any]:
    return {
        "kind": kind,
        "words": stands.words,
        "since": stands.since.isoformat() if stands.since else None,
        "why": stands.why,
        "way_out": stands.way_out,
        "runbook": "",
        "waits": stands.waits,
    }
