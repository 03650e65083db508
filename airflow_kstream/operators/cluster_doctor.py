"""Examine a cluster, this worker and the streams, from a DAG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream import metrics, settings
from airflow_kstream.clients.local.regular_files import read_text
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.model.errors import KstreamError, Unavailable
from airflow_kstream.model.finding import Baseline, DoctorReport, Finding, Severity, check_of
from airflow_kstream.model.printable import storable
from airflow_kstream.model.streams.event import EventKind, ToldSubject, Trouble
from airflow_kstream.operators.retries import wrong_input_is_final
from airflow_kstream.operators.telling import TellingOperator
from airflow_kstream.policy.doctor.news import Known, News, known_from_json, known_to_json, news, without_accepted
from airflow_kstream.supervise.clusters.session import open_session
from airflow_kstream.supervise.clusters.told import ToldNotes
from airflow_kstream.supervise.doctor.examination import Subjects, examine_cluster
from airflow_kstream.views.doctor import sentence, undecided_sentences

if TYPE_CHECKING:
    from airflow.sdk import Context

_KNOWN = "known_findings"
_IN_XCOM, _IN_ERROR = 100, 3


class ClusterDoctorOperator(TellingOperator):
    """Examine the cluster, this worker and all streams as `kstream doctor` does, and report what is new since the last
    run.

    The log has each new finding with its fix, its proof and the streams that it concerns, each with its date; what was
    known before is counted. The task fails when an error or a warning is new, so that each makes one run red; each is
    an event as well, which ends when it is found no longer. What a check could not ask is logged with the reason and
    the missing right, and neither begins nor ends anything. The result (XCom) has at most 100 new findings.

    It logs in to the KDC with each keytab, as KeytabCheckOperator does, so don't run it every minute. It changes
    nothing.

    Example::

        ClusterDoctorOperator(task_id="examine", cluster_conn_id="prod")

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param accepted: the accepted findings as a mapping, as in the file of a baseline; by default those of
        `[kstream] doctor_folder`, in `<connection id>.yaml`.
    :param only_new: with False it reports everything at each run, and fails for as long as anything is found.
    :raises Unavailable: when neither HDFS nor YARN tells its configuration; and when HDFS does not tell what was known
        before, so that nothing is new for certain: all that it found is in the log and left as events by then.
    :raises AirflowFailException: when something is found, or the accepted findings are wrong.
    """

    template_fields = ("cluster_conn_id",)

    def __init__(
        self,
        *,
        cluster_conn_id: str,
        accepted: Mapping[str, Any] | None = None,
        only_new: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(cluster_conn_id=cluster_conn_id, **kwargs)
        self.accepted = accepted
        self.only_new = only_new

    def execute(self, context: Context) -> dict[str, Any]:
        """Examine, and return what is new. Raises AirflowFailException: when that is more than a note."""
        with wrong_input_is_final():
            report = self._report()
        if report.blind:
            why = "; ".join(undecided_sentences(report.undecided)[:_IN_ERROR])
            raise Unavailable(f"the servers told nothing: {why}", tried=f"examine {self.cluster_conn_id}")
        self.tell([*_troubles(report)], {EventKind.FINDING}, "findings", _undecided(report))
        metrics.cluster_gauge("findings", float(len(report.findings)), self.cluster_conn_id)
        known = self._known(report) if self.only_new else {}
        found = news(report, known)
        self._log_report(report, found)
        if found.known != known:
            self._keep(found)
        result = dict(storable(_result(report, found)))
        if found.alarming:
            # The findings are kept although the task fails.
            context["ti"].xcom_push("return_value", result)
            named = ", ".join(finding.id for finding in found.fresh if finding.severity is not Severity.NOTE)
            raise AirflowFailException(f"{'new: ' if self.only_new else ''}{named}")
        return result

    def _report(self) -> DoctorReport:
        baseline = self._baseline()
        return without_accepted(self._examined(), baseline, datetime.now(UTC).date())

    def _examined(self) -> DoctorReport:
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster:
            return examine_cluster(cluster, Subjects())

    @contextmanager
    def _notes(self) -> Iterator[ToldNotes]:
        with (
            KstreamClusterHook(self.cluster_conn_id).cluster() as cluster,
            open_session(cluster, cluster.watcher) as session,
        ):
            yield session.told

    @property
    def _subject(self) -> ToldSubject:
        return ToldSubject(settings.text("installation"), self.cluster_conn_id, key=_KNOWN)

    def _known(self, report: DoctorReport) -> Known:
        """Return what earlier runs found. Raises KstreamError: when HDFS does not tell; the log has the report then."""
        try:
            with self._notes() as notes:
                return known_from_json(notes.kept(self._subject))
        except KstreamError:
            self._log_report(report, news(report, {}))
            raise

    def _keep(self, found: News) -> None:
        try:
            with self._notes() as notes:
                notes.keep(self._subject, known_to_json(found.known))
        except KstreamError as error:
            self.log.warning("What was found can't be kept, so the next run reports it again: %s", error)

    def _baseline(self) -> Baseline:
        if self.accepted is not None:
            return Baseline.from_mapping(self.accepted)
        folder = settings.folder("doctor_folder")
        path = folder / f"{self.cluster_conn_id}.yaml" if folder else None
        return Baseline.from_yaml(read_text(path)) if path and path.exists() else Baseline()

    def _log_report(self, report: DoctorReport, found: News) -> None:
        for finding in found.fresh:
            level = self.log.error if finding.severity is Severity.ERROR else self.log.warning
            level("%s: %s", finding.severity, sentence(finding))
        for undecided in undecided_sentences(report.undecided):
            self.log.warning("%s", undecided)
        for note in report.notes:
            self.log.warning("%s", note)
        for gone in found.gone:
            self.log.info("found no longer: %s", gone)
        known = len(report.findings) - len({finding.id for finding in found.fresh})
        self.log.info("%s checks passed, %s findings were known before", len(report.passed), known)


def _troubles(report: DoctorReport) -> Iterator[Trouble]:
    for finding in report.findings:
        if finding.severity is not Severity.NOTE:
            yield Trouble(EventKind.FINDING, sentence(finding), finding.id)


def _undecided(report: DoctorReport) -> Callable[[str], bool]:
    """Return what tells by a finding's id whether its check could not be decided now: it has not ended."""
    undecided = {one.check for one in report.undecided}
    return lambda finding: check_of(finding) in undecided


def _result(report: DoctorReport, found: News) -> dict[str, Any]:
    return {
        "new": [finding.to_json() for finding in found.fresh[:_IN_XCOM]],
        "gone": list(found.gone),
        "found": _count(report.findings),
        "undecided": [one.to_json() for one in report.undecided[:_IN_XCOM]],
        "passed": len(report.passed),
    }


def _count(findings: tuple[Finding, ...]) -> dict[str, int]:
    return {one.value: sum(finding.severity is one for finding in findings) for one in Severity}
