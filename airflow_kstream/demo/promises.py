"""The demonstration's promises, each kept or broken."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from airflow_kstream.demo.history import History, Loss
from airflow_kstream.model.clusters.application import Application
from airflow_kstream.model.streams.generation_end import EndKind
from airflow_kstream.policy.streams.ends.ends import end_of


@dataclass(frozen=True)
class Promise:
    name: str
    kept: bool
    seen: str


def lived_through(history: History, now: datetime, lives: int, max_lifetime: timedelta) -> Promise:
    """Check a stream that needs no restart: one generation, alive for longer than `lives` max-lifetimes."""
    first = history.lives.get(1)
    age = now - first.issued if first and not first.died else timedelta()
    kept = list(history.lives) == [1] and age > lives * max_lifetime
    evidence = f"{len(history.lives)} generation(s), {age / max_lifetime:.1f} max-lifetimes without a restart"
    if history.confirmed:
        evidence += f", {len(history.confirmed)} times fresh tokens"
    return Promise(f"{history.spec.name}: never restarted, outlived {lives} max-lifetimes", kept, evidence)


def restarted_in_time(history: History, at_least: int) -> Promise:
    """Check a stream without a keytab: each generation that ran, except the last, was dead before its horizon.

    The last one has to commit. A generation that was claimed but never had an application does not count.
    """
    newest = history.newest
    gone = [life for life in history.lives.values() if life is not newest and life.application]
    margins = [life.margin.total_seconds() if life.margin else float("-inf") for life in gone]
    works = newest is not None and newest.first_commit is not None
    kept = works and len(gone) >= at_least and min(margins, default=-1.0) > 0
    spread = f", dead {min(margins):.0f} to {max(margins):.0f} s before their horizons" if margins else ""
    return Promise(f"{history.spec.name}: restarted before each horizon", kept, f"{len(gone)} restarts{spread}")


def died_of_its_token(control: Application) -> Promise:
    """Check that the unsupervised control ended, and that its diagnostics name the dead token."""
    kept = not control.alive and end_of(control.diagnostics).kind is EndKind.CREDENTIALS
    reason = _dead_token(control.diagnostics) or "no token in its diagnostics"
    evidence = f"{control.state}/{control.final_status}, {reason}"
    return Promise("unsupervised control: died of its token", kept, evidence)


def never_worked_again(control: Application, workers: int, log: str) -> Promise:
    """Check that the unsupervised control has no TaskManager, though YARN says that it runs; its log has to say why."""
    reason = _dead_token(log)
    evidence = f"{control.state} with {workers} TaskManagers, {reason or 'no token in its log'}"
    kept = control.alive and not workers and bool(reason)
    return Promise("unsupervised control: could not replace its TaskManager", kept, evidence)


def replaced(loss: Loss, max_lifetime: timedelta) -> Promise:
    """Check that a TaskManager was killed past the life of the first tokens, and that the same job got another one."""
    newest = loss.history.newest
    age = loss.at - newest.issued if newest else timedelta()
    late = newest is not None and newest.application == loss.application and age > max_lifetime
    took = f"checkpoints again {(loss.works - loss.at).total_seconds():.0f} s later" if loss.works else "none came back"
    evidence = f"killed {age / max_lifetime:.1f} max-lifetimes after its claim, {took}"
    name = f"{loss.history.spec.name}: replaced a TaskManager after its first tokens' end"
    return Promise(name, late and loss.killed > 0 and loss.works is not None, evidence)


def _dead_token(text: str) -> str:
    quoted = re.search(r"InvalidToken\W+([^\n]{0,80})", text)
    return f"InvalidToken: {quoted[1].strip()}" if quoted else ""


def table_is_exact(name: str, findings: Mapping[str, Any]) -> Promise:
    """Check that every line of the daemons' logs is in the table, each record of Kafka once, and nothing else.

    A line that was sent again is a record of its own: `repeated` are rows that the stream owed to such records.
    """
    faults = {key: findings[key] for key in ("missing", "duplicated", "altered", "unexpected")}
    kept = findings["expected"] == findings["found"] - findings["repeated"] > 0 and not any(faults.values())
    counts = faults | ({"sent again": findings["repeated"]} if findings["repeated"] else {})
    numbers = ", ".join(f"{count} {key}" for key, count in counts.items())
    promise = "one row per line that was sent" if findings["repeated"] else "one row per log line"
    return Promise(f"{name}: {promise}", kept, f"{findings['expected']} lines, {findings['found']} rows, {numbers}")
