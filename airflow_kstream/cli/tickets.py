"""`kstream tickets ...`: the tickets that are kept fresh; renew them; check the keytabs behind them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.ticket_check import check
from airflow_kstream.cli.ticket_declarations import DeclarationOption, written_order
from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.ticket import TicketCache
from airflow_kstream.policy.tickets.renewal import RenewalPolicy
from airflow_kstream.supervise.tickets.renewal import ManagedTicket, renew_all, ticket_status
from airflow_kstream.views import tickets as ticket_views

app = typer.Typer(no_args_is_help=True, help="Kerberos tickets: list, renew; keytabs: check.")
app.command()(check)

Principals = Annotated[
    list[str] | None, typer.Option("--principal", "-p", help="This principal's ticket alone. Can be repeated.")
]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]

_ALERT = 1


@app.command(name="list")
def list_(
    cluster: ClusterOption, declaration: DeclarationOption = None, principal: Principals = None, as_json: AsJson = False
) -> None:
    """How the kept tickets stand. Nobody is asked but the files. Where they lie and their flags: --json.

    Exits with 1 when one is about to expire, expired or missing.
    """
    with _kept(cluster, declaration, principal) as (kept, policy):
        statuses = [ticket_status(each, policy) for each in kept]
    now = datetime.now(UTC)
    if as_json:
        _print_json([ticket_views.status_json(each, now) for each in statuses])
    else:
        Console().print(ticket_views.statuses_table(statuses, now))
        for line in ticket_views.troubles(statuses, now):
            Console(soft_wrap=True).print(line)
    if any(each.alert for each in statuses):
        raise typer.Exit(_ALERT)


@app.command()
def renew(
    cluster: ClusterOption,
    declaration: DeclarationOption = None,
    principal: Principals = None,
    force: Annotated[bool, typer.Option("--force", help="Also those that have enough of their life left.")] = False,
    as_json: AsJson = False,
) -> None:
    """Renew what is due: by keytab where there is one, else by the ticket's own renewability.

    A renewal that fails harms no other. Exits with 1 when one failed whose ticket is about to expire, expired or
    missing; while the old ticket has time, a failure is told and counted.
    """
    with _kept(cluster, declaration, principal) as (kept, policy):
        reports = []
        for report in renew_all(kept, policy, force=force):
            reports.append(report)
            if not as_json:
                Console(soft_wrap=True).print(ticket_views.report_line(report, datetime.now(UTC)))
    if as_json:
        _print_json([report.to_json() for report in reports])
    if any(report.alert for report in reports):
        raise typer.Exit(_ALERT)


@app.command()
def show(
    cache: Annotated[
        str, typer.Argument(metavar="CACHE", help="FILE:/path, /path, DIR:/folder, /folder or MEMORY:name.")
    ],
    as_json: AsJson = False,
) -> None:
    """Every ticket of one cache, or of each cache in a folder: for what, until when, with which key. No cluster.

    Exits with 1 when there is no cache, or one that can't be read or has no ticket in it.
    """
    names = tickets.members(cache)
    # Alone, it is refused; in a folder it hides no other.
    looks = [tickets.inspect(names[0])] if names == (cache,) else [_looked_into(name) for name in names]
    now = datetime.now(UTC)
    if as_json:
        _print_json([ticket_views.cache_json(found, now) for found in looks])
    else:
        for found in looks:
            Console(soft_wrap=isinstance(found, KstreamError)).print(ticket_views.cache_words(found, now))
    if not all(isinstance(found, TicketCache) and found.tickets for found in looks):
        raise typer.Exit(_ALERT)


def _looked_into(cache: str) -> TicketCache | KstreamError:
    try:
        return tickets.inspect(cache)
    except KstreamError as error:
        return error


@contextmanager
def _kept(
    cluster: str, declaration: Path | None, principals: list[str] | None
) -> Iterator[tuple[tuple[ManagedTicket, ...], RenewalPolicy]]:
    # The cluster stays open meanwhile: a keytab that the connection holds is a file for that time.
    with opened(cluster) as found:
        asked = written_order(found.name, declaration)
        yield _only(asked.kept(found), principals or []), asked.declaration.policy


def _only(kept: tuple[ManagedTicket, ...], principals: list[str]) -> tuple[ManagedTicket, ...]:
    known = {each.principal for each in kept}
    unknown = [principal for principal in principals if principal not in known]
    if unknown:
        raise InvalidInput(f"--principal {', '.join(unknown)} is not of the order; it has {', '.join(sorted(known))}")
    return tuple(each for each in kept if not principals or each.principal in principals)


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=1))
