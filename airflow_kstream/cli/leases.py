"""`kstream leases ...`: files that are open for write: list, explain, recover, and the history of recoveries."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from airflow_kstream.cli import lease_options as options
from airflow_kstream.cli.clusters import ClusterOption, opened
from airflow_kstream.cli.declarations import add_declarations
from airflow_kstream.cli.output import JsonOption, note, print_json, show
from airflow_kstream.model.clusters.hdfs_path import checked_path, is_below, plain_path
from airflow_kstream.model.declaration_kinds import LEASES
from airflow_kstream.model.leases.lease import LeaseRules, Recovery
from airflow_kstream.model.leases.requests import Backend, LimitsName, OpenFileFilter, RecoveryRequest
from airflow_kstream.model.printable import printable
from airflow_kstream.supervise.leases.executor import Watcher
from airflow_kstream.supervise.leases.journal import read_journal
from airflow_kstream.supervise.leases.own_files import OwnFiles
from airflow_kstream.supervise.leases.recover import RecoveryReport, recover_stuck_files
from airflow_kstream.supervise.leases.session import LeaseSession, open_lease_session
from airflow_kstream.supervise.leases.survey import Surveyor
from airflow_kstream.views import leases as lease_views
from airflow_kstream.views.leases import Explanation, history_table

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class ProgressDisplay:
    """The progress of a recovery, on standard error: a bar on a terminal, and lines in any case.

    The first Ctrl-C (or SIGTERM) stops the recovery from starting anything more; the second ends the program at once.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stop = threading.Event()
        self._signal: int | None = None
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("scanning", total=None)
        self._total = 0
        self._unsettled = 0

    @property
    def exit_code(self) -> int | None:
        """Return the exit code by which a shell names the signal that arrived, None if none did."""
        return None if self._signal is None else 128 + self._signal

    @property
    def watcher(self) -> Watcher:
        return Watcher(tell=self.tell, on=self._finished, started=self._started, stop=self._stop)

    def tell(self, line: str) -> None:
        self._console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def showing_progress(self) -> Iterator[ProgressDisplay]:
        before = {number: signal.signal(number, self._interrupted) for number in _SIGNALS}
        try:
            with self._bar:
                yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _started(self, files: int) -> None:
        self._total += files
        self._bar.update(self._task, description="recovering", total=self._total)

    def _finished(self, recovery: Recovery) -> None:
        self._unsettled += not recovery.outcome.settled
        failed = f", {self._unsettled} failed" if self._unsettled else ""
        self._bar.update(self._task, description=f"recovering{failed}", advance=1)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        self._stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.tell("stopping after a final check of recoveries in progress; press Ctrl-C again to quit now")


app = typer.Typer(no_args_is_help=True, help="Files open for write: list, explain, recover, history.")

_SOMETHING_LEFT = 1
# One command may recover thousands; --json prints them all.
_ROWS = 100


@app.command("list")
def list_(
    cluster_name: ClusterOption,
    path: options.Folder,
    patterns: options.Patterns = None,
    min_age: options.OpenFor = "0s",
    owner: options.Owner = None,
    holder: options.Holder = None,
    host: options.Host = None,
    as_json: JsonOption = False,
) -> None:
    """List the open files below a path, with the condition of each; a hundred of them, or all with --json. Touches no
    lease.

    Each listing is kept in state_dir: the second one tells how long a file has been unchanged. For a superuser the
    NameNode lists its leases; for other users the folder is walked (fsck), and the holders' hosts are not known.
    """
    wanted = OpenFileFilter(path=path, patterns=tuple(patterns or ()), owner=owner, holder=holder, host=host)
    search = wanted.search(options.duration("--min-age", min_age))
    with opened(cluster_name) as cluster, open_lease_session(cluster, cluster.watcher) as session:
        survey = Surveyor(session, search, LeaseRules(), _note_about_names).scan()
    if as_json:
        print_json(survey.to_print())
        return
    if survey.findings:
        show(lease_views.findings_table(survey.findings, survey.at, _ROWS))
    elif not survey.unreadable:
        which = "" if search == OpenFileFilter(path=path).search() else "such "
        note(f"no {which}file is open for write below {printable(path)}")
    for hint in lease_views.hints(survey.findings):
        note(hint)
    _note_unreadable(survey.unreadable)


@app.command()
def explain(
    cluster_name: ClusterOption,
    path: options.File,
    allow: options.Allowed = None,
    approve: options.Approved = None,
    approved_by: options.ApprovedBy = None,
    min_age: options.NotYounger = "10m",
    leak_after: options.LeakAfter = "1h",
    as_json: JsonOption = False,
) -> None:
    """Show all that is known of one file, and what recover would do. Touches no lease; checks twice, 10 s apart."""
    request = RecoveryRequest(
        path=path,
        allowed=tuple(allow or ()),
        approve=tuple(approve or ()),
        approved_by=approved_by,
        min_age=options.duration("--min-age", min_age),
        leak_after=options.duration("--leak-after", leak_after),
        dry_run=True,
    )
    with _recovering(cluster_name) as (session, progress):
        report = recover_stuck_files(session, request.settings(), progress.watcher)
        # The search finds open files only. For any other, the NameNode returns the state, NotFound or Denied.
        state = None if report.intents else session.web.state(path)
    explanation = Explanation(path, report, state)
    if as_json:
        print_json(explanation.to_json())
        return
    show(explanation.table())
    _note_unreadable(report.survey.unreadable)


@app.command()
def recover(
    cluster_name: ClusterOption,
    paths: options.Folders,
    patterns: options.Patterns = None,
    allow: options.Allowed = None,
    approve: options.Approved = None,
    approved_by: options.ApprovedBy = None,
    min_age: options.NotYounger = "10m",
    leak_after: options.LeakAfter = "1h",
    owner: options.Owner = None,
    holder: options.Holder = None,
    host: options.Host = None,
    limits: options.Limits = LimitsName.DEFAULT,
    per_datanode: options.PerDatanode = None,
    in_all: options.InAll = None,
    deadline: options.Deadline = "15m",
    backend: options.WhichBackend = Backend.NATIVE,
    dry_run: options.DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Close the files that are stuck open, as far as that is allowed.

    Age alone is never a reason, and a growing file is never touched. A dead holder's files are recovered; a living
    holder's only with --allow or --approve. Every action is recorded: `kstream leases history`.

    Two looks, 10 s apart, show that a file does not grow, unless an earlier run has looked at it. Files are recovered
    as soon as that is known of them. Another run of the same principal at the same files is waited for.

    Files that are younger than --min-age, that grow, or whose holder renewed the lease within the last minute are
    left open, each with a row that says so: a holder counts as dead 60 s after its last renewal.

    Exit 0: nothing stuck is left. 1: a file could not be recovered, or is stuck and was left alone, or its holder
    could not be probed, for example because the principal may not write the file. 2: wrong input. 130: interrupted by
    Ctrl-C, after reporting what was done.
    """
    requests = [
        RecoveryRequest(
            path=path,
            patterns=tuple(patterns or ()),
            allowed=tuple(allow or ()),
            approve=tuple(approve or ()),
            approved_by=approved_by,
            min_age=options.duration("--min-age", min_age),
            leak_after=options.duration("--leak-after", leak_after),
            owner=owner,
            holder=holder,
            host=host,
            limits=limits,
            per_datanode=per_datanode,
            in_all=in_all,
            deadline=options.duration("--deadline", deadline),
            backend=backend,
            dry_run=dry_run,
        )
        for path in paths
    ]
    raise typer.Exit(_recover(cluster_name, requests, as_json=as_json))


@app.command()
def history(
    cluster_name: ClusterOption, paths: options.Below = None, since: options.Since = "7d", as_json: JsonOption = False
) -> None:
    """Show what was done to leases as this principal, from its own journal in state_dir. HDFS's owner of each record
    comes before what the record says of its author."""
    age = options.duration("--since", since)
    roots = [checked_path(plain_path(path)) for path in paths or ("/",)]
    with opened(cluster_name) as cluster, open_lease_session(cluster, cluster.watcher) as session:
        hdfs = session.base.hdfs
        journal = read_journal(OwnFiles(hdfs, note), session.folder, hdfs.now() - age)
        records = [record for record in journal if any(is_below(root, record.path) for root in roots)]
    if as_json:
        print_json([record.to_json() for record in records])
    else:
        show(history_table(records))


@contextmanager
def _recovering(cluster_name: str) -> Iterator[tuple[LeaseSession, ProgressDisplay]]:
    with (
        opened(cluster_name) as cluster,
        open_lease_session(cluster, cluster.watcher) as session,
        ProgressDisplay(Console(stderr=True)).showing_progress() as progress,
    ):
        yield session, progress


def _recover(cluster_name: str, requests: Sequence[RecoveryRequest], *, as_json: bool) -> int:
    """Carry out the requests one after the other, print what was done, and return the exit code."""
    settings = {request.path: request.settings() for request in requests}
    dry_run = any(request.dry_run for request in requests)
    reports: dict[str, RecoveryReport] = {}
    try:
        with _recovering(cluster_name) as (session, progress):
            for path in settings:
                if progress.exit_code is None:
                    reports[path] = recover_stuck_files(session, settings[path], progress.watcher)
    finally:
        # Also if a later path failed: the report covers what was done.
        _print_reports(settings, reports, as_json=as_json, dry_run=dry_run)
    left = any(report.incomplete or (not dry_run and lease_views.left_alone(report)) for report in reports.values())
    return progress.exit_code or (_SOMETHING_LEFT if left else 0)


def _print_reports(
    paths: Iterable[str], reports: Mapping[str, RecoveryReport], *, as_json: bool, dry_run: bool
) -> None:
    if as_json:
        print_json([{"path": path, **report.to_print()} for path, report in reports.items()])
    for path, report in reports.items():
        if not as_json:
            _show_tables(report, dry_run=dry_run)
        _note_about_names(f"{path}: {lease_views.summary(report)}")
        if hint := lease_views.skipped(report):
            note(hint)
        _note_unreadable(report.survey.unreadable)
    for path in paths:
        if path not in reports:
            _note_about_names(f"{path}: not processed")


def _show_tables(report: RecoveryReport, *, dry_run: bool) -> None:
    if dry_run and report.intents:
        show(lease_views.intents_table(report.intents, _ROWS))
    if report.recoveries:
        show(lease_views.recoveries_table(report.recoveries, _ROWS))
    left_open = lease_views.left_open(report)
    if left_open and not dry_run:
        show(lease_views.intents_table(left_open, _ROWS))


def _note_unreadable(unreadable: Mapping[str, str]) -> None:
    for path, why in unreadable.items():
        _note_about_names(f"{path} is open, but could not be inspected: {why}")


def _note_about_names(line: str) -> None:
    # A path may hold a line break, and may look like another line of ours.
    note(printable(line))


add_declarations(app, LEASES)
