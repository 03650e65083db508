"""Keep tickets fresh, and check the keytabs that a connection and its streams depend on, from a DAG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException
from pydantic import TypeAdapter, ValidationError

from airflow_kstream import metrics
from airflow_kstream.hooks.cluster import KstreamClusterHook
from airflow_kstream.hooks.kerberos import ticket_declaration
from airflow_kstream.links import PageLink
from airflow_kstream.model.clusters.cluster import Cluster
from airflow_kstream.model.errors import InvalidInput, Unavailable
from airflow_kstream.model.finding import Severity
from airflow_kstream.model.kerberos.declarations import TicketDeclaration
from airflow_kstream.model.streams.event import EventKind, Trouble
from airflow_kstream.operators.retries import wrong_input_is_final
from airflow_kstream.operators.telling import TellingOperator
from airflow_kstream.supervise.doctor.keytabs import KeytabCheck, check_keytabs
from airflow_kstream.supervise.tickets.keytab_probe import KeytabPlace
from airflow_kstream.supervise.tickets.managed import TicketSelection, kept_tickets, selected
from airflow_kstream.supervise.tickets.renewal import RenewalOutcome, RenewalReport, renew_all
from airflow_kstream.views.pages.kept import KEYTAB, TICKET, at, key_of
from airflow_kstream.views.tickets import UNCOUNTED, failure_count

if TYPE_CHECKING:
    from airflow.sdk import Context

_BOOL = TypeAdapter(bool)


class KerberosTicketRenewOperator(TellingOperator):
    """Renew the tickets of one principal, or of all in a connection's declaration, each in a cache of its own.

    A ticket with enough of its life left is kept. Any other is replaced from the keytab or, if there is none, renewed.
    A failure while the old ticket is still good is a warning in the log, with the number of consecutive failures, and
    the task succeeds: the next run tries again. If a ticket can't be renewed and is about to expire, expired or
    missing, the task still tries all other principals, and then fails and names those.

    The result (XCom) is a list with one report for each principal, without secrets. Metrics for each:
    `kstream.ticket.remaining` (seconds until its expiry, 0 without a ticket) and `kstream.ticket.failures` (the number
    of consecutive failures).

    What it does not do: it puts no ticket where a process finds it by itself. A process that needs one names its
    cache, or gets a copy through KerberosHook. The caches are on the host that runs the task: run it on each worker
    and triggerer host that needs them, or keep the folder of the declaration where all of them see it.

    Example::

        KerberosTicketRenewOperator(task_id="renew", cluster_conn_id="prod", renew_at=0.5, alert_before="1h")

    :param cluster_conn_id: the `kstream` connection. There is no default.
    :param principal: renew only this one. To map the task over several: `.partial(...).expand(principal=[...])`.
    :param keytab: the absolute path of its keytab, if neither the connection nor the declaration knows it.
    :param cache: the absolute path of its ticket cache, if it is not the declaration's.
    :param declaration: the principals to keep fresh, as the fields of a declaration. By default the connection's file
        in `[kstream] tickets_folder`.
    :param renew_at: the share of a ticket's life after which it is renewed, 0 to 1; the declaration's by default.
    :param alert_before: how long before its expiry a failure is an alert, such as `1h`; the declaration's by default.
    :param force: also renew tickets that have enough of their life left.
    :raises Unavailable: when a failure is an alert and retrying may help.
    :raises AirflowFailException: when a failure is an alert and retrying will not help, or the connection or the
        declaration is wrong.
    """

    operator_extra_links = (PageLink(),)
    page = {"view": "tickets"}  # noqa: RUF012  read by the link
    template_fields: Sequence[str] = (
        *("cluster_conn_id", "principal", "keytab", "cache", "declaration"),
        *("renew_at", "alert_before", "force"),
    )
    template_fields_renderers = {"declaration": "yaml"}  # noqa: RUF012  Airflow's own attribute

    def __init__(
        self,
        *,
        cluster_conn_id: str,
        principal: str | None = None,
        keytab: str | None = None,
        cache: str | None = None,
        declaration: Mapping[str, Any] | None = None,
        renew_at: float | str | None = None,
        alert_before: str | None = None,
        force: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(cluster_conn_id=cluster_conn_id, **kwargs)
        self.principal = principal
        self.keytab = keytab
        self.cache = cache
        self.declaration = declaration
        self.renew_at = renew_at
        self.alert_before = alert_before
        self.force = force

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Renew what is due, and return the reports. Raises Unavailable or AirflowFailException: for an alert."""
        with wrong_input_is_final():
            reports = self._renewed()
        for report in reports:
            _publish(report)
        result = [report.to_json() for report in reports]
        for found in result:
            self.show(key_of(TICKET, found["principal"]), at(found, datetime.now(UTC)))
        alerts = [report for report in reports if report.alert]
        troubles = [Trouble(EventKind.TICKET, str(report.error), report.principal) for report in alerts]
        # A task of one principal knows nothing of the others'.
        self.tell(troubles, {EventKind.TICKET}, f"tickets {self.principal or ''}")
        if alerts:
            # The reports are kept although the task fails: what was renewed is renewed.
            context["ti"].xcom_push("return_value", result)
            raise _alarm(alerts)
        return result

    def _renewed(self) -> list[RenewalReport]:
        declaration = self._declaration()
        selection = TicketSelection(self.principal or None, self.keytab or None, self.cache or None)
        with KstreamClusterHook(self.cluster_conn_id).cluster() as cluster:
            reports = []
            for report in renew_all(
                selected(cluster, declaration, selection), declaration.policy, force=_as_bool(self.force)
            ):
                self._log_report(report)
                reports.append(report)
        return reports

    def _declaration(self) -> TicketDeclaration:
        declaration = (
            TicketDeclaration.from_mapping(self.declaration)
            if self.declaration
            else ticket_declaration(self.cluster_conn_id)
        )
        ours = {"renew_at": self.renew_at, "alert_before": self.alert_before}
        overrides = {name: value for name, value in ours.items() if value not in (None, "", "None")}
        return TicketDeclaration.from_mapping({**declaration.to_mapping(), **overrides})

    def _log_report(self, report: RenewalReport) -> None:
        until = f", good until {report.expiry:%Y-%m-%d %H:%M:%S %Z}" if report.expiry else ""
        if report.outcome is RenewalOutcome.FAILED:
            failing = report.failing
            since = f" since {failing.failing_since:%Y-%m-%d %H:%M:%S %Z}" if failing.failing_since else ""
            level = self.log.error if report.alert else self.log.warning
            count = f"{failure_count(failing.failures)}{since}" if failing.counted else UNCOUNTED
            what = f"not renewed, {count}; the ticket at hand is {report.state}{until}"
            level("%s: %s: %s", report.principal, what, report.error)
        else:
            done = f"copied from {report.copied_from}" if report.copied_from else report.outcome
            self.log.info("%s: %s%s", report.principal, done, until)


def _publish(report: RenewalReport) -> None:
    left = (report.expiry - datetime.now(UTC)).total_seconds() if report.expiry else 0.0
    metrics.ticket_gauge("remaining", max(left, 0.0), report.cluster, report.principal)
    metrics.ticket_gauge("failures", report.failing.failures, report.cluster, report.principal)
    metrics.ticket_gauge("alert", float(report.alert), report.cluster, report.principal)


def _alarm(alerts: Sequence[RenewalReport]) -> Exception:
    """Return Unavailable if a later try may renew one of them by itself, else AirflowFailException."""
    named = "; ".join(
        f"{report.principal} ({report.state}, {failure_count(report.failing.failures)}): {report.error}"
        for report in alerts
    )
    message = f"not renewed, and can't wait: {named}"
    if any(report.retryable for report in alerts):
        return Unavailable(message, tried=f"renew the tickets of {alerts[0].cluster}")
    return AirflowFailException(message)


def _as_bool(flag: bool | str) -> bool:
    """Read a flag, which is text if it was a template; empty text is false."""
    try:
        return _BOOL.validate_python(flag.strip() or "false" if isinstance(flag, str) else flag)
    except ValidationError:
        raise InvalidInput(f"force is {flag!r}; allowed are true and false") from None


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
        super().__init__(cluster_conn_id=cluster_conn_id, **kwargs)
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
