"""Check the keytabs that a connection and its streams depend on, from a DAG."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_kstream import metrics
from airflow_kstream.assets import cluster_inlets
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.hooks.kerberos import ticket_declaration
from airflow_kstream.links.pages import PageLink
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.finding import Severity
from airflow_kstream.model.streams.event import EventKind, Trouble
from airflow_kstream.operators.retries import wrong_input_is_final
from airflow_kstream.operators.telling import TellingOperator
from airflow_kstream.supervise.doctor.keytabs import KeytabCheck, check_keytabs
from airflow_kstream.supervise.tickets.keytab_probe import KeytabPlace
from airflow_kstream.supervise.tickets.managed import kept_tickets
from airflow_kstream.views.pages.kept import KEYTAB, at, key_of

if TYPE_CHECKING:
    from airflow.sdk import Context


class KeytabCheckOperator(TellingOperator):
    """Check the keytabs of a connection, its ticket declaration and its running streams, on disk and at the KDC.

    The task checks all of them, and then fails if one can no longer be used. Its log says for each what is wrong, what
    to do, and which streams it will take down, and when. What is merely unusual is a warning. The result (XCom) is a
    list with one entry for each keytab, never with a key.

    What it does not do: it changes no keytab and restarts no stream. A login that the KDC refuses may count towards
    the lock-out of the account, so don't run it every minute.

    Example::

        KeytabCheckOperator(task_id="check", cluster_conn_id="prod")

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param principal, keytab: check only this keytab (an absolute path) of this principal; give both or neither.
    :raises AirflowFailException: when a keytab can no longer be used, or the fields, the connection or the declaration
        are wrong.
    """

    operator_extra_links = (PageLink(),)
    page = {"view": "tickets"}  # noqa: RUF012  read by the link
    template_fields: Sequence[str] = ("cluster_conn_id", "principal", "keytab")

    def __init__(
        self, *, cluster_conn_id: str, principal: str | None = None, keytab: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        # What pages show is kept with it, for as long as a DAG names it.
        self.inlets = [*self.inlets, *cluster_inlets(cluster_conn_id)]
        self.cluster_conn_id = cluster_conn_id
        self.principal = principal
        self.keytab = keytab

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Check, and return a report for each keytab. Raises AirflowFailException: when one can no longer be used."""
        with wrong_input_is_final():
            checks = self._checks()
        result = [check.to_json() for check in checks]
        for found in result:
            self.show(key_of(KEYTAB, f"{found['principal']} {found['keytab']}"), at(found, datetime.now(UTC)))
        for check in checks:
            metrics.keytab_gauge("unusable", float(check.failed), self.cluster_conn_id, check.place.principal)
        broken = [check for check in checks if check.failed]
        # A task of one keytab knows nothing of the others.
        key = f"keytabs {self.principal or ''}"
        self.tell([_trouble(check) for check in broken], {EventKind.KEYTAB}, key)
        if broken:
            # The findings are kept although the task fails.
            context["ti"].xcom_push("return_value", result)
            named = ", ".join(f"{check.place.principal} ({check.place.path})" for check in broken)
            raise AirflowFailException(f"{len(broken)} of {len(checks)} keytabs can't be used: {named}")
        return result

    def _checks(self) -> list[KeytabCheck]:
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster:
            checks = []
            for check in check_keytabs(cluster, self._place(), self._declared_keytabs(cluster)):
                self._log_check(check)
                checks.append(check)
        return checks

    def _declared_keytabs(self, cluster: Cluster) -> list[KeytabPlace]:
        identities = [kept.identity for kept in kept_tickets(cluster, ticket_declaration(self.cluster_conn_id))]
        return [KeytabPlace(identity.principal, identity.keytab) for identity in identities if identity.keytab]

    def _place(self) -> KeytabPlace | None:
        if bool(self.principal) != bool(self.keytab):
            raise InvalidInput("give principal and keytab together, or neither of them")
        return KeytabPlace(self.principal, self.keytab) if self.principal and self.keytab else None

    def _log_check(self, check: KeytabCheck) -> None:
        if not check.findings:
            self.log.info("%s: %s is in order", check.place.principal, check.place.path)
        for finding in check.findings:
            level = self.log.error if finding.severity is Severity.ERROR else self.log.warning
            level("%s: %s: %s Remedy: %s", check.place.principal, check.place.path, finding.words, finding.remedy)


def _trouble(check: KeytabCheck) -> Trouble:
    """Return the trouble of a keytab that can't be used: its first finding is the worst one."""
    worst = check.findings[0]
    return Trouble(EventKind.KEYTAB, f"{worst.words} {worst.remedy}", f"{check.place.principal}, {check.place.path}")
