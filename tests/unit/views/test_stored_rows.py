"""Whatever any task of any DAG writes in the place of a stream's rows, each page shows every stream."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from airflow_kstream.model.streams.stream_state import StreamState
from airflow_kstream.policy.states.due import unlooked
from airflow_kstream.views.pages.fleet import fleet_rows
from tests.simulated.rows import (
    GOOD,
    HOUR,
    LOOK,
    NOW,
    ODD,
    PAGE,
    REPORT,
    STATE,
    WHOLE,
    paths,
    put,
    require_shown,
    stored,
)

# Without these nobody knows how a stream was seen: its DAG's declaration shows it as one that was not.
NEEDED = {("verdict",), *(("verdict", name) for name in ("state", "seen", "generation"))}
of_any = pytest.mark.parametrize("odd", ODD, ids=lambda odd: str(odd)[:30])


@of_any
def test_whatever_a_row_holds_each_page_shows_every_stream(odd: Any) -> None:
    for path in paths(WHOLE):
        rows = put(WHOLE, {path: odd})
        assert stored(rows) or path in NEEDED
        require_shown(rows)


@of_any
def test_whatever_a_row_holds_the_other_streams_are_judged_as_without_it(odd: Any) -> None:
    for path in paths(WHOLE["verdict"]):
        state = StreamState.from_json(put(WHOLE["verdict"], {path: odd}))
        late = unlooked({"orders": STATE, **({"odd": state} if state else {})}, NOW)
        assert late["orders"].patience <= 3 * HOUR


def test_what_triggers_and_tasks_write_is_shown_whole() -> None:
    assert stored(WHOLE) == replace(GOOD, stream="odd")
    require_written(PAGE["facts"], LOOK["facts"])
    require_written({name: PAGE[name] for name in ("blocked", "failure", "freeze", "logs_seconds")}, LOOK)
    require_written({name: PAGE[name] for name in ("lives", "done", "submission", "foretold", "diagnostics")}, REPORT)
    require_written(PAGE["row"]["pushes"], {"confirmed": "2026-03-01T10:59:00+00:00", "trouble": "no right"})
    assert PAGE["row"]["horizon"]["warning"].startswith("from 2026-03-01 13:00 UTC on a executor")
    assert (PAGE["differences"], len(PAGE["doubts"]), PAGE["cut"]) == (["conf"], 3, True)


def require_written(shown: Any, written: Any) -> None:
    for name, value in shown.items() if isinstance(shown, dict) else enumerate(shown):
        if isinstance(value, dict | list):
            require_written(value, written[name])
        else:
            assert (name, value) == (name, written[name])


def test_a_row_that_can_not_be_made_says_so_and_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    naive = replace(GOOD, stream="odd", state=replace(STATE, seen=datetime(2026, 3, 1)))
    odd, good = sorted(fleet_rows([naive, GOOD], NOW, timedelta(hours=2)), key=lambda row: row["stream"])
    assert (good["why"], odd["seen"], odd["urgency"]) == ("it runs", None, "not seen")
    assert odd["why"].startswith("what is stored of it can't be read")
    assert odd["watcher"]["dag"] == STATE.by.dag
    assert "prod/odd" in caplog.text
