"""`kstream leases ...`: files that are open for write: see, explain, recover, and what was done before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console

from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.lease_progress import ProgressDisplay
from airflow_kstream.model.durations import parse_duration
from airflow_kstream.model.lease import LeaseRules
from airflow_kstream.model.printable import printable
from airflow_kstream.supervise.leases.journal import read_journal
from airflow_kstream.supervise.leases.recover import Backend, RecoveryReport, recover_stuck_files
from airflow_kstream.supervise.leases.requests import LimitsName, OpenFileFilter, RecoveryRequest
from airflow_kstream.supervise.leases.scan_history import lease_folder
from airflow_kstream.supervise.leases.session import LeaseSession, open_lease_session
from airflow_kstream.supervise.leases.survey import Surveyor
from airflow_kstream.views import leases as lease_views
from airflow_kstream.views.lease_details import closed_json, explanation, history_json, history_table

app = typer.Typer(no_args_is_help=True, help="Files open for write: list, explain, recover, history.")

HdfsPath = Annotated[str, typer.Argument(help="An absolute HDFS folder or file.")]
Patterns = Annotated[
    list[str] | None,
    typer.Option("--pattern", help="A shell pattern of the name, or of the whole path where it has a slash. Repeat."),
]
Allowed = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="PATTERN[=APPLICATION]",
        help="Files whose holder lives may be recovered here once their application (an id, or a stream's name) is "
        "finished. Repeat. In the last part of a path write [=] for an = of its own.",
    ),
]
Approved = Annotated[
    list[str] | None,
    typer.Option("--approve", metavar="PATH", help="Recover this very file although its holder lives. Repeat."),
]
ApprovedBy = Annotated[str | None, typer.Option("--approved-by", metavar="NAME", help="Who decided that.")]
Owner = Annotated[str | None, typer.Option(help="Only files of this owner.")]
Holder = Annotated[str | None, typer.Option(help="Only files that this client name holds.")]
Host = Annotated[str | None, typer.Option(help="Only files of clients on this host.")]
LeakAfter = Annotated[str, typer.Option("--leak-after", help="Unchanged for so long, a living holder's file leaks.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]

_YOUNGER = "Leave files alone that were opened later, however dead their holder is: with 0s none is too young."
_LISTED = "Only files opened so long ago, such as 10m. What recover leaves alone as young is its own --min-age."
_SOMETHING_LEFT = 1
# Of the thousands that one command may recover; --json has them all.
_ROWS = 100


@app.command("list")
def list_(
    cluster: ClusterOption,
    path: HdfsPath,
    patterns: Patterns = None,
    min_age: Annotated[str, typer.Option("--min-age", help=_LISTED)] = "0s",
    owner: Owner = None,
    holder: Holder = None,
    host: Host = None,
    as_json: AsJson = False,
) -> None:
    """The open files below a path, and what is thought of each. Touches no lease.

    What is seen is kept in state_dir: the second look tells how long a file is unchanged. A superuser asks the
    NameNode for its leases; for anybody else the tree is walked (fsck), and the holders are not known.
    """
    meant = OpenFileFilter(path=path, patterns=tuple(patterns or ()), owner=owner, holder=holder, host=host)
    search = meant.search(parse_duration(min_age))
    with opened(cluster) as found, open_lease_session(found, found.watcher) as session:
        survey = Surveyor(session, search, LeaseRules(), _aside).look()
    if as_json:
        _print_json(survey.to_json())
        return
    Console().print(lease_views.findings_table(survey.findings, survey.at))
    for hint in lease_views.hints(survey.findings):
        _aside(hint)
    _tell_unreadable(survey.unreadable)


@app.command()
def explain(
    cluster: ClusterOption,
    path: Annotated[str, typer.Argument(help="An absolute HDFS path of a file.")],
    allow: Allowed = None,
    approve: Approved = None,
    approved_by: ApprovedBy = None,
    min_age: Annotated[str, typer.Option("--min-age", help="As for recover.")] = "10m",
    leak_after: LeakAfter = "1h",
    as_json: AsJson = False,
) -> None:
    """All that is known of one file, and what recover would do. Touches no lease; looks twice, 10 s apart."""
    meant = RecoveryRequest.from_mapping(
        {
            "path": path,
            "allowed": allow,
            "approve": approve,
            "approved_by": approved_by,
            "min_age": min_age,
            "leak_after": leak_after,
            "dry_run": True,
        }
    )
    with _following(cluster) as (session, follower):
        done = recover_stuck_files(session, meant.settings(), follower.watcher)
        # Only an open file is found; of any other the NameNode is asked, who says NotFound or Denied in his words.
        state = None if done.intents else session.web.state(path)
    if as_json:
        is_open = bool(done.intents) or bool(state and state.is_open)
        file = closed_json(state) if state and not is_open else None
        _print_json({"path": path, "open": is_open, "file": file, **done.to_json()})
        return
    Console().print(explanation(done, state))
    _tell_unreadable(done.survey.unreadable)


@app.command()
def recover(
    cluster: ClusterOption,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Absolute HDFS folders or files.")],
    patterns: Patterns = None,
    allow: Allowed = None,
    approve: Approved = None,
    approved_by: ApprovedBy = None,
    min_age: Annotated[str, typer.Option("--min-age", help=_YOUNGER)] = "10m",
    leak_after: LeakAfter = "1h",
    owner: Owner = None,
    holder: Holder = None,
    host: Host = None,
    limits: Annotated[
        LimitsName, typer.Option(help="unlimited: no concurrency limits; use with care.")
    ] = LimitsName.DEFAULT,
    backend: Annotated[
        Backend, typer.Option(help="native, or hdfs debug recoverLease, a JVM a file.")
    ] = Backend.NATIVE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, touch no lease.")] = False,
    as_json: AsJson = False,
) -> None:
    """Close the files that are stuck open, as far as that is allowed.

    Never by age alone and never one that grows. A dead holder's files are recovered; a living holder's only with
    --allow or --approve. Every action leaves a record: `kstream leases history`.

    Files that are younger than --min-age, that grow, or whose holder renewed the lease within the last minute are
    left open, with a row that says so: a holder counts as dead 60 s after it last renewed.

    Exit 0: nothing stuck is left. 1: something could not be recovered, or is stuck and was left alone, or nobody
    could learn whether its holder lives, such as for want of the right to write it. 2: wrong input. 130: ended by
    Ctrl-C, after saying what was done.
    """
    shared = {
        "patterns": patterns,
        "allowed": allow,
        "approve": approve,
        "approved_by": approved_by,
        "min_age": min_age,
        "leak_after": leak_after,
        "owner": owner,
        "holder": holder,
        "host": host,
        "limits": limits,
        "backend": backend,
        "dry_run": dry_run,
    }
    orders = {path: RecoveryRequest.from_mapping({**shared, "path": path}).settings() for path in paths}
    done: dict[str, RecoveryReport] = {}
    try:
        with _following(cluster) as (session, follower):
            for path, settings in orders.items():
                if follower.exit_code is None:
                    done[path] = recover_stuck_files(session, settings, follower.watcher)
    finally:
        # Also when a later path failed: what was done is told.
        _tell_done(orders, done, as_json=as_json, dry_run=dry_run)
    left = any(each.incomplete or (not dry_run and lease_views.left_alone(each)) for each in done.values())
    raise typer.Exit(follower.exit_code or (_SOMETHING_LEFT if left else 0))


@app.command()
def history(
    cluster: ClusterOption,
    since: Annotated[str, typer.Option("--since", help="How far back, such as 7d or 12h.")] = "7d",
    as_json: AsJson = False,
) -> None:
    """What was done to leases by this principal, from the records in state_dir."""
    back = parse_duration(since)
    with opened(cluster) as found, open_lease_session(found, found.watcher) as session:
        hdfs = session.base.hdfs
        folder = lease_folder(found.state_dir, found.watcher)
        records = list(read_journal(hdfs, folder, hdfs.now() - back))
    if as_json:
        _print_json(history_json(records))
        return
    Console().print(history_table(records))


@contextmanager
def _following(cluster: str) -> Iterator[tuple[LeaseSession, ProgressDisplay]]:
    with (
        opened(cluster) as found,
        open_lease_session(found, found.watcher) as session,
        ProgressDisplay(Console(stderr=True)).showing_progress() as follower,
    ):
        yield session, follower


def _tell_done(paths: Any, done: dict[str, RecoveryReport], *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        _print_json([{"path": path, **each.to_json()} for path, each in done.items()])
    for path, each in done.items():
        if not as_json:
            _tell_tables(each, dry_run=dry_run)
        _aside(f"{path}: {lease_views.summary(each)}")
        _tell_unreadable(each.survey.unreadable)
    for path in paths:
        if path not in done:
            _aside(f"{path}: it was not looked at")


def _tell_tables(done: RecoveryReport, *, dry_run: bool) -> None:
    if dry_run and done.intents:
        Console().print(lease_views.intents_table(done.intents, _ROWS))
    if done.recoveries:
        Console().print(lease_views.recoveries_table(done.recoveries, _ROWS))
    kept = lease_views.left_open(done)
    if kept and not dry_run:
        Console().print(lease_views.intents_table(kept, _ROWS))


def _tell_unreadable(unreadable: Any) -> None:
    for path, why in unreadable.items():
        _aside(f"{path} is open, and no more is known: {why}")


def _aside(line: str) -> None:
    Console(stderr=True).print(printable(line), markup=False, highlight=False, soft_wrap=True)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=1))
