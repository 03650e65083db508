"""`kstream tokens ...`: whose tokens a file holds and how long they live; renew, cancel or push one; the lives of
tokens from a ResourceManager's logs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.declarations import add_declarations
from airflow_kstream.cli.output import JsonOption, note, print_json, say, show
from airflow_kstream.cli.stream_options import checked_application, checked_target
from airflow_kstream.cli.triage import Html, TimeZone
from airflow_kstream.clients.local.credential_files import read_credentials
from airflow_kstream.clients.local.private import write_private
from airflow_kstream.clients.spark import find_spark_submit
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.declaration_kinds import TOKENS
from airflow_kstream.model.errors import InvalidInput, KstreamError
from airflow_kstream.model.fields import SPARK_BINARIES, is_application_id
from airflow_kstream.model.kerberos.identity import Identity
from airflow_kstream.supervise.clusters.session import ClusterSession, open_session
from airflow_kstream.supervise.tokens import files
from airflow_kstream.supervise.tokens.files import CheckedFile, ChosenToken
from airflow_kstream.supervise.tokens.launch import launch_tokens
from airflow_kstream.supervise.tokens.push import HandPush, is_over, push_by_hand
from airflow_kstream.supervise.triage.look import zone_of
from airflow_kstream.supervise.triage.scan import histories_in
from airflow_kstream.views import tokens as token_views
from airflow_kstream.views.tables import moment
from airflow_kstream.views.tokens import events_table, histories_page, history_lines

Logs = Annotated[
    Path, typer.Argument(metavar="LOGS", help="A ResourceManager's or NameNode's log, or a folder of them.")
]
Application = Annotated[
    str | None, typer.Option("--application-id", metavar="APPLICATION", help="Only the tokens of this application.")
]


def history(
    logs: Logs,
    application: Application = None,
    time_zone: TimeZone = None,
    html: Html = None,
    as_json: JsonOption = False,
) -> None:
    """Show when each token was issued, submitted and renewed, its max date, and its end, from log lines.

    Its renewals come at 90 % of the time that is left, until one gives no later end than the one before.
    """
    histories = histories_in(logs, application, zone_of(time_zone))
    if html:
        write_private(html, histories_page(histories, logs.name).encode())
    if as_json:
        print_json([each.to_json() for each in histories])
        return
    for each in histories:
        for line in history_lines(each):
            say(line)
        show(events_table(each))


app = typer.Typer(no_args_is_help=True, help="Hadoop's delegation tokens: show, history, renew, cancel, push.")
app.command()(history)

# `cancel` and `push` read no environment variable: their caller must name the cluster.
ExplicitCluster = Annotated[
    str, typer.Option("--cluster", "-c", help="As for other commands, but never from KSTREAM_CLUSTER.")
]
FileOrApplication = Annotated[
    str,
    typer.Argument(
        metavar="FILE|APPLICATION",
        callback=checked_target,
        help="A credentials file, or an application's id, such as application_1700000000000_0001.",
    ),
]
File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", exists=True, dir_okay=False, help="A credentials file, or a text file with one URL string."
    ),
]
Alias = Annotated[
    str | None, typer.Option(help="The token's alias; needed if the file holds several tokens from NameNodes.")
]
Principal = Annotated[
    str | None, typer.Option("--as", metavar="PRINCIPAL", help="Act as this principal, not as the connection's own.")
]
Keytab = Annotated[str | None, typer.Option(help="The keytab of --as.")]
TicketCache = Annotated[str | None, typer.Option(help="The ticket cache of --as, if it has no keytab.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print which token it would be; contact no server.")]

# After a failure of a push that is repeated.
_RETRY_SECONDS = 60.0


@app.command(name="show")
def show_(target: FileOrApplication, cluster_name: ClusterOption = "", as_json: JsonOption = False) -> None:
    """Show the tokens in a file: whose they are and when they end. Passwords are never shown.

    With --cluster also whether the NameNode still accepts the tokens that it issued; asking changes nothing. An
    application's tokens can't be seen from outside: for one, this shows what its stream's claim and the cluster's
    lifetimes tell.
    """
    if is_application_id(target):
        _show_application(target, cluster_name, as_json=as_json)
    else:
        _show_file(Path(target), cluster_name, as_json=as_json)


@app.command()
def renew(
    cluster_name: ClusterOption,
    file: File,
    alias: Alias = None,
    principal: Principal = None,
    keytab: Keytab = None,
    ticket_cache: TicketCache = None,
) -> None:
    """Renew a token that a NameNode issued, as its renewer. The file stays as it is: it does not hold the new end."""
    with _chosen(cluster_name, _identity(principal, keytab, ticket_cache), file, alias) as (session, token):
        until = files.renew(session, token)
        now = session.hdfs.now()
    end = token.identifier.max_date
    say(f"{token.name} is good until {moment(until, now)}")
    say(f"it can't be renewed beyond {moment(end, now)}{': this was the last time' if until >= end else ''}")


@app.command()
def cancel(
    cluster_name: ExplicitCluster,
    file: File,
    alias: Alias = None,
    principal: Principal = None,
    keytab: Keytab = None,
    ticket_cache: TicketCache = None,
    dry_run: DryRun = False,
) -> None:
    """Cancel a token that a NameNode issued, as its owner or renewer. Everyone who holds it is refused from then on."""
    with _chosen(cluster_name, _identity(principal, keytab, ticket_cache), file, alias) as (session, token):
        if dry_run:
            say(f"would cancel {token.name} on cluster {session.cluster.name} as {session.identity}")
            return
        known = files.cancel(session, token)
    say(f"{token.name} " + ("is cancelled" if known else "was cancelled or forgotten before"))


@app.command()
def push(
    cluster_name: ExplicitCluster,
    application_id: Annotated[
        str,
        typer.Option(metavar="APPLICATION", callback=checked_application, help="The running Spark application's id."),
    ],
    principal: Principal = None,
    keytab: Keytab = None,
    ticket_cache: TicketCache = None,
    spark_submit: Annotated[
        str, typer.Option(help="A client of the job's own Spark version: a name on PATH, or a path.")
    ] = SPARK_BINARIES[0],
    shorten: Annotated[
        bool, typer.Option("--shorten", help="Push although the fresh token ends before the present one.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep pushing, after each half of a token's life, until the job ends.")
    ] = False,
) -> None:
    """Give a running Spark job without a keytab a fresh HDFS token, over Spark's own RPC. The job needs no preparation.

    For a job that somebody else submitted, whose token ends soon, and that must not be restarted. The ResourceManager
    renews what was submitted and nothing else, so it has to be pushed again: this says by when. It needs a way to the
    driver's port and to its web UI, and can't reach a job with spark.authenticate. A declared stream with
    `credentials: {refresh: true}` needs none of this.

    A token is made only for the user as whom YARN runs the job. It crosses the network in clear, by Spark's RPC, to the
    host that the job names in its web UI: who can listen there can act as that user on HDFS.
    """
    with opened(cluster_name) as cluster:
        identity = _identity(principal, keytab, ticket_cache) or cluster.watcher
        binary = find_spark_submit(spark_submit)
        for pushed in _pushes(cluster, identity, application_id, binary, shorten=shorten, keep=keep):
            _say_pushed(pushed)


def _pushes(
    cluster: Cluster, identity: Identity, application_id: str, binary: str, *, shorten: bool, keep: bool
) -> Iterator[HandPush]:
    """Yield each push. After a failure of a later one, another try follows while its token lives.

    Raises that failure: when its token has ended. Raises NotFound: when YARN has forgotten the application, as it does
    with the oldest of those that ended.
    """
    with open_session(cluster, identity) as session:
        pushed = push_by_hand(session, application_id, binary, shorten=shorten)
    yield pushed
    while keep:
        _wait_until(pushed.again_by, pushed.end)
        try:
            with open_session(cluster, identity) as session:
                if not session.yarn.application(application_id).alive:
                    say(f"{application_id} has ended")
                    return
                pushed = push_by_hand(session, application_id, binary, shorten=True)
        except KstreamError as error:
            now = datetime.now(UTC)
            note(f"not pushed: {error}; its token ends {moment(pushed.end, now)}")
            if is_over(error, pushed.end, now):
                raise
            continue
        yield pushed


def _wait_until(due: datetime, end: datetime) -> None:
    """Wait for the next push. Ctrl-C says by when somebody else has to push."""
    now = datetime.now(UTC)
    try:
        time.sleep(max((due - now).total_seconds(), _RETRY_SECONDS))
    except KeyboardInterrupt:
        note(f"nobody pushes any longer; its token ends {moment(end, datetime.now(UTC))}")
        raise


def _say_pushed(pushed: HandPush) -> None:
    now, where = pushed.new.issued, f", recorded for stream {pushed.stream}" if pushed.stream else ""
    say(f"{pushed.application.id} of {pushed.application.user} uses token {pushed.new.sequence_number} now{where}")
    say(f"before: token {pushed.old.sequence_number}, until {moment(pushed.old_end, now)} at the latest")
    for service in pushed.others:
        say(f"its token of {service} was replaced as well")
    say(f"now: until {moment(pushed.end, now)}; push again by {moment(pushed.again_by, now)}, or use --keep")


def _show_file(path: Path, cluster_name: str, *, as_json: bool) -> None:
    file = read_credentials(path)
    validities: tuple[files.TokenValidity, ...] = ()
    if cluster_name:
        with opened(cluster_name) as cluster:
            validities = tuple(files.validities(cluster, file))
    checked = CheckedFile(file, datetime.now(UTC), validities)
    for warning in file.warnings:
        note(f"{path}: {warning}")
    if as_json:
        print_json(checked.to_json())
        return
    show(token_views.tokens_table(checked))
    if file.credentials.secret_keys:
        show(token_views.secret_keys_table(file.credentials.secret_keys))


def _show_application(application_id: str, cluster_name: str, *, as_json: bool) -> None:
    if not cluster_name:
        raise InvalidInput(f"{application_id} can only be looked up with --cluster")
    with opened(cluster_name) as cluster, open_session(cluster, cluster.watcher) as session:
        launch = launch_tokens(session, application_id)
    if as_json:
        print_json(launch.to_json())
    else:
        show(token_views.launch_table(launch))


@contextmanager
def _chosen(
    cluster_name: str, identity: Identity | None, file: Path, alias: str | None
) -> Iterator[tuple[ClusterSession, ChosenToken]]:
    with opened(cluster_name) as cluster:
        token = files.choose(cluster, file, alias)
        with open_session(cluster, identity or cluster.watcher) as session:
            yield session, token


def _identity(principal: str | None, keytab: str | None, ticket_cache: str | None) -> Identity | None:
    if (principal is None) != (keytab is None and ticket_cache is None):
        raise InvalidInput("--as needs --keytab or --ticket-cache, and these need --as")
    return Identity(principal, keytab, ticket_cache) if principal else None


add_declarations(app, TOKENS)
