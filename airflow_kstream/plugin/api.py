"""The API of the pages: it reads Airflow's own database, as the user who asks, and speaks to nothing else.

No `from __future__ import annotations` here, and every dependency is imported at the top: FastAPI takes an annotation
that it can't resolve for a parameter of the query, and the check of the user would be gone without a word.
"""

import hashlib
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import (
    GetUserDep,
    get_user,
    requires_access_asset,
    requires_access_view,
)
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.staticfiles import StaticFiles

from airflow_kstream import settings
from airflow_kstream.dags.ids import control_id, leases_id, tickets_id
from airflow_kstream.model.streams.event import EventKind, link
from airflow_kstream.plugin.readable import Readable, may_run, readable, seen_by, unseen_by
from airflow_kstream.policy.states.due import late_after
from airflow_kstream.states.reading import (
    StoredState,
    declared_streams,
    number_of_streams,
    stored_clusters,
    stored_of,
    stored_states,
    triggerers_load,
)
from airflow_kstream.views.pages.fleet import fleet_rows
from airflow_kstream.views.pages.kept import FILES, KEYTAB, TICKET, files_page, keytabs_of, shown, tickets_of
from airflow_kstream.views.pages.stream import stream_page

log = logging.getLogger(__name__)

# The same for all routes, so that a new one is closed unless somebody opens it. The bundle is public and has no data.
_CHECKS = [
    Depends(get_user),
    Depends(requires_access_view(AccessView.WEBSITE)),
    Depends(requires_access_asset("GET")),
]
# What the runbook has an entry for; other findings of a page are its own.
_KINDS = frozenset(kind.value for kind in EventKind)

app = FastAPI(dependencies=_CHECKS, docs_url=None, redoc_url=None, openapi_url=None)
app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")


@app.get("/api/fleet")
def fleet(request: Request, user: GetUserDep, session: SessionDep) -> Response:
    """Return all streams that the user may see, the most urgent first, and their clusters."""
    mine = readable(session, user, stored_states(session), declared_streams(session))
    late, now = late_after(number_of_streams(session)), datetime.now(UTC)
    rows = fleet_rows(seen_by(session, mine.streams), now, late, unseen_by(session, mine.unseen))
    body = {
        "streams": [_linked(row) for row in rows],
        "clusters": _clusters(mine, user),
        "stale_after": late.total_seconds(),
        "unserved": _unserved(session, now),
    }
    return _answer(request, body)


def _unserved(session: Any, now: datetime) -> str:
    """Return which triggers no triggerer serves; without an answer the page has all the rest."""
    try:
        return triggerers_load(session, now).words
    except Exception:
        log.exception("The triggerers' load can't be read")
        return ""


@app.get("/api/stream")
def one_stream(request: Request, user: GetUserDep, session: SessionDep, cluster: str, stream: str) -> Response:
    """Return all that is stored of one stream. 404 if there is none that the user may see: both look alike."""
    mine = readable(session, user, stored_of(session, cluster, stream), declared_streams(session, cluster, stream))
    if not mine.streams and not mine.unseen:
        raise HTTPException(404, "No such stream is stored or declared, or you may not read its DAG")
    [seen] = seen_by(session, mine.streams[:1]) or unseen_by(session, mine.unseen)
    page = stream_page(seen, datetime.now(UTC), late_after(number_of_streams(session)))
    return _answer(request, {**page, "row": _linked(page["row"]), "cluster": shown(_cluster(cluster, mine, user))})


@app.get("/api/files")
def files(request: Request, user: GetUserDep, session: SessionDep) -> Response:
    """Return the open files that runs over them found, by cluster, as far as the user may read those runs' DAGs."""
    mine = readable(session, user, stored_clusters(session))
    found = [
        {"cluster": each.cluster, "form": _form(leases_id(each.cluster), mine, user), "paths": files_page(rows)}
        for each in mine.clusters
        if (rows := _kept(each, FILES))
    ]
    return _answer(request, {"clusters": found})


@app.get("/api/tickets")
def tickets(request: Request, user: GetUserDep, session: SessionDep) -> Response:
    """Return the renewals of tickets and the checks of keytabs, by cluster, as far as the user may read their DAGs."""
    mine = readable(session, user, stored_clusters(session))
    found = [
        {
            "cluster": each.cluster,
            "form": _form(tickets_id(each.cluster), mine, user),
            "tickets": tickets_of(_kept(each, TICKET)),
            "keytabs": keytabs_of(_kept(each, KEYTAB)),
        }
        for each in mine.clusters
        if _kept(each, TICKET) or _kept(each, KEYTAB)
    ]
    return _answer(request, {"clusters": found})


def _linked(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stream's row with a link to the runbook at each event, where `[kstream] docs_url` names a site."""
    site = settings.text("docs_url")
    if not site:
        return row
    findings = (
        {**each, "runbook": link(site, each["kind"])} if each["kind"] in _KINDS else each for each in row["findings"]
    )
    return {**row, "findings": [*findings]}


def _kept(stored: StoredState, kind: str) -> list[Mapping[str, Any]]:
    """Return the rows of a kind that tasks keep of the cluster, each with the DAG of its task."""
    rows = (written for key, written in sorted(stored.others.items()) if key.startswith(kind))
    return [{**row.value, "dag": row.by} for row in rows if isinstance(row.value, Mapping)]


def _clusters(mine: Readable, user: Any) -> list[dict[str, Any]]:
    """Return the clusters of what the user may see, each with the DAG that controls its streams."""
    names = {each.cluster for each in (*mine.streams, *mine.clusters)} | {each.cluster for each in mine.unseen}
    return [_cluster(name, mine, user) for name in sorted(names)]


def _cluster(name: str, mine: Readable, user: Any) -> dict[str, Any]:
    told = [event for each in mine.clusters if each.cluster == name for event in each.told.to_json()["lasting"]]
    cluster: dict[str, Any] = shown({"id": name, "told": told, "form": _form(control_id(name), mine, user)})
    return cluster


def _form(dag: str, mine: Readable, user: Any) -> dict[str, Any] | None:
    """Return the DAG whose form the page fills in, and whether the user may; None if they may not read it."""
    return {"dag": dag, "may": may_run(user, dag)} if dag in mine.dags else None


def _answer(request: Request, body: Any) -> Response:
    """Return the body as JSON; without it, if the browser has it already."""
    text = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    headers = {"ETag": f'"{hashlib.sha256(text).hexdigest()[:32]}"', "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(text, media_type="application/json", headers=headers)
