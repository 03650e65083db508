"""What pages look at: a stream in trouble, a large fleet, and what tasks keep of files and tickets."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from airflow_kstream.model.streams.event import EndedEvent, EventKind
from airflow_kstream.model.streams.generation import Life
from airflow_kstream.model.streams.horizon import Horizon, HorizonReason
from airflow_kstream.model.streams.submission import ExplainedSubmission, Origin
from airflow_kstream.views.pages.kept import FILES, KEYTAB, TICKET, files_after, key_of
from tests.live.pages.stored import DAY, HOUR, NOW, Stored, healthy, troubled


def blocked() -> Stored:
    it = healthy("prod", "orders", 12)
    issued = NOW - 6.9 * DAY
    ends = Horizon(HorizonReason.TOKEN_MAX_LIFETIME, issued + 7 * DAY, issued + 5 * DAY, issued + 6.5 * DAY)
    why = "preflight: no ticket for etl@EXAMPLE.COM: Preauthentication failed. A retry won't help."
    it = troubled(it, EventKind.BLOCKED, why, NOW - 5 * HOUR, state="stop", verdict=f"its horizon is near: {ends.why}")
    stall = EndedEvent(EventKind.STALLED, NOW - 30 * HOUR, NOW - 29 * HOUR, "batch 90 was in flight for 40m", "")
    it = replace(it, told=replace(it.told, past=(stall,)), report=reported())
    return ending(it, ends, issued)


def starving(cluster: str, name: str) -> Stored:
    """Return a job whose checkpoints come by the clock, without a process that works, and none to follow it."""
    it = troubled(healthy(cluster, name, 1), EventKind.NOT_REPLACEABLE, "since 00:38 UTC", pulse="SLOW")
    [progress] = it.facts.progress
    newest = replace(progress, planned=63, committed=63, batches=(), unit="checkpoint")
    more = {"pulse_why": "no TaskManager works for it"}
    return replace(it, facts=replace(it.facts, progress=(newest,)), more=more)


def reported() -> dict[str, Any]:
    """Return what a task told last, with the lives of twelve generations."""
    planned, by = "the delegation token reaches its max-lifetime and nobody makes another", "airflow@worker-3"
    lives = [
        Life(number, NOW - (12 - number) * 5 * DAY - 6.9 * DAY, by, planned, ended=None, end=planned)
        for number in range(6, 13)
    ]
    ended = [replace(life, ended=after.began) for life, after in pairwise(lives)]
    ended[2] = replace(ended[2], end="memory: killed by YARN for exceeding memory limits", planned=False)
    parts = (
        ("--master yarn", Origin("always", "a stream runs on YARN")),
        ("--deploy-mode cluster", Origin("always", "its driver outlives the worker that submits it")),
        ("--name orders", Origin("the declaration")),
        ("--queue streams", Origin("the declaration")),
        ("--conf spark.yarn.maxAppAttempts=1", Origin("kstream", "a second attempt can't be localised")),
        ("spark.ssl.keyPassword=***", Origin("conn:orders, looked up right before the submission")),
        ("/jobs/orders.py", Origin("the declaration")),
    )
    planned_submission = ExplainedSubmission(("as etl@EXAMPLE.COM",), "spark-submit", parts)
    return {
        "generation": 12,
        "lives": [life.to_json() for life in (*ended, replace(lives[-1], end=""))],
        "submission": planned_submission.to_json(),
        "spec_differences": ["deploy.executors", "conf"],
        "application_url": "http://rm.example.com:8088/cluster/app/application_1763000000000_0012",
    }


def ending(it: Stored, ends: Horizon, issued: datetime) -> Stored:
    """Return the stream with this horizon."""
    state = replace(it.state, horizon=ends.hard, plan=ends.plan)
    return replace(
        it,
        state=state,
        facts=replace(
            it.facts,
            horizon=ends,
            tokens=replace(it.facts.tokens, issued=issued),
            claim=replace(it.facts.claim, claimed=issued),
        ),
    )


def many(number: int) -> list[Stored]:
    """Return a large fleet, one in fifty of it in trouble."""
    fleet = [healthy("prod", f"stream-{index:03}") for index in range(number)]
    return [
        troubled(it, EventKind.STALLED, "batch 180 is in flight", pulse="STALLED") if index % 50 == 7 else it
        for index, it in enumerate(fleet)
    ]


def found_files() -> dict[str, Any]:
    """Return what runs over a path kept: a stuck file, one that its living holder forgot, one that the principal may
    not probe, and one that grows."""
    files = {
        "part-00007.avro.tmp": ("holder dead", "its lease was not renewed for 4m 10s", "recovered"),
        "part-00009.avro.tmp": (
            "holder alive without progress",
            "unchanged for 3h 5m in 12 checks while its lease is renewed",
            "left alone: nobody approved it",
        ),
        "part-00011.avro.tmp": ("unknown", "could not determine whether its holder is alive: denied", "left alone"),
        "part-00012.avro.tmp": ("growing", "it changed between two scans", "left alone"),
    }
    findings = [
        {
            "path": f"/data/landing/{name}",
            "condition": condition,
            "why": why,
            "advice": "`kstream leases explain PATH` says who holds it" if "alive" in condition else "",
            "owner": "etl",
            "host": "edge-4.example.com",
            "stream": "orders" if "9" in name else None,
            "unchanged_seconds": 11100.0 if "alive" in condition else 260.0,
            "open_since": (NOW - 3.2 * HOUR).isoformat(),
            "length": 4_194_304,
            "visible_length": 3_870_000,
            "checks": 12,
        }
        for name, (condition, why, _) in files.items()
    ]
    recovery = {"path": "/data/landing/part-00003.avro.tmp", "outcome": "closed", "why": "", "length_after": 1_240_000}
    plan = {f"/data/landing/{name}": words for name, (*_, words) in files.items()}
    report = {
        "findings": findings,
        "plan": plan,
        "counts": {"open": 4, "left_alone": 1},
        "summary": "4 open files; 1 closed; 1 stuck and left alone",
        "recoveries": [{**recovery, "bytes_lost": 0, "seconds": 2.4}],
    }
    kept: object = None
    for hours in (30, 12, 0):
        at = (NOW - hours * HOUR / 4).isoformat()
        run = {"at": at, "path": "/data/landing", "run": f"scheduled-{hours}", "by": "", "dry_run": False}
        kept = files_after(kept, report, run)
    return {key_of(FILES, "/data/landing"): kept}


def found_tickets() -> dict[str, Any]:
    """Return what renewals and keytab checks kept: one that fails, and a keytab that was rotated."""
    fresh = {
        "principal": "etl@EXAMPLE.COM",
        "state": "fresh",
        "outcome": "renewed",
        "expiry": (NOW + 7 * HOUR).isoformat(),
        "renew_until": (NOW + 6 * DAY).isoformat(),
        "failures": 0,
        "at": (NOW - HOUR).isoformat(),
    }
    error = "Clients credentials have been revoked. Tried: log in, as ops@EXAMPLE.COM. A retry won't help."
    failing = {
        **fresh,
        "principal": "ops@EXAMPLE.COM",
        "state": "urgent",
        "outcome": "failed",
        "expiry": (NOW + HOUR / 3).isoformat(),
        "failures": 7,
        "failing_since": (NOW - 2 * HOUR).isoformat(),
        "error": error,
        "alert": True,
    }
    rotated = {
        "kind": "rotated",
        "severity": "error",
        "words": "the KDC has key version 4, the keytab 3: it was rotated",
        "remedy": "put the new keytab in place; the streams that it ends restart with it before that",
    }
    keytab = {
        "principal": "etl@EXAMPLE.COM",
        "keytab": "/etc/security/keytabs/etl.keytab",
        "kvno": 3,
        "kdc_kvno": 4,
        "severity": "error",
        "findings": [rotated],
        "streams": [{"stream": "inventory", "generation": 1, "dies_from": (NOW + 20 * HOUR).isoformat()}],
        "at": (NOW - 2 * HOUR).isoformat(),
    }
    works = {
        **keytab,
        "principal": "ops@EXAMPLE.COM",
        "keytab": "/etc/security/keytabs/ops.keytab",
        "kdc_kvno": 3,
        "severity": None,
        "findings": [],
        "streams": [],
    }
    return {
        **{key_of(TICKET, str(each["principal"])): each for each in (fresh, failing)},
        **{key_of(KEYTAB, f"{each['principal']} {each['keytab']}"): each for each in (keytab, works)},
    }
