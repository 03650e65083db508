"""What the dialogs of a stream say: each word does what they said, and a word that would do nothing is not offered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from airflow_kstream.model.streams.generation import Desired, DesiredState
from airflow_kstream.model.streams.horizon import HorizonReason
from airflow_kstream.views.pages.fleet import offered
from tests.unit.views.test_fleet_page import HOUR, NOW, STATE

RUNNING = replace(STATE, desired=Desired())
HELD = replace(STATE, state="held", desired=Desired(DesiredState.HELD))
STOPPED = replace(STATE, state="stopped", horizon=None, desired=Desired(DesiredState.STOPPED))


def facts(plan: datetime, reason: HorizonReason = HorizonReason.TOKEN_MAX_LIFETIME) -> Mapping[str, Any]:
    return {"horizon": {"plan": plan.isoformat(), "reason": reason.value}, "stop_waits": 300.0}


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (RUNNING, ["hold", "start", "restart", "stop"]),
        (HELD, ["start", "stop"]),
        (STOPPED, ["hold", "start"]),
        (replace(RUNNING, generation=0, application=None), ["hold", "start", "stop"]),
        (replace(RUNNING, desired=None), ["hold", "start", "restart", "stop"]),
    ],
)
def test_only_words_that_change_something_are_offered(state: Any, words: list[str]) -> None:
    assert list(offered(state, {}, NOW)) == words


def test_a_hold_says_when_the_credentials_end() -> None:
    assert "until its credentials end at 2026-03-06 12:00:00 UTC" in offered(RUNNING, {}, NOW)["hold"]
    over = replace(RUNNING, horizon=NOW - HOUR)
    assert "its credentials have ended" in offered(over, {}, NOW)["hold"]
    aged = facts(NOW + HOUR, HorizonReason.POLICY_MAX_AGE)
    assert offered(RUNNING, aged, NOW)["hold"].endswith("What runs, runs on.")


def test_a_start_says_whether_the_generation_is_left_as_it_is() -> None:
    assert "Generation 3 is left as it is" in offered(HELD, facts(NOW + HOUR), NOW)["start"]
    assert "its restart has been due since 2026-03-01 11:00:00 UTC" in offered(HELD, facts(NOW - HOUR), NOW)["start"]
    asked = replace(HELD, desired=Desired(DesiredState.HELD, restart_up_to=3))
    assert "replaces generation 3, because a restart of it was requested" in offered(asked, {}, NOW)["start"]
    assert "submits generation 4" in offered(STOPPED, {}, NOW)["start"]


def test_a_restart_says_how_long_it_waits_for_the_batch_and_that_one_is_run_again() -> None:
    said = offered(RUNNING, facts(NOW + timedelta(days=1)), NOW)["restart"]
    assert "for 5m at most" in said
    assert "Generation 4 then runs a batch again that was not committed" in said


def test_a_job_in_no_batch_saves_its_state() -> None:
    clocked = {**facts(NOW + timedelta(days=1)), "progress": [{"unit": "checkpoint"}]}
    words = offered(RUNNING, clocked, NOW)
    assert "lets generation 3 save its state and stop, for 5m at most, ends it if it does not" in words["restart"]
    assert "Generation 4 then begins with the newest state that was left" in words["restart"]
    assert "batch" not in words["restart"] + words["stop"]
    assert "after its batch" in offered(RUNNING, {"progress": [{"unit": "batch"}]}, NOW)["stop"]
