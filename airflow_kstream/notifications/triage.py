"""A callback that attaches the cause of its failure to a task: any task that ran an application of YARN's."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.model.errors import KstreamError
from airflow_kstream.model.logs.diagnosis import Diagnosis
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.pulse.triage import triage_generation
from airflow_kstream.supervise.triage.look import TriageLook
from airflow_kstream.views.triage import diagnosis_lines

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

XCOM_KEY = "triage"
_APPLICATION = re.compile(r"application_[0-9]+_[0-9]{4,}")


class TriageNotifier(BaseNotifier):
    """Triage the application of a task that failed: the report comes into its log, the verdict into its XCom `triage`.

    For `on_failure_callback` of any operator. Never fails: what keeps it from a verdict is a warning in the log.

    What it does not do: it tells nobody. A notifier after it in the list of callbacks can: its template takes
    `ti.xcom_pull(key="triage")`.

    Example::

        SparkSubmitOperator(
            task_id="job",
            application="/opt/jobs/job.py",
            on_failure_callback=[TriageNotifier(cluster_conn_id="prod")],
        )

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param application: the id of the application; by default the last one that the task's error names.
    :param spark, signatures, time_zone: as those of `LogTriageOperator`.
    """

    template_fields: Sequence[str] = ("cluster_conn_id", "application")

    def __init__(
        self,
        *,
        cluster_conn_id: str,
        application: str | None = None,
        spark: str | None = None,
        signatures: Sequence[str] = (),
        time_zone: str | None = None,
    ) -> None:
        super().__init__()
        self.cluster_conn_id = cluster_conn_id
        self.application = application
        self.spark = spark
        self.signatures = signatures
        self.time_zone = time_zone

    def notify(self, context: Context) -> None:
        """Triage, if an application is known."""
        application = self.application or application_in(context.get("exception"))
        if application is None:
            log.warning("No triage: the error of the task names no application")
            return
        try:
            diagnosis = self._diagnosis(application)
        except KstreamError as error:
            log.warning("No triage of %s: %s", application, error)
            return
        for line in diagnosis_lines(diagnosis):
            log.error("%s", line)
        context["ti"].xcom_push(XCOM_KEY, diagnosis.to_json())

    def _diagnosis(self, application: str) -> Diagnosis:
        look = TriageLook.of(self.signatures, self.time_zone, self.spark)
        opened = KstreamClusterHook(self.cluster_conn_id).cluster()
        with opened as cluster, open_session(cluster, cluster.watcher) as session:
            return triage_generation(session, application, look)


def application_in(error: Any) -> str | None:
    """Return the last application that an error names, None if it names none."""
    named = _APPLICATION.findall(str(error or ""))
    return named[-1] if named else None
