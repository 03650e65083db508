"""The fleet's page: what is urgent, what is told of it, and that no foreign text does harm."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_kstream.model.streams.event import EventKind, LastingEvent, Ledger
from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.model.streams.stream_state import StoredProgress, StreamState, TaskIds
from airflow_kstream.policy.events.signs import OF_A_STREAM
from airflow_kstream.policy.events.standing import Urgency
from airflow_kstream.policy.states.due import late_after
from airflow_kstream.views.pages.fleet import StoredStream, UnseenStream, fleet_rows
from tests.simulated.values import changed

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LATE = late_after(1)
STATE = StreamState(
    "running",
    "it runs and nothing is due",
    3,
    "application_1_0001",
    NOW - timedelta(seconds=30),
    progress=StoredProgress(pulse="HEALTHY"),
    horizon=NOW + 5 * DAY,
    by=TaskIds("stream-prod.orders", "manual", "keep"),
)
SEEN = StoredStream("prod", "orders", STATE, task="deferred")


def told(kind: EventKind, why: str = "it hangs") -> Ledger:
    event = LastingEvent(kind, NOW - HOUR, why)
    return Ledger({event.key: event}, 1)


def row(stream: StoredStream = SEEN, /, **state: Any) -> dict[str, Any]:
    return fleet_rows([replace(stream, state=changed(stream.state, **state))], NOW, LATE)[0]


@pytest.mark.parametrize(
    ("state", "urgency"),
    [
        ({}, Urgency.WELL),
        ({"horizon": NOW + 23 * HOUR}, Urgency.SOON),
        ({"horizon": NOW - HOUR}, Urgency.HAND),
        ({"horizon": None}, Urgency.WELL),
        ({"pulse": "STALLED"}, Urgency.HAND),
        ({"pulse": "CHECKPOINT_CHANGED"}, Urgency.HAND),
        ({"pulse": "SLOW"}, Urgency.UNDER_WAY),
        ({"pulse": "IDLE"}, Urgency.WELL),
        ({"state": "starting"}, Urgency.UNDER_WAY),
        ({"state": "backing off"}, Urgency.UNDER_WAY),
        ({"state": "stop"}, Urgency.UNDER_WAY),
        ({"state": "killed"}, Urgency.HAND),
        ({"state": "refuse"}, Urgency.HAND),
        ({"state": "held"}, Urgency.AT_REST),
        ({"state": "held", "horizon": NOW + 23 * HOUR}, Urgency.SOON),
        ({"state": "stopped", "horizon": None, "pulse": ""}, Urgency.AT_REST),
        ({"state": "stopped", "horizon": None, "pulse": "START_STALLED"}, Urgency.AT_REST),
        ({"state": "backing off", "horizon": None, "pulse": "STALLED"}, Urgency.UNDER_WAY),
        ({"state": "held", "pulse": "STALLED"}, Urgency.HAND),
        ({"state": "frozen"}, Urgency.AT_REST),
        ({"state": "ended", "horizon": None}, Urgency.HAND),
        ({"state": "unknown"}, Urgency.UNSEEN),
        ({"seen": NOW - HOUR}, Urgency.UNSEEN),
    ],
)
def test_a_stream_is_as_urgent_as_its_worst_sign(state: dict[str, Any], urgency: Urgency) -> None:
    assert row(**state)["urgency"] == urgency


def test_a_row_has_the_name_that_people_know_and_the_one_that_they_type() -> None:
    assert row()["called"] == "orders"
    named = row(app_name="Orders.Stream v2")
    assert (named["called"], named["stream"]) == ("Orders.Stream v2 (orders)", "orders")


@pytest.mark.parametrize("stored", ["\x1b[2J", "x" * 5000, 7, None, ["a"]])
def test_a_name_that_somebody_put_into_a_stored_row_is_a_short_line(stored: object) -> None:
    state = StreamState.from_json({**STATE.to_json(), "app_name": stored})
    assert state
    assert state.app_name.isprintable()
    assert len(state.app_name) <= 100


def test_a_job_that_ended_well_needs_nobody() -> None:
    assert row(replace(SEEN, report={"succeeded": True}), state="ended", horizon=None)["urgency"] == Urgency.AT_REST


def test_the_most_urgent_stream_is_first_and_then_the_one_that_ends_next() -> None:
    later, sooner = replace(STATE, horizon=NOW + 4 * DAY), replace(STATE, horizon=NOW + 2 * DAY)
    fleet = [
        replace(SEEN, stream="later", state=later),
        replace(SEEN, stream="held", state=replace(STATE, state="held")),
        replace(SEEN, stream="sooner", state=sooner),
        replace(SEEN, stream="hangs", told=told(EventKind.STALLED)),
    ]
    assert [each["stream"] for each in fleet_rows(fleet, NOW, LATE)] == ["hangs", "sooner", "later", "held"]


def test_of_streams_that_are_alike_the_one_that_is_restarted_next_is_first() -> None:
    def planned(stream: str, plan: datetime, hard: datetime) -> StoredStream:
        facts = {"generation": 3, "horizon": {"plan": plan.isoformat()}}
        return replace(SEEN, stream=stream, state=replace(STATE, horizon=hard), detail={"detail": {"facts": facts}})

    fleet = [planned("a", NOW + 4 * DAY, NOW + 5 * DAY), planned("b", NOW + 3 * DAY, NOW + 6 * DAY)]
    assert [each["stream"] for each in fleet_rows(fleet, NOW, LATE)] == ["b", "a"]


@pytest.mark.parametrize("reason", [HorizonReason.TOKEN_MAX_LIFETIME, HorizonReason.NOT_PUSHED])
def test_a_stream_that_gets_fresh_tokens_is_not_said_to_get_none(reason: HorizonReason) -> None:
    facts = {"generation": 3, "horizon": {"reason": reason.value}}

    def shown(state: str = "running", **refreshed: str) -> str:
        detail = {"facts": facts, "refreshed": refreshed or None}
        said: str = row(replace(SEEN, detail={"detail": detail}), state=state)["horizon"]["reason"]
        return said

    assert shown(trouble="").endswith("unless fresh ones are pushed before")
    assert shown(trouble="no right to read its UI") == reason.value
    assert shown() == reason.value
    assert shown("held", trouble="") == reason.value, "nobody pushes to a held stream"


def test_a_finding_says_what_since_when_why_and_the_way_out() -> None:
    [finding] = row(replace(SEEN, told=told(EventKind.STALLED, "batch 7 has been in flight for 2h")))["findings"]
    assert finding["words"] == "it runs and makes no progress"
    assert finding["why"] == "batch 7 has been in flight for 2h"
    assert datetime.fromisoformat(finding["since"]) == NOW - HOUR
    assert "kstream streams evidence orders" in finding["way_out"]


@pytest.mark.parametrize("kind", sorted(OF_A_STREAM))
def test_each_finding_says_what_now(kind: EventKind) -> None:
    [finding] = row(replace(SEEN, told=told(kind)))["findings"]
    assert finding["way_out"]
    assert "{" not in finding["way_out"]


def test_the_loss_of_replacements_needs_nobody() -> None:
    shown = row(replace(SEEN, told=told(EventKind.NOT_REPLACEABLE)))
    assert shown["urgency"] == Urgency.WELL
    assert shown["findings"][0]["way_out"].startswith("nothing, if a person is there when it loses one")


def test_the_next_generation_after_a_stall_is_waited_for_and_not_replaced_again() -> None:
    facts = {"generation": 3, "claimed": (NOW - HOUR / 2).isoformat()}
    seen = replace(SEEN, told=told(EventKind.STALLED), detail={"detail": {"facts": facts}})
    next_one = row(seen, state="starting", pulse="STARTING")
    [finding] = next_one["findings"]
    assert next_one["urgency"] == Urgency.UNDER_WAY
    assert finding["words"] == "it stalled, and generation 3 has yet to commit"
    assert finding["since"] == facts["claimed"]
    assert finding["waits"]
    assert row(seen, state="running", pulse="STALLED")["urgency"] == Urgency.HAND


def test_a_stream_that_nobody_watches_needs_a_hand_unless_it_is_over() -> None:
    alone = replace(SEEN, task="")
    assert row(alone)["urgency"] == Urgency.HAND
    assert [finding["kind"] for finding in row(alone)["findings"]] == ["nobody_watches"]
    assert row(alone, state="stopped", horizon=None)["findings"] == []


def test_a_paused_dag_is_a_finding_although_its_task_watches() -> None:
    assert [finding["kind"] for finding in row(replace(SEEN, paused=True))["findings"]] == ["paused"]


def held(hard: datetime, plan: datetime, reason: HorizonReason = HorizonReason.TOKEN_MAX_LIFETIME) -> dict[str, Any]:
    horizon = {"plan": plan.isoformat(), "force": hard.isoformat(), "push": plan.isoformat(), "reason": reason.value}
    detail = {"detail": {"facts": {"generation": 3, "horizon": horizon}}}
    return row(replace(SEEN, detail=detail), state="held", horizon=hard)


def test_a_held_stream_needs_a_hand_once_its_restart_would_be_due() -> None:
    early = held(NOW + 3 * HOUR, NOW + HOUR)
    assert (early["urgency"], early["findings"]) == (Urgency.SOON, [])
    assert [early["horizon"][step] for step in ("plan", "force", "push")] == [None] * 3
    assert early["horizon"]["held"] == "held: nobody restarts it before"
    late = held(NOW + HOUR, NOW - HOUR)
    [finding] = late["findings"]
    assert late["urgency"] == Urgency.HAND
    assert finding["words"] == "its credentials end while it is held"
    assert "2026-03-01 13:00:00 UTC" in finding["why"]
    assert finding["way_out"] == "`kstream streams start orders`: its task then replaces it once that is due"


def test_a_held_stream_whose_credentials_ended_says_why_it_may_look_healthy() -> None:
    over = held(NOW - HOUR, NOW - 2 * HOUR)
    [finding] = over["findings"]
    assert datetime.fromisoformat(finding["since"]) == NOW - HOUR
    assert "it may look healthy until it opens its next connection" in finding["why"]


def test_a_held_stream_that_only_a_policy_would_restart_needs_nobody() -> None:
    assert held(NOW + HOUR, NOW - HOUR, HorizonReason.POLICY_MAX_AGE)["findings"] == []


def test_facts_of_an_earlier_generation_are_not_shown_as_this_ones() -> None:
    facts = {"generation": 2, "issued": "2026-02-01T00:00:00+00:00", "reason": "nothing ran"}
    seen = replace(SEEN, detail={"detail": {"facts": facts}})
    assert (row(seen)["horizon"]["issued"], row(seen)["began"]["why"]) == (None, "")
    assert row(seen, generation=2)["horizon"]["issued"] == facts["issued"]


WARNED = {"worker": "TaskManager", "until": (NOW + HOUR).isoformat()}


@pytest.mark.parametrize(
    ("state", "look", "runs"),
    [
        ("running", {"step": "settled", "lives": True}, True),
        ("backing off", {"step": "settled", "lives": False}, False),
        ("backing off", {}, False),
        ("wait", {"step": "wait", "lives": False}, False),
        ("submit", {"step": "submit", "lives": False}, False),
        ("stop", {"step": "stop", "lives": True}, True),
        ("held", {"step": "settled", "lives": False}, False),
        # It may run on.
        ("unknown", {"step": "unknown", "lives": False}, True),
        ("running", {"step": "unknown", "lives": False}, True),
        # The task's report says nothing of it, and the look was at another application.
        ("running", {}, True),
        ("running", {"step": "wait", "lives": False, "application": "application_1_0000"}, True),
    ],
)
def test_credentials_renew_themselves_only_where_something_runs(state: str, look: dict[str, Any], runs: bool) -> None:
    horizon = {"reason": HorizonReason.NONE.value, "replacement": WARNED}
    facts = {"generation": 3, "issued": NOW.isoformat(), "horizon": horizon}
    detail = {"application": STATE.application, "facts": facts, **look}
    shown = row(replace(SEEN, detail={"detail": detail}), state=state, horizon=None)["horizon"]
    assert (shown["runs"], shown["renews_itself"], bool(shown["warning"])) == (runs, runs, runs)
    assert bool(shown["issued"]) is runs


def test_a_large_fleet_is_late_later() -> None:
    """A triggerer writes at most one stream's rows a second."""
    assert late_after(10) == timedelta(minutes=3)
    assert late_after(1000) == timedelta(seconds=3000)


def test_foreign_text_shows_no_password_and_no_control_character() -> None:
    evil = "<img src=x onerror=alert(1)>\x1b[31m hdfs://etl:hunter2@nn:8020 password=hunter2"
    seen = replace(
        SEEN,
        told=told(EventKind.BLOCKED, evil),
        detail={"detail": {"pulse_why": evil, "facts": {"generation": 3, "reason": evil}}},
    )
    shown = row(seen, state="stop", verdict=evil, desired=Desired(DesiredState.HELD, 0, evil, NOW, evil))
    for text in (
        shown["why"],
        shown["pulse_why"],
        shown["began"]["why"],
        shown["desired"]["reason"],
        shown["findings"][0]["why"],
    ):
        assert "hunter2" not in text
        assert "\x1b" not in text
        assert "<img" in text, "markup is left to the page, which shows it as text"


def test_a_row_says_what_is_wanted_by_whom_and_why() -> None:
    wanted = Desired(DesiredState.HELD, 0, "maria", NOW, "Kafka is moved")
    stored = StreamState.from_json(replace(STATE, desired=wanted).to_json())
    assert stored is not None
    shown = row(replace(SEEN, state=stored))["desired"]
    assert (shown["state"], shown["by"], shown["reason"]) == ("held", "maria", "Kafka is moved")


def test_the_last_restart_says_why_the_generation_before_it_ended() -> None:
    facts = {"generation": 3, "claimed": NOW.isoformat(), "reason": "generation 2 was stopped to be followed"}
    lives = [{"generation": 1, "end": "memory"}, {"generation": 2, "end": "its horizon is near"}]
    seen = replace(SEEN, detail={"detail": {"facts": facts}})
    assert row(seen)["began"]["why"] == facts["reason"]
    assert row(replace(seen, report={"lives": lives}))["began"]["why"] == "its horizon is near"


@pytest.mark.parametrize(
    ("task", "paused", "words", "out", "waits"),
    [
        ("", True, "its DAG is paused", "unpause its DAG, `stream-prod.new`", False),
        ("", False, "its first look is not stored yet", "wait for the next run of `stream-prod.new`", True),
        ("running", False, "its first look is not stored yet", "the log of its task tells why", True),
        ("deferred", True, "its first look is not stored yet", "the log of its task tells why", True),
    ],
)
def test_a_declared_stream_that_nobody_looked_at_has_a_row(
    task: str, paused: bool, words: str, out: str, waits: bool
) -> None:
    unseen = UnseenStream("prod", "new", TaskIds("stream-prod.new", task="keep"), task, paused, own=True)
    hangs = replace(SEEN, told=told(EventKind.STALLED))
    first, new, last = fleet_rows([SEEN, hangs], NOW, LATE, [unseen])
    group = Urgency.UNDER_WAY if task else Urgency.UNSEEN
    assert (first["urgency"], new["urgency"], last["urgency"]) == (Urgency.HAND, group, Urgency.WELL)
    assert (new["called"], new["state"], new["seen"], new["actions"]) == ("new", "not seen", None, {})
    assert not new["stale"]
    assert new.keys() == last.keys()
    [finding] = new["findings"]
    assert (finding["words"], finding["waits"]) == (words, waits)
    assert finding["kind"] == ("unseen" if waits else "paused")
    assert out in finding["way_out"]
    # Whether it runs is not known: somebody may have adopted it.
    assert (new["horizon"]["runs"], new["horizon"]["hard"]) == (True, None)
    watcher = {name: new["watcher"][name] for name in ("dag", "state", "paused")}
    assert watcher == {"dag": "stream-prod.new", "state": task, "paused": paused}


def test_only_a_dag_made_for_the_stream_is_advised_to_be_unpaused() -> None:
    [row] = fleet_rows([], NOW, LATE, [UnseenStream("prod", "new", TaskIds("aaa", task="keep"), paused=True)])
    [finding] = row["findings"]
    assert (finding["words"], finding["way_out"]) == ("its DAG is paused", "")
    assert "`aaa` declares it" in finding["why"]


def test_the_words_before_a_first_look_have_no_control_character() -> None:
    evil = UnseenStream("prod", "new", TaskIds("\x1b[2Jaaa", task="keep"), paused=True, own=True)
    assert "\x1b" not in fleet_rows([], NOW, LATE, [evil])[0]["findings"][0]["way_out"]
