"""The fleet's DAG, which looks, and the pages, which read what was stored, call the same streams in need of a hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_kstream.model.streams.event import LastingEvent, Ledger
from airflow_kstream.model.streams.generation import ClaimFacts, Desired, DesiredState, GenerationFacts, TokenFacts
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason
from airflow_kstream.model.streams.plan import Blocked, Obstacle, Phase, Refuse, Settled, Stop, Submit
from airflow_kstream.model.streams.stall import Heartbeat, Pulse
from airflow_kstream.model.streams.stream_state import TaskIds
from airflow_kstream.model.streams.token_push import RefreshStatus
from airflow_kstream.operators.fleet_look import look_of
from airflow_kstream.policy.events.attention import UNSEEN, hands, pending
from airflow_kstream.policy.events.signs import troubles
from airflow_kstream.policy.events.standing import Urgency
from airflow_kstream.policy.states.due import late_after
from airflow_kstream.states.values import detail_row, state_of
from airflow_kstream.supervise.streams.look.verdict import CredentialVerdict, ProgressVerdict, Verdict
from airflow_kstream.triggers.notifying import signs_of
from airflow_kstream.views.pages.fleet import StoredStream, fleet_rows

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def beat(pulse: Pulse) -> Heartbeat:
    return Heartbeat(pulse, MINUTE, "as the checkpoint says")


def settled(phase: Phase, *, breaker: bool = False) -> Settled:
    return Settled(phase, "so it is", breaker=breaker)


def facts(plan: datetime, reason: HorizonReason = HorizonReason.TOKEN_MAX_LIFETIME) -> GenerationFacts:
    return replace(GENERATION, horizon=Horizon(reason, hard=plan + 3 * HOUR, plan=plan))


GENERATION = GenerationFacts(
    3,
    ClaimFacts(NOW - DAY, "supervisor", "", adopted=False),
    TokenFacts("ticket", NOW - DAY, DAY, 7 * DAY),
    None,
    Desired(DesiredState.RUNNING, 0),
)
HEALTHY = Verdict(
    settled(Phase.RUNNING),
    "so it is",
    3,
    "application_1_0003",
    lives=True,
    progress=ProgressVerdict(works=True, heartbeat=beat(Pulse.HEALTHY)),
    credentials=CredentialVerdict(remaining=5 * DAY, plan_in=4 * DAY, horizon=HorizonReason.TOKEN_MAX_LIFETIME),
    facts=GENERATION,
)
DEAD = replace(
    HEALTHY,
    lives=False,
    progress=replace(HEALTHY.progress, works=False, heartbeat=None),
    credentials=replace(HEALTHY.credentials, remaining=None, plan_in=None, horizon=None),
    application=None,
)
HELD = replace(HEALTHY, step=settled(Phase.HELD), credentials=replace(HEALTHY.credentials, plan_in=None))
WISH = HorizonReason.POLICY_MAX_AGE
FULL_QUEUE = Blocked(Obstacle.PREFLIGHT, None, "queue streams is gone")
VERDICTS: dict[str, tuple[Verdict, bool]] = {
    "healthy": (HEALTHY, False),
    "idle": (replace(HEALTHY, progress=replace(HEALTHY.progress, heartbeat=beat(Pulse.IDLE))), False),
    "slow": (replace(HEALTHY, progress=replace(HEALTHY.progress, heartbeat=beat(Pulse.SLOW))), False),
    "without a checkpoint to watch": (replace(HEALTHY, progress=replace(HEALTHY.progress, heartbeat=None)), False),
    "starting": (
        replace(
            HEALTHY,
            step=settled(Phase.STARTING),
            progress=replace(HEALTHY.progress, works=False, heartbeat=beat(Pulse.STARTING)),
        ),
        False,
    ),
    "stalled": (replace(HEALTHY, progress=replace(HEALTHY.progress, heartbeat=beat(Pulse.STALLED))), True),
    "never began": (
        replace(HEALTHY, progress=replace(HEALTHY.progress, works=False, heartbeat=beat(Pulse.START_STALLED))),
        True,
    ),
    "another's checkpoint": (replace(HEALTHY, progress=replace(HEALTHY.progress, heartbeat=beat(Pulse.CHANGED))), True),
    "no checkpoint": (
        replace(HEALTHY, progress=replace(HEALTHY.progress, works=False, heartbeat=beat(Pulse.NO_CHECKPOINT))),
        True,
    ),
    "its restart is due": (
        replace(
            HEALTHY,
            step=Stop(3, "application_1_0003", "due", preflight=True),
            credentials=replace(HEALTHY.credentials, plan_in=-MINUTE),
        ),
        False,
    ),
    "its restart is overdue": (
        replace(HEALTHY, credentials=replace(HEALTHY.credentials, plan_in=-DAY, remaining=HOUR)),
        True,
    ),
    "its credentials ended": (
        replace(HEALTHY, credentials=replace(HEALTHY.credentials, plan_in=None, remaining=-HOUR)),
        True,
    ),
    "backing off": (replace(DEAD, step=settled(Phase.BACKING_OFF)), False),
    "to be submitted": (replace(DEAD, step=Submit(4, "it died")), False),
    "its breaker is open": (replace(DEAD, step=settled(Phase.BACKING_OFF, breaker=True)), True),
    "killed by a person": (
        replace(DEAD, step=settled(Phase.KILLED), past=replace(DEAD.past, waits_for_a_person=HOUR)),
        True,
    ),
    "refused": (replace(HEALTHY, step=Refuse("two drivers write it")), True),
    "blocked": (replace(DEAD, step=settled(Phase.BACKING_OFF), past=replace(DEAD.past, blocked=FULL_QUEUE)), True),
    "stopped": (replace(DEAD, step=settled(Phase.STOPPED)), False),
    "ended with success": (replace(DEAD, step=settled(Phase.ENDED)), False),
    "held": (HELD, False),
    "held and dead": (replace(DEAD, step=settled(Phase.HELD)), False),
    "held and stalled": (replace(HELD, progress=replace(HELD.progress, heartbeat=beat(Pulse.STALLED))), True),
    "held beyond its plan": (
        replace(HELD, credentials=replace(HELD.credentials, remaining=2 * HOUR), facts=facts(NOW - HOUR)),
        True,
    ),
    "held before its plan": (
        replace(HELD, credentials=replace(HELD.credentials, remaining=4 * HOUR), facts=facts(NOW + HOUR)),
        False,
    ),
    "held beyond its credentials": (replace(HELD, credentials=replace(HELD.credentials, remaining=-HOUR)), True),
    "held beyond a wish": (
        replace(
            HELD,
            credentials=replace(HELD.credentials, remaining=-HOUR, horizon=WISH),
            facts=facts(NOW - 4 * HOUR, WISH),
        ),
        False,
    ),
    "frozen": (
        replace(HEALTHY, step=settled(Phase.FROZEN), people=replace(HEALTHY.people, freeze="frozen until 14:00")),
        False,
    ),
    "falls into a freeze": (
        replace(HEALTHY, people=replace(HEALTHY.people, freeze="frozen until 14:00", freeze_warning="it ends in 1h")),
        True,
    ),
    "queued too long": (replace(HEALTHY, progress=replace(HEALTHY.progress, queued=HOUR, queued_too_long=True)), True),
    "as it was declared before": (replace(HEALTHY, past=replace(HEALTHY.past, former_spec=True)), True),
    "with a rotated keytab": (
        replace(HEALTHY, credentials=replace(HEALTHY.credentials, horizon=HorizonReason.KEYTAB_ROTATED)),
        False,
    ),
    "without fresh tokens": (
        replace(
            HEALTHY,
            credentials=replace(
                HEALTHY.credentials, refreshed=RefreshStatus(None, None, None, None, None, "no right to read its UI")
            ),
        ),
        False,
    ),
    "unreadable": (Verdict(None, "gen-000003 can't be understood"), True),
    "a server away for a moment": (Verdict(None, "connection refused", shared=True), False),
}


@dataclass(frozen=True)
class Said:
    """What is said of one stream: by the fleet's DAG in kinds of hands, by the page in groups."""

    dag: str
    page: Urgency


def said(verdict: Verdict) -> Said:
    """Let one look tell, store and show what it saw of a stream whose task waits."""
    look = {"orders": look_of(verdict, NOW)}
    needed = hands(look, pending(look, {}, NOW), NOW)
    told = [LastingEvent(each.kind, NOW, each.why) for each in troubles(signs_of(verdict, blind=False))]
    ledger = Ledger({event.key: event for event in told}, len(told))
    state = state_of(verdict, ledger, TaskIds("stream-orders", "run", "keep"), NOW, None)
    detail = detail_row(state, verdict.to_json() | {"facts": verdict.facts and verdict.facts.to_json()})
    report = {"succeeded": state.state == Phase.ENDED}
    seen = StoredStream("prod", "orders", state, ledger, detail, report, "deferred")
    [row] = fleet_rows([seen], NOW, late_after(1))
    return Said(needed[0].kind if needed else "", Urgency(row["urgency"]))


@pytest.mark.parametrize(("verdict", "needs"), VERDICTS.values(), ids=VERDICTS)
def test_the_dag_and_the_page_call_the_same_streams_in_need_of_a_hand(verdict: Verdict, *, needs: bool) -> None:
    words = said(verdict)
    assert bool(words.dag) == needs
    if verdict.step is None:
        assert (words.dag in {UNSEEN, ""}, words.page) == (True, Urgency.UNSEEN)
    else:
        assert (words.page is Urgency.HAND) == needs, words
