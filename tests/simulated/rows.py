"""Rows of a stream with each of their fields, as triggers and tasks write them, and with something else in their place.

Any task of any DAG may write them, if it names the asset.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_kstream.model.plain import as_iso, plain
from airflow_kstream.model.streams.event import EndedEvent, EventKind, LastingEvent, Ledger
from airflow_kstream.model.streams.generation import (
    ClaimFacts,
    Desired,
    DesiredState,
    GenerationFacts,
    Life,
    Progress,
    TokenFacts,
)
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason, Replacement
from airflow_kstream.model.streams.plan import (
    Blocked,
    DeclarationReport,
    DoneAction,
    JobReport,
    Obstacle,
    Phase,
    Report,
)
from airflow_kstream.model.streams.stream_state import Rounds, StoredProgress, StreamState, TaskIds
from airflow_kstream.model.streams.submission import ExplainedSubmission, Origin
from airflow_kstream.policy.states.due import late_after
from airflow_kstream.views.pages.fleet import StoredStream, fleet_rows
from airflow_kstream.views.pages.stream import stream_page

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LOST = Replacement("executor", NOW + HOUR)
STATE = StreamState(
    "held",
    "it runs",
    3,
    "application_1_0001",
    NOW - HOUR,
    horizon=NOW + 2 * HOUR,
    plan=NOW + HOUR,
    events=("stalled",),
    progress=StoredProgress("STALLED", NOW - HOUR, (1.0, 2.0)),
    desired=Desired(DesiredState.HELD, 3, "ann", NOW - HOUR, "its source moves", "etl", 7),
    by=TaskIds("stream-prod.orders", "r", "keep", rounds=Rounds(60.0, begun=True, streams=1)),
    app_name="Orders",
)
ENDS = Horizon(
    HorizonReason.SERVICE_TOKEN, NOW + 2 * HOUR, NOW - HOUR, NOW + HOUR, NOW + HOUR, "HBASE_AUTH_TOKEN", LOST
)
FACTS = GenerationFacts(
    3,
    ClaimFacts(NOW - HOUR, "etl", "it is new", adopted=True),
    TokenFacts("ticket", NOW - HOUR, 24 * HOUR, 168 * HOUR),
    ENDS,
    Desired(),
    HOUR / 12,
    "/kstream/orders-1/evidence",
    (Progress("/data/c", 8, 7, NOW - HOUR, NOW - HOUR, HOUR / 6, ((6, 1.0), (7, 2.0))),),
)
LOOK = {
    **{"step": "settled", "application": STATE.application, "lives": True, "pulse_why": "batch 8 hangs"},
    **{"failure": "an exception", "freeze": "frozen", "logs_seconds": 60.0, "uncounted": ["a token of a KMS"]},
    "refreshed": {"confirmed_push_seconds": 60.0, "trouble": "no right"},
    "blocked": plain(Blocked(Obstacle.PREFLIGHT, NOW - HOUR, "no ticket")),
    "horizon": plain(ENDS),
    "facts": FACTS.to_json(),
}
REPORT = {
    **Report(
        "odd",
        Phase.HELD,
        "it is held",
        3,
        JobReport(STATE.application, "http://rm/app", "http://rm/logs", succeeded=False, diagnostics="it died"),
        ENDS,
        None,
        DeclarationReport(("conf",), "its spec can't be read", "it is another's", "it failed"),
        foretold=("its logs are lost on 3 March",),
        done=(DoneAction(NOW - HOUR, "submit", "it is new"),),
    ).to_json(),
    "lives": [Life(2, NOW - 2 * HOUR, "etl", "it is new", adopted=True, ended=NOW - HOUR, end="memory").to_json()],
    "submission": ExplainedSubmission(("as etl",), "spark-submit", (("--name odd", Origin("it", "y")),)).to_json(),
}
TOLD = Ledger(
    {(EventKind.STALLED, ""): LastingEvent(EventKind.STALLED, NOW - HOUR, "it hangs")},
    changes=3,
    past=(EndedEvent(EventKind.BLOCKED, NOW - 2 * HOUR, NOW - HOUR, "no ticket"),),
)
WHOLE: dict[str, Any] = {
    "verdict": STATE.to_json(),
    "detail": {**STATE.to_json(), "cut": True, "detail": LOOK},
    "report": REPORT,
    "told": TOLD.to_json(),
}

ODD = [
    *(None, True, 7, -1, 10**9, 2**31, 1e12, 2.0**62, 10**400, float("nan"), float("inf"), -float("inf")),
    *("text", "", "2026-03-01T11:00:00", "2026-03-01", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"),
    *([], {}, [7, None, "x"], [[1]], [{"x": []}], {"x": {"y": [float("nan")]}}),
    json.loads("[" * 900 + "]" * 900),
]

Path = tuple[str | int, ...]


def paths(of: Any, at: Path = ()) -> Iterator[Path]:
    """Yield where each value within stands."""
    for key, item in of.items() if isinstance(of, Mapping) else enumerate(of) if isinstance(of, list) else ():
        yield (*at, key)
        yield from paths(item, (*at, key))


def put(rows: Mapping[str, Any], changes: Mapping[Path, Any]) -> dict[str, Any]:
    """Return the rows with each of these values in its place, as far as that is there."""
    changed = deepcopy(dict(rows))
    for (*way, last), value in sorted(changes.items(), key=str):
        inner: Any = changed
        try:
            for key in way:
                inner = inner[key]
            inner[last] = value
        except (TypeError, KeyError, IndexError):
            continue
    return changed


def stored(rows: Mapping[str, Any]) -> StoredStream | None:
    """Return the stream as the pages' API reads it; None where a look at it can't be read."""
    state = StreamState.from_json(rows["verdict"])
    detail, report = (row if isinstance(row := rows[name], Mapping) else {} for name in ("detail", "report"))
    if state is None:
        return None
    return StoredStream("prod", "odd", state, Ledger.from_json(rows["told"]), detail, report, "deferred")


GOOD = StoredStream("prod", "orders", STATE, TOLD, WHOLE["detail"], REPORT, "deferred")
LATE = late_after(2)
PAGE = stream_page(GOOD, NOW, LATE)


def require_shown(rows: Mapping[str, Any]) -> None:
    """Require that a browser takes the pages, too: it knows no NaN, and shows no mapping where it expects a text."""
    odd = stored(rows)
    if odd is None:
        return
    fleet, page = fleet_rows([GOOD, odd], NOW, LATE), stream_page(odd, NOW, LATE)
    assert {row["stream"] for row in fleet} == {"orders", "odd"}
    assert "can't be read" not in page["row"]["why"]
    json.dumps([fleet, page], allow_nan=False)
    require_alike(page, PAGE)


def require_alike(value: Any, usual: Any) -> None:
    """Require the types of a usual page. What is not known is None, but never where a script expects a text."""
    if isinstance(usual, dict) and value is not None:
        for name in value.keys() & usual.keys():
            require_alike(value[name], usual[name])
    elif isinstance(usual, list):
        for item in value:
            require_alike(item, usual[0])
    elif value is not None or (isinstance(usual, str) and as_iso(usual) is None and usual != GOOD.state.application):
        assert isinstance(value, int | float if isinstance(usual, int | float) else str)
