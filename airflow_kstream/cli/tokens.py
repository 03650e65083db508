"""`kstream tokens ...`: whose tokens a file holds and how long they live; renew one, cancel one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.clients.local.credential_files import read_credentials
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.identity import Identity
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.tokens import files
from airflow_kstream.supervise.tokens.files import ChosenToken
from airflow_kstream.supervise.tokens.launch import launch_tokens
from airflow_kstream.views import tokens as token_views

app = typer.Typer(no_args_is_help=True, help="Tokens of Hadoop: show, renew, cancel.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="A credentials file, or a text with one URL string.")]
Alias = Annotated[str | None, typer.Option(help="Which token of the file; needed where NameNodes issued several.")]
Principal = Annotated[
    str | None, typer.Option("--as", metavar="PRINCIPAL", help="Who asks, if not the connection's own principal.")
]
Keytab = Annotated[str | None, typer.Option(help="The keytab of --as.")]
TicketCache = Annotated[str | None, typer.Option(help="The ticket cache of --as, where it has no keytab.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]

_APPLICATION = re.compile(r"application_\d+_\d+")


@app.command()
def show(
    what: Annotated[str, typer.Argument(metavar="FILE|APPLICATION", help="A credentials file, or application_1_0001.")],
    cluster: ClusterOption = "",
    as_json: AsJson = False,
) -> None:
    """The tokens in a file: whose they are, when they end whoever renews them. Passwords are never shown.

    With --cluster also whether the NameNode honours those that it issued; nothing changes by asking. Of an
    application, what its stream's claim and the cluster's lifetimes tell: nobody outside of it sees its tokens.
    """
    if _APPLICATION.fullmatch(what):
        _show_application(what, cluster, as_json=as_json)
    else:
        _show_file(Path(what), cluster, as_json=as_json)


@app.command()
def renew(
    cluster: ClusterOption,
    file: File,
    alias: Alias = None,
    principal: Principal = None,
    keytab: Keytab = None,
    ticket_cache: TicketCache = None,
) -> None:
    """Renew a token that a NameNode issued, as its renewer. The file stays as it is: it does not hold the new end."""
    with _chosen(cluster, _identity(principal, keytab, ticket_cache), file, alias) as (session, chosen):
        until = files.renew(session, chosen)
        now = session.hdfs.now()
    typer.echo(f"{chosen.name} is good until {token_views.moment(until, now)}")
    last = ": this was the last time" if until >= chosen.identifier.max_date else ""
    typer.echo(f"nothing renews it beyond {token_views.moment(chosen.identifier.max_date, now)}{last}")


@app.command()
def cancel(
    # Not by KSTREAM_CLUSTER either: who cancels says where.
    cluster: Annotated[str, typer.Option("--cluster", "-c", help="As elsewhere, and never from the environment.")],
    file: File,
    alias: Alias = None,
    principal: Principal = None,
    keytab: Keytab = None,
    ticket_cache: TicketCache = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which token it would be, and ask nobody.")] = False,
) -> None:
    """Cancel a token that a NameNode issued, as its owner or renewer: whoever holds it is refused from then on."""
    with _chosen(cluster, _identity(principal, keytab, ticket_cache), file, alias) as (session, chosen):
        if dry_run:
            typer.echo(f"would cancel {chosen.name} on cluster {session.cluster.name} as {session.identity}")
            return
        known = files.cancel(session, chosen)
    typer.echo(f"{chosen.name} " + ("is cancelled" if known else "was cancelled or forgotten before"))


def _show_file(path: Path, cluster: str, *, as_json: bool) -> None:
    file = read_credentials(path)
    standings: list[files.TokenValidity] = []
    if cluster:
        with opened(cluster) as found:
            standings = list(files.standings(found, file))
    now = datetime.now(UTC)
    for warning in file.warnings:
        _aside(f"{path}: {warning}")
    if as_json:
        _print_json(token_views.file_json(file, standings, now))
        return
    Console().print(token_views.tokens_table(file, standings, now))
    if file.credentials.secret_keys:
        Console().print(token_views.secret_keys_table(file))


def _show_application(application_id: str, cluster: str, *, as_json: bool) -> None:
    if not cluster:
        raise InvalidInput(f"{application_id} can be looked up with --cluster only")
    with opened(cluster) as found, open_session(found, found.watcher) as session:
        launch = launch_tokens(session, application_id)
    if as_json:
        _print_json(token_views.launch_json(launch))
        return
    Console().print(token_views.launch_table(launch))


@contextmanager
def _chosen(
    cluster: str, identity: Identity | None, file: Path, alias: str | None
) -> Iterator[tuple[ClusterSession, ChosenToken]]:
    with opened(cluster) as found:
        chosen = files.choose(found, file, alias)
        with open_session(found, identity or found.watcher) as session:
            yield session, chosen


def _identity(principal: str | None, keytab: str | None, ticket_cache: str | None) -> Identity | None:
    if (principal is None) != (keytab is None and ticket_cache is None):
        raise InvalidInput("--as needs --keytab or --ticket-cache, and these need --as")
    return Identity(principal, keytab, ticket_cache) if principal else None


def _aside(line: str) -> None:
    Console(stderr=True).print(line, markup=False, highlight=False, soft_wrap=True)


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=1))
