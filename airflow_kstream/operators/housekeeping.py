"""Housekeeping of a connection's state_dir, from a DAG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream import metrics, settings
from airflow_kstream.clients.local.regular_files import declared_names
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.printable import storable
from airflow_kstream.operators.retries import KstreamOperator, speaker, wrong_input_is_final
from airflow_kstream.policy.streams.housekeeping import cleaning_age
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.housekeeping import CleaningReport, Housekeeper
from airflow_kstream.views.streams import lines_of_cleaning, summary

if TYPE_CHECKING:
    from airflow.sdk import Context

_IN_XCOM, _IN_LOG = 50, 1000


class HousekeepingOperator(KstreamOperator):
    """Find what nobody needs any longer in the connection's `state_dir`, and remove it unless this is a dry run.

    That is drafts of writers that died, and history beyond what a cleanup keeps. While the cluster is frozen, or where
    anything can't be read, nothing of it is removed.

    What it does not do: it touches no checkpoint, no owner of one, and nothing of a stream but the history that the
    stream's own restarts would delete. For the folder of a stream that is gone it logs the command that removes it:
    of one that is declared by no file of `[kstream] streams_folder`, stopped by a person or never run, without an
    application in YARN and without a checkpoint that it owns, and unchanged for `older_than`.

    Example::

        HousekeepingOperator(task_id="clean", cluster_conn_id="prod", dry_run=False, older_than="90d")

    :param cluster_conn_id: the `kstream` connection, whose principal must be allowed to delete.
    :param dry_run: only log what would be removed, and why (templated).
    :param older_than: a duration of 1d or more (templated).
    :raises Conflict: while the cluster is frozen, unless it is a dry run.
    :raises AirflowFailException: when something could not be removed, or the fields are wrong.
    """

    template_fields: Sequence[str] = ("cluster_conn_id", "only_plan", "older_than")

    def __init__(
        self, *, cluster_conn_id: str, dry_run: bool | str = True, older_than: str = "30d", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.cluster_conn_id = cluster_conn_id
        # Not `dry_run`: that is a method of every operator.
        self.only_plan = dry_run
        self.older_than = older_than

    def execute(self, context: Context) -> dict[str, Any]:
        """Look or clean, and return the bounded report."""
        with wrong_input_is_final():
            report = self._report(speaker(context))
        for number, line in enumerate(lines_of_cleaning(report)):
            if number == _IN_LOG:
                self.log.info("... and more; %s", summary(report))
                break
            self.log.info("%s", line)
        left = len(report.removals) - len(report.removed) + len(report.gone)
        metrics.cluster_gauge("state_leftovers", float(left), self.cluster_conn_id)
        result = dict(storable(report.to_json(_IN_XCOM)))
        if report.failed:
            # The report is kept although the task fails: what was done is done.
            context["ti"].xcom_push("return_value", result)
            first = list(report.failed.items())[:_IN_XCOM]
            raise AirflowFailException("; ".join(f"{path}: {why}" for path, why in first))
        return result

    def _report(self, by: str) -> CleaningReport:
        if not isinstance(self.only_plan, bool):
            raise InvalidInput(f"dry_run is {self.only_plan!r}; allowed is true or false")
        age, folder = cleaning_age("older_than", self.older_than), settings.folder("streams_folder")
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_session(cluster, cluster.watcher) as session,
        ):
            housekeeper = Housekeeper(session, declared_names(folder), age)
            if self.only_plan:
                return housekeeper.plan()
            self.log.info("%s wants to clean %s of what is older than %s", by, cluster.state_dir, self.older_than)
            return housekeeper.clean(tell=self.log.info)
