"""Tickets, their renewals and checked keytabs, as tables and lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from airflow_kstream.model.durations import format_duration
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.kerberos.keytab import KeytabFinding
from airflow_kstream.model.kerberos.ticket import Ticket, TicketCache
from airflow_kstream.policy.tickets import TicketState
from airflow_kstream.supervise.doctor.keytabs import KeytabCheck
from airflow_kstream.supervise.tickets.renewal import RenewalOutcome, RenewalReport, TicketStatus
from airflow_kstream.views.doctor import STYLES
from airflow_kstream.views.tables import add, away, cell, moment, table

_HEADINGS, _COSTS = ("keytab", "finding", "remedy"), ("streams", "when")
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
    RenewalOutcome.ACQUIRED: "acquired",
    RenewalOutcome.FAILED: "FAILED",
}
UNCOUNTED = "consecutive failures can't be counted: the cache folder is not writable"


def statuses_table(statuses: Sequence[TicketStatus], now: datetime) -> Table:
    """Return a row for each ticket, which fits into a terminal of 80 columns, a pipe's width."""
    rows = table("principal", "state", "expires", lines=True)
    for status in statuses:
        words, style = _STATES[status.state]
        add(rows, status.kept.principal, cell(words, style=style), _briefly(status.ticket, now))
    return rows


def troubles(statuses: Sequence[TicketStatus], now: datetime) -> Iterator[Text]:
    """Yield a line for each ticket that can't be read or whose renewals fail: how often, since when, and why."""
    for status in statuses:
        failures = _failures(status.failures.count, status.failures.since, now)
        failed = f"not renewed, {failures}: {status.failures.why}".removesuffix(": ") if failures else ""
        reasons = "; ".join(filter(None, (status.error.message if status.error else "", failed)))
        if reasons:
            style = _STATES[status.state][1] if status.alert else ""
            yield cell(f"{status.kept.principal}: {reasons}", style=style)


def cache_view(cache: TicketCache | KstreamError, now: datetime) -> Table | Text:
    """Return each ticket of one cache as a table, or why there is none to show as a line."""
    if isinstance(cache, KstreamError):
        return cell(str(cache), style="red")
    if not cache.tickets:
        return cell(f"{cache.name} of {cache.principal}: no ticket in it", style="red")
    rows = table("ticket for", "expires", "renewable until", "flags", "sealed with", lines=True)
    rows.title = cell(f"{cache.name} of {cache.principal}")
    for ticket in cache.tickets:
        renewable = moment(ticket.renew_until, now) if ticket.renew_until else "not renewable"
        flags = ", ".join(sorted(ticket.flags))
        add(rows, ticket.server, moment(ticket.expiry, now), renewable, flags, _key(ticket))
    return rows


def cache_json(cache: TicketCache | KstreamError, now: datetime) -> dict[str, Any]:
    """Return one cache as plain data; an unreadable one has the error and no ticket."""
    return {**cache.to_json(), "tickets": []} if isinstance(cache, KstreamError) else cache.to_json(now)


def report_line(report: RenewalReport, now: datetime) -> Text:
    """Return one renewal as a line; for a failure also the reason, and the time that the ticket has left."""
    return cell(f"{report.principal}: {', '.join(_parts(report, now))}", style=_style(report))


def _briefly(ticket: Ticket | None, now: datetime) -> Text:
    if ticket is None:
        return cell("")
    left = ticket.renew_until and format_duration(ticket.renew_until - now)
    renewable = f"renewable for {left}" if left and not left.startswith("-") else "not renewable"
    return cell(f"{ticket.expiry:%Y-%m-%d %H:%M:%S %Z}", f"{away(ticket.expiry, now)}, {renewable}")


def _key(ticket: Ticket) -> str:
    kvno = "a key of unknown version" if ticket.kvno is None else f"kvno {ticket.kvno}"
    return f"{ticket.enctype}, {kvno}"


def _parts(report: RenewalReport, now: datetime) -> Iterator[str]:
    yield f"copied from {report.copied_from}" if report.copied_from else _OUTCOMES[report.outcome]
    if report.outcome is not RenewalOutcome.FAILED:
        if report.expiry:
            yield f"good until {moment(report.expiry, now)}"
        return
    failing = report.failing
    yield _failures(failing.failures, failing.failing_since, now) if failing.counted else UNCOUNTED
    yield f"the ticket at hand: {_STATES[report.state][0]}" + (
        f", {'good until' if report.state.serves else 'it ended'} {moment(report.expiry, now)}" if report.expiry else ""
    )
    yield report.error


def _style(report: RenewalReport) -> str:
    if report.outcome is not RenewalOutcome.FAILED:
        return ""
    return "red" if report.alert else "yellow"


def failure_count(count: int) -> str:
    """Return the number of consecutive failures in words."""
    return "1 failure" if count == 1 else f"{count} consecutive failures"


def _failures(count: int, since: datetime | None, now: datetime) -> str:
    if not count:
        return ""
    if since is None:
        return failure_count(count)
    elapsed = format_duration(now - since)
    return f"{failure_count(count)} {f'{elapsed} ago' if count == 1 else f'over {elapsed}'}"


def checks_table(checks: Sequence[KeytabCheck]) -> Table:
    """Return a row for each finding, and one that says so for a keytab without any.

    The columns about streams are there only if one is affected.
    """
    costs = _COSTS if any(check.streams for check in checks) else ()
    rows = table(*_HEADINGS, *costs, lines=True)
    for check in checks:
        whose = cell(*filter(None, (check.place.principal, check.place.path)))
        # The affected streams stand beside the worst finding.
        its_costs = _streams(check) if costs else ()
        if not check.findings:
            add(rows, whose, cell(f"works, kvno {check.kvno}", style="green"), "", *its_costs)
        for number, finding in enumerate(check.findings):
            first = (whose, its_costs) if number == 0 else ("", ())
            add(rows, first[0], _words(finding), finding.remedy, *first[1])
    return rows


def _streams(check: KeytabCheck) -> tuple[Text, Text]:
    when = (f"{stream.loss.dies_from:%m-%d %H:%M:%S}" for stream in check.streams if stream.loss)
    return cell(*(stream.stream for stream in check.streams)), cell(*when)


def _words(finding: KeytabFinding) -> Text:
    return cell(f"{finding.severity}: {finding.words}", style=STYLES[finding.severity])
