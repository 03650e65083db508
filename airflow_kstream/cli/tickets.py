"""`kstream tickets ...`: list and renew tickets; find keytabs that no longer work, and the streams that end by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.declarations import add_declarations
from airflow_kstream.cli.output import JsonOption, print_json, show
from airflow_kstream.clients.kerberos import tickets
from airflow_kstream.clients.local.regular_files import require_there
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.declaration_kinds import TICKETS
from airflow_kstream.model.errors import CredentialError, InvalidInput, KstreamError
from airflow_kstream.model.kerberos.declarations import RenewalPolicy, TicketDeclaration
from airflow_kstream.model.kerberos.identity import CacheKind, split_cache_name
from airflow_kstream.model.kerberos.ticket import TicketCache
from airflow_kstream.supervise.doctor.keytabs import check_keytabs
from airflow_kstream.supervise.tickets.keytab_probe import KeytabPlace, only_principal
from airflow_kstream.supervise.tickets.managed import ManagedTicket, declaration_path, kept_tickets, read_declaration
from airflow_kstream.supervise.tickets.renewal import renew_all, ticket_status
from airflow_kstream.views import tickets as ticket_views
from airflow_kstream.views.tickets import checks_table

DeclarationOption = Annotated[
    Path | None,
    typer.Option(
        "--declaration",
        help="A YAML file of principals, or a folder with CLUSTER.yaml; without it the connection's own alone.",
    ),
]


@dataclass(frozen=True)
class WrittenDeclaration:
    """A declaration and the file that it was read from, None if there is none."""

    declaration: TicketDeclaration
    path: Path | None = None

    def kept(self, cluster: Cluster) -> tuple[ManagedTicket, ...]:
        """Return the tickets and their caches. Raises InvalidInput: when the declaration does not fit this cluster."""
        try:
            return kept_tickets(cluster, self.declaration)
        except InvalidInput as error:
            message = f"{self.path}: {error.message}" if self.path else f"{error.message} (--declaration FILE)"
            raise InvalidInput(message) from error


def written_declaration(cluster_name: str, named: Path | None) -> WrittenDeclaration:
    """Read the declaration, an empty one without a file. Raises InvalidInput: when the file is wrong or unreadable."""
    path = declaration_path(cluster_name, named) if named and named.is_dir() else named
    return WrittenDeclaration(read_declaration(path) if path else TicketDeclaration(), path)


_FAILED = 1

KeytabOption = Annotated[
    Path | None,
    typer.Option(
        help="Check this keytab only; without it the connection's own, those of its streams and of the declaration."
    ),
]
PrincipalOption = Annotated[
    str | None,
    typer.Option(help="The principal whose key in --keytab is checked; not needed if the file has only one."),
]


def check(
    cluster_name: ClusterOption,
    keytab: KeytabOption = None,
    principal: PrincipalOption = None,
    declaration: DeclarationOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check keytabs against the file system and the KDC, and report how to fix each problem.

    Exit 1 if a keytab has an error. The check logs in to the KDC and writes nothing. Running streams that will lose
    their tokens are named, with the time.
    """
    place = _place(keytab, principal)
    principals = written_declaration(cluster_name, declaration).declaration.principals
    also = [KeytabPlace(declared.principal, declared.keytab) for declared in principals if declared.keytab]
    with opened(cluster_name) as cluster:
        checks = list(check_keytabs(cluster, place, also))
    if as_json:
        print_json([check.to_json() for check in checks])
    else:
        show(checks_table(checks))
    if any(check.failed for check in checks):
        raise typer.Exit(_FAILED)


def _place(keytab: Path | None, principal: str | None) -> KeytabPlace | None:
    if keytab is None:
        if principal:
            raise InvalidInput("--principal needs --keytab")
        return None
    return KeytabPlace(principal or _owner(keytab), str(keytab))


def _owner(keytab: Path) -> str:
    try:
        return only_principal(str(keytab))
    except CredentialError:
        # A keytab that can't be read is a finding like any other.
        return ""


app = typer.Typer(no_args_is_help=True, help="Kerberos tickets: list, renew, show; their keytabs: check.")
app.command()(check)

Principals = Annotated[
    list[str] | None, typer.Option("--principal", "-p", help="Only this principal's ticket. Can be repeated.")
]
Force = Annotated[bool, typer.Option("--force", help="Also renew tickets that are fresh enough.")]
Cache = Annotated[str, typer.Argument(metavar="CACHE", help="FILE:/path, /path, DIR:/folder, /folder or MEMORY:name.")]

_ALERT = 1


@app.command(name="list")
def list_(
    cluster_name: ClusterOption,
    declaration: DeclarationOption = None,
    principal: Principals = None,
    as_json: JsonOption = False,
) -> None:
    """List the tickets that are kept fresh. Reads local caches only. Use --json for paths and flags.

    Exit 1 if a ticket is about to expire, expired or missing.
    """
    with _kept(cluster_name, declaration, principal) as (kept, policy):
        statuses = [ticket_status(ticket, policy) for ticket in kept]
    now = datetime.now(UTC)
    if as_json:
        print_json([status.to_json(now) for status in statuses])
    else:
        show(ticket_views.statuses_table(statuses, now))
        for line in ticket_views.troubles(statuses, now):
            show(line)
    if any(status.alert for status in statuses):
        raise typer.Exit(_ALERT)


@app.command()
def renew(
    cluster_name: ClusterOption,
    declaration: DeclarationOption = None,
    principal: Principals = None,
    force: Force = False,
    as_json: JsonOption = False,
) -> None:
    """Renew the tickets that are due: by keytab if there is one, else by the ticket's own renewability.

    One failed renewal does not affect others. Exit 1 if one failed whose ticket is about to expire, expired or
    missing; while the old ticket is fresh enough, a failure is reported and counted.
    """
    with _kept(cluster_name, declaration, principal) as (kept, policy):
        reports = []
        for report in renew_all(kept, policy, force=force):
            reports.append(report)
            if not as_json:
                show(ticket_views.report_line(report, datetime.now(UTC)))
    if as_json:
        print_json([report.to_json() for report in reports])
    if any(report.alert for report in reports):
        raise typer.Exit(_ALERT)


@app.command(name="show")
def show_(cache: Cache, as_json: JsonOption = False) -> None:
    """Show every ticket of a cache, or of each cache in a folder: its service, times and key. Needs no cluster.

    Exit 1 if a folder has no cache, or one can't be read or has no ticket in it; 2 if there is no such path.
    """
    _require_there(cache)
    caches = list(_caches(cache))
    now = datetime.now(UTC)
    if as_json:
        print_json([ticket_views.cache_json(read, now) for read in caches])
    else:
        for read in caches:
            show(ticket_views.cache_view(read, now))
    if not all(isinstance(read, TicketCache) and read.tickets for read in caches):
        raise typer.Exit(_ALERT)


def _require_there(cache: str) -> None:
    kind, rest = split_cache_name(cache)
    if kind in {CacheKind.FILE, CacheKind.DIR}:
        # A member of a collection, as libkrb5 names it: DIR::/folder/tktabc.
        require_there(Path(rest.removeprefix(":")))


def _caches(cache: str) -> Iterator[TicketCache | KstreamError]:
    """Read one cache, or each in a folder. Raises CredentialError: when the one cache can't be read."""
    names = tickets.members(cache)
    for name in names:
        try:
            yield tickets.inspect(name)
        except KstreamError as error:
            if names == (cache,):
                raise
            # An unreadable cache hides no other in its folder.
            yield error


@contextmanager
def _kept(
    cluster_name: str, path: Path | None, principals: list[str] | None
) -> Iterator[tuple[tuple[ManagedTicket, ...], RenewalPolicy]]:
    written = written_declaration(cluster_name, path)
    # The cluster stays open meanwhile: only then is a keytab from the connection a file.
    with opened(cluster_name) as cluster:
        yield _only(written.kept(cluster), principals or []), written.declaration.policy


def _only(kept: tuple[ManagedTicket, ...], principals: list[str]) -> tuple[ManagedTicket, ...]:
    known = {ticket.principal for ticket in kept}
    unknown = [principal for principal in principals if principal not in known]
    if unknown:
        declared = ", ".join(sorted(known))
        raise InvalidInput(f"--principal {', '.join(unknown)} is not declared; it has {declared}")
    return tuple(ticket for ticket in kept if not principals or ticket.principal in principals)


add_declarations(app, TICKETS)
