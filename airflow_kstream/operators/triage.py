"""Name the cause of a failure from logs, in a DAG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.logs.diagnosis import Diagnosis, DiagnosisOutcome
from airflow_kstream.operators.retries import KstreamOperator, wrong_input_is_final
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.streams.pulse.triage import triage_generation
from airflow_kstream.supervise.triage.look import TriageLook
from airflow_kstream.views.triage import diagnosis_lines

if TYPE_CHECKING:
    from airflow.sdk import Context


class LogTriageOperator(KstreamOperator):
    """Triage the logs of an application, or those in a folder of the worker, as `kstream triage` does.

    The task's log has the report, its result (XCom) the verdict. It succeeds whatever the verdict is, unless told
    otherwise: what failed is another task.

    What it does not do: it changes nothing. Without `spark` it reads at most 10 MB of each file of an application that
    runs, and what the worker's core scans in seconds of one that has ended.

    Example::

        LogTriageOperator(task_id="why", cluster_conn_id="prod", application="application_17_0042", spark="yarn")

    :param cluster_conn_id: the `kstream` connection of the application. There is no default.
    :param application: the id of an application.
    :param path: a log or a folder of logs on the worker, in place of an application.
    :param spark: a Spark master, `local[*]` or `yarn`, for logs that are too many for one core.
    :param signatures: YAML files on the worker that extend the catalogue.
    :param time_zone: the zone of logs that don't say theirs.
    :param fail_if_unknown: fail the task where something failed and no signature explains it.
    :raises AirflowFailException: when the fields, the connection or a file of signatures are wrong; or as told.
    """

    template_fields: Sequence[str] = ("cluster_conn_id", "application", "path", "spark", "signatures", "time_zone")

    def __init__(
        self,
        *,
        cluster_conn_id: str | None = None,
        application: str | None = None,
        path: str | None = None,
        spark: str | None = None,
        signatures: Sequence[str] = (),
        time_zone: str | None = None,
        fail_if_unknown: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cluster_conn_id = cluster_conn_id
        self.application = application
        self.path = path
        self.spark = spark
        self.signatures = signatures
        self.time_zone = time_zone
        self.fail_if_unknown = fail_if_unknown

    def execute(self, context: Context) -> dict[str, Any]:
        """Triage, and return the verdict. Raises AirflowFailException: when it is unknown and that shall fail."""
        with wrong_input_is_final():
            diagnosis = self._diagnosis()
        for line in diagnosis_lines(diagnosis):
            self.log.info("%s", line)
        result = diagnosis.to_json()
        if self.fail_if_unknown and diagnosis.outcome is DiagnosisOutcome.UNKNOWN:
            context["ti"].xcom_push("return_value", result)
            raise AirflowFailException(diagnosis.title)
        return result

    def _diagnosis(self) -> Diagnosis:
        look = TriageLook.of(self.signatures, self.time_zone, self.spark)
        if bool(self.application) == bool(self.path):
            raise InvalidInput("give an application with its cluster_conn_id, or a path")
        if self.path:
            return look.of_path(self.path)
        if not self.cluster_conn_id:
            raise InvalidInput(f"{self.application} is an application, and no cluster_conn_id says of which cluster")
        opened = KstreamClusterHook(self.cluster_conn_id).cluster()
        with opened as cluster, open_session(cluster, cluster.watcher) as session:
            return triage_generation(session, str(self.application), look)
