"""Tickets and their renewals as tables for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from rich.table import Column, Table
from rich.text import Text

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.printable import printable
from airflow_kstream.model.ticket import Ticket, TicketCache
from airflow_kstream.policy.tickets.renewal import TicketState
from airflow_kstream.supervise.tickets.renewal import RenewalOutcome, RenewalReport, TicketStatus
from airflow_kstream.views.tokens import moment

_STATES = {
    TicketState.FRESH: ("fresh", "green"),
    TicketState.DUE: ("due for renewal", "yellow"),
    TicketState.URGENT: ("about to expire", "red"),
    TicketState.EXPIRED: ("expired", "red"),
    TicketState.MISSING: ("no ticket", "red"),
}
_OUTCOMES = {
    RenewalOutcome.KEPT: "kept as it is",
    RenewalOutcome.RENEWED: "renewed",
    RenewalOutcome.ACQUIRED: "acquired anew",
    RenewalOutcome.FAILED: "FAILED",
}


_UNCOUNTED = "how often in a row can't be kept in its folder, which takes no file"


def statuses_table(statuses: Sequence[TicketStatus], now: datetime) -> Table:
    """What fits into a terminal of 80 columns, a pipe's width."""
    table = _table("principal", "state", "expires")
    for each in statuses:
        table.add_row(_cell(each.kept.principal), Text(*_STATES[each.state]), _briefly(each.ticket, now))
    return table


def troubles(statuses: Sequence[TicketStatus], now: datetime) -> Iterator[Text]:
    """A sentence for each that can't be read or whose renewals fail: how often, since when, and why."""
    for each in statuses:
        failures = _failures(each.failures.count, each.failures.since, now)
        failed = f"renewing failed {failures}: {each.failures.why}".removesuffix(": ") if failures else ""
        said = "; ".join(filter(None, (each.error.message if each.error else "", failed)))
        if said:
            yield Text(printable(f"{each.kept.principal}: {said}"), style=_STATES[each.state][1] if each.alert else "")


def _briefly(ticket: Ticket | None, now: datetime) -> Text:
    if ticket is None:
        return Text("")
    away = moment(ticket.expiry, now).rpartition(" (")[2].rstrip(")")
    left = ticket.renew_until and format_duration(ticket.renew_until - now)
    renewable = f"renewable for {left}" if left and not left.startswith("-") else "not renewable"
    return Text(f"{ticket.expiry:%Y-%m-%d %H:%M:%S %Z}\n{away}, {renewable}")


def status_json(each: TicketStatus, now: datetime) -> dict[str, Any]:
    """Plain data, times in UTC. `error` is why it can't be told, else why the last renewal failed."""
    return {
        "cluster": each.kept.cluster,
        "principal": each.kept.principal,
        "cache": str(each.kept.cache),
        "state": each.state.value,
        "alert": each.alert,
        "error": str(each.error or "") or each.failures.why,
        "failures": each.failures.count,
        "failing_since": _iso(each.failures.since),
        **(_ticket_json(each.ticket, now) if each.ticket else {}),
    }


def cache_words(cache: TicketCache | KstreamError, now: datetime) -> Table | Text:
    """Each ticket of one cache, whoever keeps it; or why there is none to show."""
    if isinstance(cache, KstreamError):
        return Text(printable(str(cache)), style="red")
    if not cache.tickets:
        return Text(printable(f"{cache.name} of {cache.principal}: no ticket in it"), style="red")
    table = _table("ticket for", "expires", "renewable until", "flags", "sealed with")
    table.title = Text(printable(f"{cache.name} of {cache.principal}"))
    for ticket in cache.tickets:
        kvno = "a key of unknown version" if ticket.kvno is None else f"kvno {ticket.kvno}"
        sealed = _cell(f"{ticket.enctype}, {kvno}")
        table.add_row(_cell(ticket.server), *_life(ticket, now), _cell(_flags(ticket)), sealed)
    return table


def cache_json(cache: TicketCache | KstreamError, now: datetime) -> dict[str, Any]:
    if isinstance(cache, KstreamError):
        return {"error": str(cache), "tickets": []}
    tickets = [_ticket_json(ticket, now) for ticket in cache.tickets]
    return {"cache": cache.name, "kind": cache.kind.value, "principal": cache.principal, "tickets": tickets}


def report_line(report: RenewalReport, now: datetime) -> Text:
    """One renewal in a sentence; a failure with what is left and why."""
    return Text(printable(f"{report.principal}: {', '.join(_said(report, now))}"), style=_style(report))


def _said(report: RenewalReport, now: datetime) -> Iterator[str]:
    yield f"copied from {report.copied_from}" if report.copied_from else _OUTCOMES[report.outcome]
    if report.outcome is not RenewalOutcome.FAILED:
        if report.expiry:
            yield f"good until {moment(report.expiry, now)}"
        return
    yield _failures(report.failures, report.failing_since, now) if report.counted else _UNCOUNTED
    yield f"the ticket at hand: {_STATES[report.state][0]}" + (
        f", {'good until' if report.state.serves else 'it ended'} {moment(report.expiry, now)}" if report.expiry else ""
    )
    yield report.error


def _style(report: RenewalReport) -> str:
    if report.outcome is not RenewalOutcome.FAILED:
        return ""
    return "red" if report.alert else "yellow"


def _ticket_json(ticket: Ticket, now: datetime) -> dict[str, Any]:
    return {
        "server": ticket.server,
        "start": ticket.start.isoformat(),
        "expiry": ticket.expiry.isoformat(),
        "seconds_left": round(ticket.remaining(now).total_seconds()),
        "renew_until": _iso(ticket.renew_until),
        "flags": sorted(ticket.flags),
        "enctype": ticket.enctype,
        "kvno": ticket.kvno,
    }


def _life(ticket: Ticket | None, now: datetime) -> tuple[Text, Text]:
    if ticket is None:
        return Text(""), Text("")
    renewable = moment(ticket.renew_until, now) if ticket.renew_until else "not renewable"
    return _cell(moment(ticket.expiry, now)), _cell(renewable)


def _flags(ticket: Ticket | None) -> str:
    return ", ".join(sorted(ticket.flags)) if ticket else ""


def _failures(count: int, since: datetime | None, now: datetime) -> str:
    if not count:
        return ""
    return f"{count} in a row" + (f" for {format_duration(now - since)}" if since else "")


def _iso(when: datetime | None) -> str | None:
    return when.isoformat() if when else None


def _table(*headings: str) -> Table:
    return Table(*(Column(heading, overflow="fold") for heading in headings), show_lines=True)


def _cell(text: str) -> Text:
    return Text(printable(text))
