"""Recover the leases of files that were left open for write, from a DAG."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_kstream import metrics
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.links import PageLink
from airflow_kstream.model.leases.lease import Recovery
from airflow_kstream.model.leases.requests import RecoveryRequest, RecoverySettings, fields_with
from airflow_kstream.model.printable import printable, storable
from airflow_kstream.model.streams.event import EventKind, Trouble
from airflow_kstream.operators.retries import person, wrong_input_is_final
from airflow_kstream.operators.telling import TellingOperator
from airflow_kstream.supervise.leases.executor import Watcher
from airflow_kstream.supervise.leases.judging import Intent
from airflow_kstream.supervise.leases.recover import RecoveryReport, recover_stuck_files
from airflow_kstream.supervise.leases.session import open_lease_session
from airflow_kstream.views import leases as lease_views
from airflow_kstream.views.pages.kept import FILES, files_after, key_of
from airflow_kstream.views.tables import lines

if TYPE_CHECKING:
    from airflow.sdk import Context
    from rich.table import Table

_ROWS_IN_XCOM, _ROWS_IN_LOG, _FILES_PER_LINE = 50, 200, 500


class HdfsLeaseRecoverOperator(TellingOperator):
    """Find the files below a path that are stuck open for write, and close those that may be closed.

    How it decides: it measures a file several times, and never touches one that grows. For an idle file it asks the
    NameNode whether the holder still renews the lease. It recovers a dead holder's file. It recovers a living holder's
    only if the file is unchanged for `leak_after` and either its path is in `allowed` and the application that wrote it
    is known to be finished, or `approve` names it. It records every action in `state_dir`: `kstream leases history`.

    The result (XCom) is what was found, planned and done: counts, and at most 50 rows of each. Running it again does
    no harm: it no longer finds a file that is closed.

    What it does not do: it deletes, truncates or renames nothing, and waits for no file to become stuck. Stuck files
    that nobody allowed to recover don't fail the task: its log warns of them and its result counts them. Nor do files
    that are young or grow, or whose holder lives: for each, the log says why it was left open.

    The task fails for a file that should have been recovered and was not, and for one that is old enough and idle but
    whose holder it could not probe, for example because the principal may not write the file.

    Example::

        HdfsLeaseRecoverOperator(
            task_id="recover",
            cluster_conn_id="prod",
            path="/data/landing",
            request={"patterns": ["*.in-progress"], "min_age": "30m", "allowed": ["/data/landing/*=orders"]},
        )

    :param cluster_conn_id: the `kstream` connection, whose principal does the work. There is no default.
    :param path: an absolute folder or file. To map the task over several: `.partial(...).expand(path=[...])`.
    :param request: what to recover and how, if the defaults don't fit: the other fields of `RecoveryRequest`, by
        name. `approved_by` defaults to the user who triggered the run by hand.
    :param dry_run: scan and report what would be done. It touches no lease.
    :param within: folders in which `path` and what `request` approves must lie, for a DAG whose params choose them.
        It is not a template. Without any, all is allowed that the connection's principal may write.
    :raises Unavailable: when some files were not recovered and retrying may help.
    :raises Conflict: when some files were not recovered and retrying will not help.
    :raises AirflowFailException: when a field or the connection is wrong.
    """

    operator_extra_links = (PageLink(),)
    page = {"view": "files"}  # noqa: RUF012  read by the link
    template_fields: Sequence[str] = ("cluster_conn_id", "path", "request", "only_plan")
    template_fields_renderers = {"request": "yaml"}  # noqa: RUF012  Airflow's own attribute

    def __init__(
        self,
        *,
        cluster_conn_id: str,
        path: str,
        request: Mapping[str, Any] | None = None,
        dry_run: bool | str = False,
        within: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(cluster_conn_id=cluster_conn_id, **kwargs)
        self.path = path
        self.request = request
        # Not `dry_run`: that is a method of every operator.
        self.only_plan = dry_run
        self.within = tuple(within)

    def execute(self, context: Context) -> dict[str, Any]:
        """Recover, and return the bounded report. Raises Unavailable or Conflict: when some files were not closed."""
        with wrong_input_is_final():
            settings, done = self._recovered(context)
        self._log_result(done, settings)
        if not settings.dry_run:
            self._tell(lease_views.left_alone(done))
        report = dict(storable(lease_views.bounded(done, _ROWS_IN_XCOM)))
        self._show(context, report, dry_run=settings.dry_run)
        if done.incomplete:
            # The report is kept although the task fails: what was done is done.
            context["ti"].xcom_push("return_value", report)
            raise lease_views.failure(done, self.path)
        return report

    def on_kill(self) -> None:
        """Start no further recovery. Those in progress end as usual, so the journal stays complete."""
        stop: threading.Event | None = getattr(self, "_stop", None)
        if stop:
            stop.set()

    def _recovered(self, context: Context) -> tuple[RecoverySettings, RecoveryReport]:
        settings = self._settings(context)
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_lease_session(cluster, cluster.watcher) as session,
        ):
            return settings, recover_stuck_files(session, settings, self._watcher())

    def _settings(self, context: Context) -> RecoverySettings:
        ours = {"path": self.path, "dry_run": self.only_plan}
        fields = fields_with(ours, self.request, "request")
        fields["approved_by"] = fields.get("approved_by") or person(context)
        request = RecoveryRequest.from_mapping(fields)
        if self.within:
            request.require_within(self.within)
        return request.settings()

    def _watcher(self) -> Watcher:
        # Not in __init__: Airflow copies and serializes an operator, and an event can be neither.
        self._stop = threading.Event()
        progress = _Progress(self.log.info)
        return Watcher(tell=self.log.info, on=progress.finished, started=progress.started, stop=self._stop)

    def _log_result(self, done: RecoveryReport, settings: RecoverySettings) -> None:
        self.log.info("%s: %s", printable(self.path), lease_views.summary(done))
        if settings.dry_run:
            self._table(lease_views.intents_table(done.intents, _ROWS_IN_LOG))
            return
        if done.recoveries:
            self._table(lease_views.recoveries_table(done.recoveries, _ROWS_IN_LOG))
        alone = lease_views.left_alone(done)
        if alone:
            self.log.warning("%d stuck files were left alone", len(alone))
        kept = lease_views.left_open(done)
        if kept:
            self._table(lease_views.intents_table(kept, _ROWS_IN_LOG))

    def _show(self, context: Context, report: Mapping[str, Any], *, dry_run: bool) -> None:
        """Store for pages what this run found and did."""
        asked, key = context["dag_run"], key_of(FILES, self.path)
        run = {
            "at": datetime.now(UTC).isoformat(),
            "path": self.path,
            "run": asked.run_id,
            "by": person(context) or "",
            "dry_run": dry_run,
        }
        self.show(key, files_after(self.shown(key), report, run))

    def _tell(self, alone: Sequence[Intent]) -> None:
        """Tell somebody of the stuck files below this path, once for as long as there are any."""
        why = f"{len(alone)} of them; `kstream leases explain` says of each what it waits for"
        troubles = [Trouble(EventKind.STUCK, why, self.path)] if alone else []
        metrics.lease_gauge("stuck_files_left_alone", float(len(alone)), self.cluster_conn_id, self.path)
        self.tell(troubles, {EventKind.STUCK}, f"stuck {self.path}")

    def _table(self, table: Table) -> None:
        for line in lines(table):
            self.log.info("%s", line)


class _Progress:
    """Progress lines in the log while many files are recovered."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._begun = self._finished = 0

    def started(self, count: int) -> None:
        self._begun += count

    def finished(self, recovery: Recovery) -> None:
        self._finished += 1
        if self._finished % _FILES_PER_LINE == 0:
            self._tell(f"{self._finished} files done, {self._begun - self._finished} at work")
